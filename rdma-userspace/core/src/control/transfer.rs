//! Rounds of a peer capture in messages: their samples and records as bytes, in parts that a message can carry.
use super::ControlError;
use super::message::PeerCaptureRound;
use super::protocol::PART_MAX_BYTES;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use capture::Sample;
use zerocopy::{FromBytes, IntoBytes};

/// What a client takes of one run at most, in bytes.
pub const TAKEN_MAX_BYTES: u64 = 4 << 30;

/// Bytes of a round from `from` on, at most [`PART_MAX_BYTES`], in base64; `None`: the round has no byte there.
pub(super) fn part(samples: &[Sample], records: &[u8], from: u64) -> Option<String> {
    let samples = samples.as_bytes();
    let from = usize::try_from(from).ok()?;
    let rest = match from.checked_sub(samples.len()) {
        None => &samples[from..],
        Some(behind) => records.get(behind..)?,
    };
    Some(STANDARD.encode(&rest[..rest.len().min(PART_MAX_BYTES)]))
}

/// The bytes of a [`super::message::Reply::Part`].
///
/// # Errors
/// When they are not base64, or more than a part may have.
pub fn part_bytes(text: &str) -> Result<Vec<u8>, ControlError> {
    let bytes = STANDARD.decode(text).map_err(|error| ControlError::PeerCapture(format!("a part is not base64: {error}")))?;
    match bytes.len() {
        0 => Err(ControlError::PeerCapture("a part is empty".to_owned())),
        n if n > PART_MAX_BYTES => Err(ControlError::PeerCapture(format!("a part has {n} bytes, the limit is {PART_MAX_BYTES}"))),
        _ => Ok(bytes),
    }
}

/// The samples and the records in the bytes of a round.
///
/// # Errors
/// When the bytes are not as many as announced.
pub fn split_round(round: &PeerCaptureRound, bytes: &[u8]) -> Result<(Vec<Sample>, Vec<u8>), ControlError> {
    let wrong = || ControlError::PeerCapture(format!("round {} has {} bytes that do not fit what was announced", round.index, bytes.len()));
    let count = usize::try_from(round.samples).map_err(|_| wrong())?;
    let samples_bytes = count.checked_mul(size_of::<Sample>()).ok_or_else(wrong)?;
    let (samples, records) = bytes.split_at_checked(samples_bytes).ok_or_else(wrong)?;
    if records.len() as u64 != round.record_bytes {
        return Err(wrong());
    }
    let samples = samples.chunks_exact(size_of::<Sample>()).map(|one| Sample::read_from_bytes(one).map_err(|_| wrong()));
    Ok((samples.collect::<Result<_, _>>()?, records.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        assert!(part_bytes("").is_err() && part_bytes("?").is_err());
        assert!(part_bytes(&STANDARD.encode(vec![0; PART_MAX_BYTES + 1])).is_err());
        let round = PeerCaptureRound { samples: 2, ..PeerCaptureRound::default() };
        assert!(split_round(&round, &[0; 175]).is_err() && split_round(&round, &[0; 177]).is_err());
        let huge = PeerCaptureRound { samples: u64::MAX, ..round };
        assert!(split_round(&huge, &[0; 176]).is_err());
    }
}
