//! Who may come in: every newcomer shows the token within a deadline of its own, so that one who says nothing holds up nobody else.
use super::connection::Connection;
use super::message::{Reply, Request};
use super::token::Token;
use super::{ControlError, HELLO_DEADLINE, PROTOCOL_VERSION};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Newcomers that are listened to at the same time; more of them wait in the system's queue. Each may hold some messages of a megabyte.
const NEWCOMERS_MAX: usize = 16;
/// Pause after the system could not hand a connection over (no file descriptor left, for example).
const ACCEPT_AGAIN: Duration = Duration::from_millis(500);

type Newcomer = (SocketAddr, Result<Connection<Request>, ControlError>);

/// The listening socket and those who stand before it.
pub struct Door {
    listener: TcpListener,
    token: Token,
    newcomers: JoinSet<Newcomer>,
}

impl Door {
    /// Lets in through `listener` who shows `token`.
    pub fn new(listener: TcpListener, token: Token) -> Door {
        Door { listener, token, newcomers: JoinSet::new() }
    }

    /// The next one who showed the token; who did not is told so, and `log` gets a line. Can be dropped and called again.
    pub async fn next(&mut self, log: &impl Fn(&str)) -> (SocketAddr, Connection<Request>) {
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if self.newcomers.len() < NEWCOMERS_MAX => match accepted {
                    Ok((stream, peer)) => {
                        let token = self.token.clone();
                        self.newcomers.spawn(async move { (peer, greet(stream, &token).await) });
                    }
                    Err(error) => {
                        log(&format!("a connection could not be taken: {error}"));
                        tokio::time::sleep(ACCEPT_AGAIN).await;
                    }
                },
                Some(greeted) = self.newcomers.join_next() => match greeted {
                    Ok((peer, Ok(connection))) => return (peer, connection),
                    Ok((peer, Err(error))) => log(&format!("{peer}: {error}")),
                    Err(error) => log(&format!("a newcomer was lost: {error}")),
                },
            }
        }
    }
}

async fn greet(stream: TcpStream, token: &Token) -> Result<Connection<Request>, ControlError> {
    let mut peer = Connection::new(stream)?;
    let hello = peer.next_within(HELLO_DEADLINE, "the client's token").await?;
    if let Err(why) = admit(&hello, token) {
        peer.send(&Reply::Refused { why: why.clone() }, HELLO_DEADLINE).await?;
        return Err(ControlError::Stranger(why));
    }
    Ok(peer)
}

fn admit(hello: &Request, token: &Token) -> Result<(), String> {
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

    /// A door on the loopback address, and what it logs.
    fn at_a_door<T>(visit: impl AsyncFnOnce(Door, SocketAddr, &RefCell<Vec<String>>) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("listens");
            let address = listener.local_addr().expect("address");
            visit(Door::new(listener, Token::parse(TOKEN, "test").expect("a token")), address, &RefCell::default()).await
        })
    }

    #[test]
    fn silent_ones_and_strangers_hold_up_nobody() {
        at_a_door(async |mut door, address, lines| {
            let log = |line: &str| lines.borrow_mut().push(line.to_owned());
            let mut silent = Vec::new();
            for _ in 0..NEWCOMERS_MAX - 2 {
                silent.push(TcpStream::connect(address).await.expect("connects"));
            }
            let mut stranger = TcpStream::connect(address).await.expect("connects");
            send(&mut stranger, &hello("not-the-token-at-all", PROTOCOL_VERSION)).await.expect("sent");
            let mut client = TcpStream::connect(address).await.expect("connects");
            send(&mut client, &hello(TOKEN, PROTOCOL_VERSION)).await.expect("sent");
            let (peer, _connection) = timeout(SOON, door.next(&log)).await.expect("the client comes in, whoever else is there");
            assert_eq!(peer, client.local_addr().expect("address"));
            let _ = timeout(Duration::from_millis(300), door.next(&log)).await;
            let answer = timeout(SOON, receive::<Reply>(&mut stranger)).await.expect("an answer").expect("a message");
            assert!(matches!(answer, Reply::Refused { why } if why.contains("token")));
            assert!(lines.borrow().iter().any(|line| line.contains("refused") && line.contains("token")), "{lines:?}");
        });
    }

    #[test]
    fn garbage_another_version_and_silence_end_with_a_closed_connection() {
        at_a_door(async |mut door, address, lines| {
            let log = |line: &str| lines.borrow_mut().push(line.to_owned());
            let mut garbage = TcpStream::connect(address).await.expect("connects");
            garbage.write_all(&[0x7f; 1 << 14]).await.ok();
            let mut old = TcpStream::connect(address).await.expect("connects");
            send(&mut old, &hello(TOKEN, PROTOCOL_VERSION + 1)).await.expect("sent");
            let mut silent = TcpStream::connect(address).await.expect("connects");
            assert!(timeout(HELLO_DEADLINE + SOON, door.next(&log)).await.is_err(), "somebody came in");
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
