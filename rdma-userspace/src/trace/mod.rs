//! `trace`: any verbs program in event mode, seen from outside. Per CQ: from the interrupt over the completion handler to the read that
//! hands the event to the program. `analysis::trace` says what the records mean; here they are collected, shown and recorded.
//!
//! [`targets`] is what was asked for, [`processes`] finds and follows the programs, [`watch`] attaches and collects, [`live`] and
//! [`calls`] print, [`recording`] and [`manifest`] make the capture.
//!
//! Nothing of the program is changed or slowed but by the probes themselves. What is seen: kernel events. What is not: polls, and
//! completions that the program finds by polling (on hardware they leave no trace in the kernel).

mod calls;
mod error;
mod existing_cqs;
mod live;
mod manifest;
mod processes;
mod recording;
mod targets;
mod watch;

use capture::Level;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use analysis::trace::model::TraceReport;
use ebpf_probes::{Kind, Program};

pub use error::TraceError;
use rdmascope_core::machine::Root;
use rdmascope_core::probes::{Plan, ProbeError};
pub use targets::{Selection, Targets};

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
/// Programs that write no record and prepare those of another one: at the entry of a function whose return is recorded.
const PREPARING: &[Program] = &[Program::EventReadEntry, Program::RestrackAdd];

/// What to trace, and what to do with it.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The programs.
    pub targets: Targets,
    /// How long; `None`: until stopped, or until the programs have ended.
    pub duration: Option<Duration>,
    /// Time between two updates of the live view; zero: none.
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

/// Traces until the time is over, `stop` is set or the programs have ended, then writes the tables to `out`.
///
/// # Errors
/// [`TraceError`]: a process or device that is not there, no probe to be had, a file that cannot be written.
pub fn run(options: &Options, stop: &AtomicBool, out: &mut impl std::io::Write) -> Result<TraceReport, TraceError> {
    let mut plan = Plan::for_kernel(Root::live(), Level::Trace).map_err(ProbeError::from)?;
    plan.hooks.retain(|hook| PREPARING.contains(&hook.program) || hook.gives.iter().any(|kind| KINDS.contains(kind)));
    if let Some(absent) = plan.hooks.iter().find(|hook| hook.program == Program::CompHandler && hook.symbol.is_none()) {
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
