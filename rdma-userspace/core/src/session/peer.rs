//! The server as the client sees it: requests and their answers.
use super::loopback::start_server;
use super::{SessionError, Target};
use crate::control::connection::Connection;
use crate::control::message::{PeerCapture, PeerCaptureRound, Reply, Request, Retention, ServerFacts};
use crate::control::protocol::{ANSWER_DEADLINE, DEFAULT_PORT, PROBES_DEADLINE, PROTOCOL_VERSION};
use crate::control::token::Token;
use crate::control::{ControlError, transfer};
use crate::machine::TOOL_VERSION;
use crate::runner::{Params, PeerInfo, RoundStats};
use capture::Level;
use capture::manifest::costs::Spread;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::process::Child;

/// Time between two attempts to connect to a server that does not listen yet.
const CONNECT_RETRY: Duration = Duration::from_millis(200);
/// The connection to a server that admitted this client.
pub struct Peer {
    connection: Connection<Reply>,
    /// What it said of itself.
    pub facts: ServerFacts,
    child: Option<Child>,
}

impl Peer {
    /// Connects to the server of `target`, starting it first for a loopback session.
    ///
    /// # Errors
    /// When no server answers in time, or the server refuses.
    pub async fn reach(target: &Target, device: &str, port: u8, deadline: Duration) -> Result<Peer, SessionError> {
        let (address, token, child) = match target {
            Target::Host { address, token } => (with_port(address), token.clone(), None),
            Target::Loopback => {
                let (announcement, child) = start_server(device, port).await?;
                (announcement.address.to_string(), Token::parse(&announcement.token, "the server process")?, Some(child))
            }
        };
        let stream = connect(&address, deadline).await?;
        let mut connection = Connection::new(stream)?;
        let hello = Request::Hello { protocol: PROTOCOL_VERSION, token: token.reveal().to_owned(), tool_version: TOOL_VERSION.to_owned() };
        connection.send(&hello, ANSWER_DEADLINE).await?;
        match connection.next_within(ANSWER_DEADLINE, "the server's welcome").await? {
            Reply::Welcome(facts) => Ok(Peer { connection, facts, child }),
            Reply::Refused { why } => Err(ControlError::Refused(why).into()),
            other => Err(unexpected(&other, "a welcome")),
        }
    }

    async fn ask(&mut self, request: &Request, what: &'static str) -> Result<Reply, SessionError> {
        self.tell(request).await?;
        self.answer(ANSWER_DEADLINE, what).await
    }

    async fn tell(&mut self, request: &Request) -> Result<(), SessionError> {
        Ok(self.connection.send(request, ANSWER_DEADLINE).await?)
    }

    async fn answer(&mut self, deadline: Duration, what: &'static str) -> Result<Reply, SessionError> {
        match self.connection.next_within(deadline, what).await? {
            Reply::Failed { why } => Err(ControlError::Peer(why).into()),
            reply => Ok(reply),
        }
    }

    /// Has the server load probes of this level; [`Peer::probes_loaded`] takes the answer, so that both ends can load theirs at the same
    /// time.
    ///
    /// # Errors
    /// When the connection fails.
    pub async fn load_probes(&mut self, level: Level) -> Result<(), SessionError> {
        self.tell(&Request::Observe { level }).await
    }

    /// Why the server has no probes, if so, and a sentence for the user.
    ///
    /// # Errors
    /// What the server says.
    pub async fn probes_loaded(&mut self) -> Result<(Option<String>, String), SessionError> {
        match self.answer(PROBES_DEADLINE, "the server to load its probes").await? {
            Reply::Observing { why_not, summary } => Ok((why_not, summary)),
            other => Err(unexpected(&other, "what the server can observe")),
        }
    }

    /// Asks the server to attach its probes or to drop them; [`Peer::probes_set`] takes the answer.
    ///
    /// # Errors
    /// When the connection fails.
    pub async fn set_probes(&mut self, traced: bool) -> Result<(), SessionError> {
        self.tell(&Request::Probes { traced }).await
    }

    /// Waits until the server's probes are as asked; returns whether that changed anything.
    ///
    /// # Errors
    /// What the server says.
    pub async fn probes_set(&mut self) -> Result<bool, SessionError> {
        match self.answer(PROBES_DEADLINE, "the server's probes").await? {
            Reply::ProbesSet { changed } => Ok(changed),
            other => Err(unexpected(&other, "the state of the server's probes")),
        }
    }

    /// Bytes of the control connection so far: sent and acknowledged, received; `None`: the kernel does not tell.
    pub fn tcp_bytes(&self) -> Option<(u64, u64)> {
        self.connection.tcp_bytes().ok()
    }

    /// What the server recorded of a run.
    ///
    /// # Errors
    /// What the server says.
    pub async fn capture(&mut self, run: u32) -> Result<PeerCapture, SessionError> {
        match self.ask(&Request::Capture { run }, "the server's side of a run").await? {
            Reply::Capture(capture) => Ok(*capture),
            other => Err(unexpected(&other, "the server's side of a run")),
        }
    }

