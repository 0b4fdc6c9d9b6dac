//! Exit codes, and which error ends with which.
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

/// Flags that clap accepts and that make no sense together, or here.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// The exit code that belongs to an error.
pub fn code_of(error: &anyhow::Error) -> ExitCode {
    let session = error.downcast_ref::<SessionError>().map(SessionError::exit_code);
    let soft_roce = error.downcast_ref::<SoftRoceError>().map(SoftRoceError::exit_code);
    let usage = error.is::<UsageError>().then_some(USAGE);
    let trace = error.downcast_ref::<TraceError>().map(TraceError::exit_code);
    ExitCode::from(session.or(soft_roce).or(usage).or(trace).unwrap_or(FAILED))
}
