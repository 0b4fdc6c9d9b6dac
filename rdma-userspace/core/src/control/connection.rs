//! One control connection. A task of its own reads, so that waiting for a message can be given up and taken up again
//! without losing bytes, and so that the peer's end is noticed at once, whatever this side is doing.
use super::ControlError;
use super::frame::{receive, send};
use crate::verbs::ffi::os::tcp_bytes;
use serde::{Serialize, de::DeserializeOwned};
use std::os::fd::AsFd;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// A connection on which messages of type `In` come.
pub struct Connection<In> {
    writer: OwnedWriteHalf,
    incoming: mpsc::Receiver<Result<In, ControlError>>,
    reader: AbortHandle,
}

/// The socket goes with the connection: a reader that waits for a peer who says nothing would keep it open.
impl<In> Drop for Connection<In> {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl<In: DeserializeOwned + Send + 'static> Connection<In> {
    /// Takes a stream over. Needs a running tokio runtime.
    ///
    /// # Errors
    /// When the socket cannot be set up.
    pub fn new(stream: TcpStream) -> Result<Connection<In>, ControlError> {
        stream.set_nodelay(true)?;
        let (mut reader, writer) = stream.into_split();
        let (sender, incoming) = mpsc::channel(4);
        let reader = tokio::spawn(async move {
            loop {
                let message = receive(&mut reader).await;
                let last = message.is_err();
                if sender.send(message).await.is_err() || last {
                    return;
                }
            }
        })
        .abort_handle();
        Ok(Connection { writer, incoming, reader })
    }

    /// Bytes that the peer acknowledged and bytes that came from it, since the connection began.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn tcp_bytes(&self) -> std::io::Result<(u64, u64)> {
        let stream: &TcpStream = self.writer.as_ref();
        tcp_bytes(stream.as_fd())
    }

    /// Sends one message; gives up after `deadline` when the peer takes none.
    ///
    /// # Errors
    /// When the connection fails, or does not move within `deadline`.
    pub async fn send<Out: Serialize>(&mut self, message: &Out, deadline: Duration) -> Result<(), ControlError> {
        tokio::time::timeout(deadline, send(&mut self.writer, message))
            .await
            .map_err(|_| ControlError::Deadline { what: "the peer to take a message", deadline })?
    }

    /// The next message, for as long as it takes. Can be dropped and called again.
    ///
    /// # Errors
    /// What is wrong with the message or the connection; [`ControlError::Closed`] from its end on.
    pub async fn next(&mut self) -> Result<In, ControlError> {
        self.incoming.recv().await.unwrap_or(Err(ControlError::Closed))
    }

    /// The next message within `deadline`; `what` names it in the error.
    ///
    /// # Errors
    /// As [`Connection::next`], and [`ControlError::Deadline`].
    pub async fn next_within(&mut self, deadline: Duration, what: &'static str) -> Result<In, ControlError> {
        tokio::time::timeout(deadline, self.next()).await.map_err(|_| ControlError::Deadline { what, deadline })?
    }
}
