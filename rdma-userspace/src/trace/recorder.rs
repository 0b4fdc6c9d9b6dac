//! The capture of a trace while it is being made: the records as they come, the manifest at both ends.

use std::path::PathBuf;

use analysis::capture::{LogWriter, Manifest, run_dir_name, seal};

use super::{Options, TraceError};

/// An open capture, or nothing where none was asked for.
#[derive(Default)]
pub(super) struct Recorder {
    log: Option<LogWriter>,
    no_seal: bool,
    buffer: Vec<u8>,
}

impl Recorder {
    pub fn begin(options: &Options, manifest: &Manifest) -> Result<Self, TraceError> {
        let Some(out) = &options.out else { return Ok(Recorder::default()) };
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").map_or_else(|_| "unknown".to_owned(), |it| it.trim().to_owned());
        let folder = out.join(run_dir_name(&host, 0, "trace", "event"));
        let log = LogWriter::create(&folder, manifest)?;
        Ok(Recorder { log: Some(log), no_seal: options.no_seal, buffer: Vec::new() })
    }

    /// Takes one record as it was read.
    pub fn take(&mut self, record: &[u8]) {
        if self.log.is_some() {
            self.buffer.extend_from_slice(record);
        }
    }

    /// Writes what was taken.
    pub fn flush(&mut self) -> Result<(), TraceError> {
        if let Some(log) = &mut self.log {
            log.events(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Writes the manifest as it is now.
    pub fn manifest(&mut self, manifest: &Manifest) -> Result<(), TraceError> {
        if let Some(log) = &mut self.log {
            log.manifest(manifest)?;
        }
        Ok(())
    }

    /// Ends the capture; returns its folder.
    pub fn end(mut self, manifest: &Manifest) -> Result<Option<PathBuf>, TraceError> {
        self.flush()?;
        let Some(log) = self.log.take() else { return Ok(None) };
        let folder = log.finish(manifest)?;
        if !self.no_seal {
            seal(&folder)?;
        }
        Ok(Some(folder))
    }
}
