//! `trace`: any verbs program in event mode, seen from outside. Per CQ: from the interrupt over the completion handler to the read that
//! hands the event to the program. What the records mean is `analysis::trace`'s matter; here they are collected, shown and kept.
//!
//! Nothing of the program is changed or slowed but by the probes themselves. What is seen: kernel events. What is not: polls, and
//! completions that the program finds by polling (on hardware they leave no trace in the kernel).

mod calls;
mod known;
mod live;
mod manifest;
mod recorder;
mod targets;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use analysis::trace::model::TraceReport;
use ebpf_probes::Kind;

use crate::probes::{Level, Plan, ProbeError};
pub use targets::{Targets, Which};

/// Records that a trace needs: the fewer probes, the less the program is slowed.
const KINDS: &[Kind] = &[
    Kind::CompHandler,
    Kind::EventRead,
    Kind::SchedWaking,
    Kind::SchedWakeup,
    Kind::SchedSwitch,
    Kind::CqPost,
    Kind::CqCreate,
    Kind::CqDestroy,
    Kind::CqArm,
    Kind::CqError,
    Kind::IrqEntry,
    Kind::IrqExit,
    Kind::SoftirqRaise,
    Kind::SoftirqEntry,
    Kind::SoftirqExit,
    Kind::TaskletEntry,
    Kind::DriverBottomHalf,
    Kind::NapiPoll,
    Kind::WorkQueue,
    Kind::WorkStart,
];
/// Hooks that write no record and prepare those of another one.
const ENTRIES: &[&str] = &["event read begins", "CQ being created"];
/// Hook of the completion handler.
const HANDLER: &str = "K5 completion handler";

/// What to trace, and what to do with it.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The programs.
    pub targets: Targets,
    /// How long; `None`: until stopped, or until the programs have ended.
    pub duration: Option<Duration>,
    /// Time between two looks of the live view; zero: none.
    pub interval: Duration,
    /// Redraw the live view in place; else it is lines.
    pub is_terminal: bool,
    /// Print calls as they happen, instead of the live view.
    pub calls: bool,
    /// Lines of calls per second at most.
    pub calls_per_second: u32,
    /// Write every call to this file.
    pub calls_to: Option<PathBuf>,
    /// Print the histograms at the end.
    pub histograms: bool,
    /// Where to write the result as JSON.
    pub json: Option<PathBuf>,
    /// Folder for a capture.
    pub out: Option<PathBuf>,
    /// Leave the capture as a log.
    pub no_seal: bool,
}

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
    Capture(#[from] analysis::capture::Error),
}

/// Traces until the time is over, `stop` is set or the programs have ended, then writes the tables to `out`.
///
/// # Errors
/// [`TraceError`]: a process or device that is not there, no probe to be had, a file that cannot be written.
pub fn run(options: &Options, stop: &AtomicBool, out: &mut impl std::io::Write) -> Result<TraceReport, TraceError> {
    let mut plan = Plan::for_kernel(Path::new("/"), Level::Trace).map_err(ProbeError::from)?;
    plan.hooks.retain(|hook| ENTRIES.contains(&hook.hook) || hook.gives.iter().any(|kind| KINDS.contains(kind)));
    if let Some(absent) = plan.hooks.iter().find(|hook| hook.hook == HANDLER && hook.symbol.is_none()) {
        return Err(TraceError::NoHandler { reason: absent.reason.clone() });
    }
    let report = watch::watch(options, &plan, stop, out)?;
    write!(out, "{}", analysis::trace::text::render(&report, options.histograms))?;
    if let Some(path) = &options.json {
        let failed = |error| TraceError::File { path: path.clone(), error };
        let json = serde_json::to_vec_pretty(&report).map_err(|error| failed(error.into()))?;
        std::fs::write(path, json).map_err(failed)?;
    }
    out.flush()?;
    Ok(report)
}
