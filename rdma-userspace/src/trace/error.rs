//! Why a trace fails, each a sentence for the user.
use rdmascope_core::probes::ProbeError;
use std::path::PathBuf;

/// Why tracing failed.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// Probes or the process.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// Without the handler's probe no event can be seen, however long one waits.
    #[error("nothing can be traced on this kernel: the probe of the completion handler is absent ({reason})")]
    NoHandler {
        /// Why it is absent.
        reason: String,
    },
    /// Nothing of that kind is there.
    #[error("there is no process {what}; --wait waits for one")]
    NoSuchProcess {
        /// What was asked for, such as `called ib_send_lat`.
        what: String,
    },
    /// No such RDMA device.
    #[error("there is no RDMA device {name}; this host has {}", if there.is_empty() { "none".to_owned() } else { there.join(", ") })]
    NoDevice {
        /// What was asked for.
        name: String,
        /// What is there.
        there: Vec<String>,
    },
    /// The command could not be started.
    #[error("cannot start {command}: {error}")]
    Start {
        /// The program.
        command: String,
        /// What the system said.
        #[source]
        error: std::io::Error,
    },
    /// The result could not be written.
    #[error("cannot write the trace: {0}")]
    Output(#[from] std::io::Error),
    /// A file could not be written.
    #[error("cannot write {}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: std::io::Error,
    },
    /// The capture could not be written.
    #[error(transparent)]
    Capture(#[from] capture::Error),
}
