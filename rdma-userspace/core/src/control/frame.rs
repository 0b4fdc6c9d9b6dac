//! Messages on a byte stream: a 32-bit little-endian length, then JSON. The length is limited here, the time in [`super::connection`].
use super::ControlError;
use super::protocol::MESSAGE_MAX_BYTES;
use serde::{Serialize, de::DeserializeOwned};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Sends one message.
///
/// # Errors
/// When the connection fails.
pub async fn send<T: Serialize>(stream: &mut (impl AsyncWrite + Unpin), message: &T) -> Result<(), ControlError> {
    let body = serde_json::to_vec(message)?;
    let length_bytes = u32::try_from(body.len()).unwrap_or(u32::MAX);
    if length_bytes > MESSAGE_MAX_BYTES {
        return Err(ControlError::TooLong { length_bytes });
    }
    let mut bytes = Vec::with_capacity(body.len() + 4);
    bytes.extend_from_slice(&length_bytes.to_le_bytes());
    bytes.extend_from_slice(&body);
    stream.write_all(&bytes).await?;
    stream.flush().await?;
    Ok(())
}

/// Receives one message, for as long as it takes: for use beside something else that has a deadline.
///
/// # Errors
/// [`ControlError::Closed`] at the end of the stream, otherwise what is wrong with the message or the connection.
pub async fn receive<T: DeserializeOwned>(stream: &mut (impl AsyncRead + Unpin)) -> Result<T, ControlError> {
    let mut length = [0; 4];
    read_exact(stream, &mut length).await?;
    let length_bytes = u32::from_le_bytes(length);
    if length_bytes > MESSAGE_MAX_BYTES {
        return Err(ControlError::TooLong { length_bytes });
    }
    let mut body = vec![0; length_bytes as usize];
    read_exact(stream, &mut body).await?;
    Ok(serde_json::from_slice(&body)?)
}

async fn read_exact(stream: &mut (impl AsyncRead + Unpin), bytes: &mut [u8]) -> Result<(), ControlError> {
    match stream.read_exact(bytes).await {
        Ok(_) => Ok(()),
        Err(error) if matches!(error.kind(), std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::ConnectionReset) => {
            Err(ControlError::Closed)
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
    }

    #[test]
    fn a_message_comes_back_as_sent() {
        block_on(async {
            let (mut here, mut there) = tokio::io::duplex(64);
            let sent = vec!["a".repeat(500), "b".to_owned()];
            let (put, got) = tokio::join!(send(&mut here, &sent), receive::<Vec<String>>(&mut there));
            put.expect("sent");
            assert_eq!(got.expect("received"), sent);
        });
    }

    #[test]
    fn a_length_over_the_limit_is_refused_before_it_is_read() {
        block_on(async {
            let (mut here, mut there) = tokio::io::duplex(64);
            here.write_all(&u32::MAX.to_le_bytes()).await.expect("written");
            let got = receive::<String>(&mut there).await;
            assert!(matches!(got, Err(ControlError::TooLong { length_bytes: u32::MAX })), "{got:?}");
        });
    }

    #[test]
    fn garbage_and_the_end_are_two_different_errors() {
        block_on(async {
            let (mut here, mut there) = tokio::io::duplex(64);
            here.write_all(&[3, 0, 0, 0, b'x', b'y', b'z']).await.expect("written");
            assert!(matches!(receive::<String>(&mut there).await, Err(ControlError::Malformed(_))));
            here.write_all(&[9, 0, 0, 0, b'"']).await.expect("written");
            drop(here);
            assert!(matches!(receive::<String>(&mut there).await, Err(ControlError::Closed)));
        });
    }
}