    /// What it recorded of a round.
    ///
    /// # Errors
    /// What the server says.
    pub async fn capture_round(&mut self, run: u32, at: u32) -> Result<PeerCaptureRound, SessionError> {
        match self.ask(&Request::CaptureRound { run, at }, "the server's side of a round").await? {
            Reply::CaptureRound(round) => Ok(*round),
            other => Err(unexpected(&other, "the server's side of a round")),
        }
    }

    /// Some bytes of that round.
    ///
    /// # Errors
    /// What the server says; bytes that are none.
    pub async fn part(&mut self, run: u32, at: u32, from: u64) -> Result<Vec<u8>, SessionError> {
        match self.ask(&Request::Fetch { run, at, from }, "a part of the server's side").await? {
            Reply::Part { bytes } => Ok(transfer::part_bytes(&bytes)?),
            other => Err(unexpected(&other, "a part of the server's side")),
        }
    }

    /// Makes the server's end of a run.
    ///
    /// # Errors
    /// What the server says.
    pub async fn open(&mut self, run: u32, params: Params, cpu: Option<u32>, client: PeerInfo) -> Result<PeerInfo, SessionError> {
        match self.ask(&Request::Open { run, params: Box::new(params), cpu, client }, "the server's queue pair").await? {
            Reply::Opened { server, .. } => Ok(server),
            other => Err(unexpected(&other, "the server's queue pair")),
        }
    }

    /// Puts the server's thread into a round.
    ///
    /// # Errors
    /// What the server says.
    pub async fn start_round(&mut self, run: u32, index: u32, samples: u64, keep: Retention) -> Result<(), SessionError> {
        match self.ask(&Request::Round { run, index, samples, keep }, "the server's start of a round").await? {
            Reply::RoundStarted => Ok(()),
            other => Err(unexpected(&other, "the start of a round")),
        }
    }

    /// The counters of the server's round, after this side's is over, and for a ping-pong how long the server held a message.
    ///
    /// # Errors
    /// What the server says.
    pub async fn collect(&mut self, run: u32) -> Result<(RoundStats, Option<Spread>), SessionError> {
        match self.ask(&Request::Collect { run }, "the server's end of a round").await? {
            Reply::RoundDone { stats, residency } => Ok((stats, residency)),
            other => Err(unexpected(&other, "the end of a round")),
        }
    }

    /// Takes the server's end of a run down.
    ///
    /// # Errors
    /// What the server says.
    pub async fn close(&mut self, run: u32) -> Result<(), SessionError> {
        match self.ask(&Request::Close { run }, "the server to close a run").await? {
            Reply::Closed => Ok(()),
            other => Err(unexpected(&other, "the close of a run")),
        }
    }

    /// Waits for a message without a request: the server failed, or it is gone. Can be dropped and called again.
    pub async fn failure(&mut self) -> SessionError {
        match self.connection.next().await {
            Ok(Reply::Failed { why }) => ControlError::Peer(why).into(),
            Ok(other) => unexpected(&other, "silence within a round"),
            Err(error) => error.into(),
        }
    }

    /// Ends the connection with `Bye` or the failure, and waits for a loopback server to end.
    pub async fn leave(mut self, failure: Option<&SessionError>) {
        let last = match failure {
            None => Request::Bye,
            Some(error) => Request::Abort { why: capture::text::chain(error) },
        };
        let _ = self.connection.send(&last, Duration::from_secs(2)).await;
        drop(self.connection);
        if let Some(mut child) = self.child
            && tokio::time::timeout(Duration::from_secs(5), child.wait()).await.is_err()
        {
            let _ = child.kill().await;
        }
    }
}

/// Connects, and tries again for as long as `deadline` while no server listens there: the two ends of a job start together.
async fn connect(address: &str, deadline: Duration) -> Result<TcpStream, ControlError> {
    let failed = |source| ControlError::Connect { address: address.to_owned(), source };
    let begin = tokio::time::Instant::now();
    loop {
        let error = match tokio::time::timeout_at(begin + deadline, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => error,
            Ok(Err(error)) => return Err(failed(error)),
            Err(_) => return Err(failed(std::io::ErrorKind::TimedOut.into())),
        };
        if begin.elapsed() + CONNECT_RETRY > deadline {
            return Err(failed(error));
        }
        tokio::time::sleep(CONNECT_RETRY).await;
    }
}

fn unexpected(got: &Reply, expected: &'static str) -> SessionError {
    ControlError::Unexpected { got: got.name().to_owned(), expected }.into()
}

/// `host` → `host:DEFAULT_PORT`; a port that is there stays. An IPv6 address with a port is written `[address]:port`.
fn with_port(address: &str) -> String {
    if address.parse::<std::net::Ipv6Addr>().is_ok() {
        return format!("[{address}]:{DEFAULT_PORT}");
    }
    match address.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_ok() => address.to_owned(),
        _ => format!("{address}:{DEFAULT_PORT}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_port_is_added_only_where_there_is_none() {
        for (given, expected) in [
            ("host", "host:18600"),
            ("host:7", "host:7"),
            ("192.0.2.1", "192.0.2.1:18600"),
            ("2001:db8::1", "[2001:db8::1]:18600"),
            ("[2001:db8::1]:7", "[2001:db8::1]:7"),
        ] {
            assert_eq!(with_port(given), expected);
        }
    }
}
