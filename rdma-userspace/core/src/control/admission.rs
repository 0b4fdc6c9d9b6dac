//! Which connections are served: each new one shows the token within a deadline of its own, so that one that says nothing holds up no
//! other.
use super::ControlError;
use super::connection::Connection;
use super::message::{Reply, Request};
use super::protocol::{HELLO_DEADLINE, PROTOCOL_VERSION};
use super::token::Token;

use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Connections that may be authenticating at the same time; more of them wait in the system's queue. Each may hold some messages of a
/// megabyte.
const PENDING_MAX: usize = 16;
/// Pause after the system could not hand a connection over (no file descriptor left, for example).
const ACCEPT_RETRY: Duration = Duration::from_millis(500);

/// A connection whose authentication has ended, and how.
type Authenticated = (SocketAddr, Result<Connection<Request>, ControlError>);

/// The listening socket and the connections that have not shown their token yet.
pub struct Admission {
    listener: TcpListener,
    token: Token,
    pending: JoinSet<Authenticated>,
}

impl Admission {
    /// Admits connections of `listener` that show `token`.
    pub fn new(listener: TcpListener, token: Token) -> Admission {
        Admission { listener, token, pending: JoinSet::new() }
    }

    /// The next connection that showed the token; one that did not is refused, and `log` gets a line. Can be dropped and called again.
    pub async fn next(&mut self, log: &impl Fn(&str)) -> (SocketAddr, Connection<Request>) {
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if self.pending.len() < PENDING_MAX => match accepted {
                    Ok((stream, peer)) => {
                        let token = self.token.clone();
                        self.pending.spawn(async move { (peer, authenticate(stream, &token).await) });
                    }
                    Err(error) => {
                        log(&format!("a connection could not be taken: {error}"));
                        tokio::time::sleep(ACCEPT_RETRY).await;
                    }
                },
                Some(done) = self.pending.join_next() => match done {
                    Ok((peer, Ok(connection))) => return (peer, connection),
                    Ok((peer, Err(error))) => log(&format!("{peer}: {error}")),
                    Err(error) => log(&format!("an authentication task failed: {error}")),
                },
            }
        }
    }
}

async fn authenticate(stream: TcpStream, token: &Token) -> Result<Connection<Request>, ControlError> {
    let mut peer = Connection::new(stream)?;
    let hello = peer.next_within(HELLO_DEADLINE, "the client's token").await?;
    if let Err(why) = check_hello(&hello, token) {
        peer.send(&Reply::Refused { why: why.clone() }, HELLO_DEADLINE).await?;
        return Err(ControlError::NotAdmitted(why));
    }
    Ok(peer)
}

fn check_hello(hello: &Request, token: &Token) -> Result<(), String> {
    match hello {
        Request::Hello { protocol, .. } if *protocol != PROTOCOL_VERSION => Err(format!(
            "it speaks version {PROTOCOL_VERSION} of the protocol, the client version {protocol}; use the same rdmascope on both sides"
        )),
        Request::Hello { token: shown, .. } if token.matches(shown) => Ok(()),
        Request::Hello { .. } => Err("the token is not the one that it printed".to_owned()),
        _ => Err("the first message was no greeting".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::frame::{receive, send};
    use std::cell::RefCell;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::timeout;

    const TOKEN: &str = "0123456789abcdef";
    const SOON: Duration = Duration::from_secs(3);

    fn hello(token: &str, protocol: u32) -> Request {
        Request::Hello { protocol, token: token.to_owned(), tool_version: "test".to_owned() }
    }

    /// An admission on the loopback address, and what it logs.
    fn with_admission<T>(visit: impl AsyncFnOnce(Admission, SocketAddr, &RefCell<Vec<String>>) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("listens");
            let address = listener.local_addr().expect("address");
            visit(Admission::new(listener, Token::parse(TOKEN, "test").expect("a token")), address, &RefCell::default()).await
        })
    }

    #[test]
    fn silent_ones_and_strangers_hold_up_nobody() {
        with_admission(async |mut admission, address, lines| {
            let log = |line: &str| lines.borrow_mut().push(line.to_owned());
            let mut silent = Vec::new();
            for _ in 0..PENDING_MAX - 2 {
                silent.push(TcpStream::connect(address).await.expect("connects"));
            }
            let mut stranger = TcpStream::connect(address).await.expect("connects");
            send(&mut stranger, &hello("not-the-token-at-all", PROTOCOL_VERSION)).await.expect("sent");
            let mut client = TcpStream::connect(address).await.expect("connects");
            send(&mut client, &hello(TOKEN, PROTOCOL_VERSION)).await.expect("sent");
            let (peer, _connection) = timeout(SOON, admission.next(&log)).await.expect("the client is admitted, whatever the others do");
            assert_eq!(peer, client.local_addr().expect("address"));
            let _ = timeout(Duration::from_millis(300), admission.next(&log)).await;
            let answer = timeout(SOON, receive::<Reply>(&mut stranger)).await.expect("an answer").expect("a message");
            assert!(matches!(answer, Reply::Refused { why } if why.contains("token")));
            assert!(lines.borrow().iter().any(|line| line.contains("refused") && line.contains("token")), "{lines:?}");
        });
    }

    #[test]
    fn garbage_another_version_and_silence_end_with_a_closed_connection() {
        with_admission(async |mut admission, address, lines| {
            let log = |line: &str| lines.borrow_mut().push(line.to_owned());
            let mut garbage = TcpStream::connect(address).await.expect("connects");
            garbage.write_all(&[0x7f; 1 << 14]).await.ok();
            let mut old = TcpStream::connect(address).await.expect("connects");
            send(&mut old, &hello(TOKEN, PROTOCOL_VERSION + 1)).await.expect("sent");
            let mut silent = TcpStream::connect(address).await.expect("connects");
            assert!(timeout(HELLO_DEADLINE + SOON, admission.next(&log)).await.is_err(), "a connection was admitted");
            for (who, stream) in [("garbage", &mut garbage), ("old", &mut old), ("silent", &mut silent)] {
                let mut rest = Vec::new();
                let end = timeout(SOON, stream.read_to_end(&mut rest)).await;
                assert!(end.is_ok(), "the connection of {who} stays open");
            }
            let lines = lines.borrow().join("\n");
            assert!(lines.contains("limit") && lines.contains("version") && lines.contains("no answer"), "{lines}");
        });
    }
}
