//! Exit codes, and which error ends with which.
use crate::control::ControlError;
use crate::session::SessionError;
use crate::soft_roce::SoftRoceError;
use crate::trace::TraceError;
use std::process::ExitCode;

/// Something failed.
pub const FAILED: u8 = 1;
/// The command was used wrongly.
pub const USAGE: u8 = 2;
/// More records or samples were lost than the limit.
pub const LOSS: u8 = 3;
/// A gate was not met.
pub const GATE: u8 = 4;
/// The machine was too noisy to say.
pub const UNSTABLE: u8 = 5;
/// Something that the job needs is missing: a device, a package.
pub const INFRASTRUCTURE: u8 = 69;

/// What was asked for cannot be asked for; the text says what can.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// The exit code that belongs to an error.
pub fn code_of(error: &anyhow::Error) -> ExitCode {
    let session = error.downcast_ref::<SessionError>().map(SessionError::exit_code);
    let soft_roce = error.downcast_ref::<SoftRoceError>().map(SoftRoceError::exit_code);
    let usage = error.is::<UsageError>() || matches!(error.downcast_ref(), Some(ControlError::Token { .. }));
    let nothing_to_trace = matches!(error.downcast_ref(), Some(TraceError::NoHandler { .. }));
    let other = usage.then_some(USAGE).or(nothing_to_trace.then_some(INFRASTRUCTURE));
    ExitCode::from(session.or(soft_roce).or(other).unwrap_or(FAILED))
}
