//! The capture of a trace while it is being made: the records as they come, the manifest at both ends.

use std::path::PathBuf;

use capture::{LogWriter, Manifest, Mode, Operation, run_dir_name, seal};

use super::{Options, TraceError};

/// An open capture, or nothing where none was asked for.
#[derive(Default)]
pub(super) struct Recording {
    log: Option<LogWriter>,
    no_seal: bool,
    buffer: Vec<u8>,
}

impl Recording {
    pub fn begin(options: &Options, manifest: &Manifest) -> Result<Self, TraceError> {
        let Some(out) = &options.out else { return Ok(Recording::default()) };
        let host = rdmascope_core::machine::host::name();
        let folder = out.join(run_dir_name(&host, 0, Operation::Foreign.name(), Mode::Event.name()));
        let log = LogWriter::create(&folder, manifest)?;
        Ok(Recording { log: Some(log), no_seal: options.no_seal, buffer: Vec::new() })
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
