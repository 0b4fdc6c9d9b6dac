//! The programs' own diagnostics: a log that goes to standard error.

use aya::Ebpf;
use aya_log::EbpfLogger;
use log::{Log, Metadata, Record};

use crate::probes::ProbeError;

/// Writes log lines to standard error.
pub(super) struct StderrLog;

impl Log for StderrLog {
    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        eprintln!("probe: {}", record.args());
    }

    fn flush(&self) {}
}

/// Connects to the programs' log.
pub(super) fn logger(ebpf: &mut Ebpf) -> Result<EbpfLogger<StderrLog>, ProbeError> {
    EbpfLogger::init_with_logger(ebpf, StderrLog).map_err(|error| {
        eprintln!("probes: no debug log: {error}");
        ProbeError::NotInObject { what: "map", name: "AYA_LOGS" }
    })
}
