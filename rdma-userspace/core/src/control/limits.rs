//! What a client may ask a server for; checked before anything is allocated.
use crate::runner::Params;

/// Limits of a server.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Memory that one client's runs may take together, in bytes.
    pub memory_bytes: u64,
    /// Runs that one client may have open at the same time.
    pub runs: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { memory_bytes: 1 << 30, runs: 16 }
    }
}

/// What the server records for one client by default, in bytes.
pub const RECORDED_DEFAULT_BYTES: u64 = 256 << 20;

/// What a client may have recorded on the server's side.
#[derive(Clone, Copy, Debug)]
pub struct RecordingLimits {
    /// A client may have probes attached here.
    pub probes: bool,
    /// Bytes that are kept for one client.
    pub bytes: u64,
}

impl Default for RecordingLimits {
    fn default() -> RecordingLimits {
        RecordingLimits { probes: true, bytes: RECORDED_DEFAULT_BYTES }
    }
}

/// What a client's open runs take.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    runs: u32,
    bytes: u64,
}

impl Usage {
    /// One more run of so many bytes.
    pub fn add(&mut self, bytes: u64) {
        self.runs += 1;
        self.bytes += bytes;
    }

    /// One run less.
    pub fn remove(&mut self, bytes: u64) {
        self.runs = self.runs.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

impl Limits {
    /// The bytes that a run takes, when it is within the limits.
    ///
    /// # Errors
    /// A sentence with what was asked and what the limit is.
    pub fn admit(&self, usage: &Usage, params: &Params) -> Result<u64, String> {
        params.check().map_err(|error| error.to_string())?;
        let bytes = params.memory_bytes();
        if usage.runs >= self.runs {
            return Err(format!("{} runs are open, the limit is {}", usage.runs, self.runs));
        }
        if usage.bytes.saturating_add(bytes) > self.memory_bytes {
            return Err(format!(
                "the run needs {bytes} bytes beside the {} in use; the limit is {} bytes (--max-memory of the server)",
                usage.bytes, self.memory_bytes
            ));
        }
        Ok(bytes)
    }
}
