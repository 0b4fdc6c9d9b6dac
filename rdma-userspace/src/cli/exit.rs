//! Exit codes, and which error ends with which.
use crate::trace::TraceError;
use rdmascope_core::control::ControlError;
use rdmascope_core::runner::RunnerError;
use rdmascope_core::session::SessionError;
use rdmascope_core::soft_roce::SoftRoceError;
use rdmascope_core::verbs::VerbsError;
use std::process::ExitCode;

/// Something failed.
pub const FAILED: u8 = 1;
/// The command was used wrongly.
pub const USAGE: u8 = 2;
/// More records or samples were lost than the limit.
pub const LOSS: u8 = 3;
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
    let session = error.downcast_ref().map(of_session);
    let soft_roce = error.downcast_ref::<SoftRoceError>().map(SoftRoceError::exit_code);
    let usage = error.is::<UsageError>() || matches!(error.downcast_ref(), Some(ControlError::Token { .. }));
    let nothing_to_trace = matches!(error.downcast_ref(), Some(TraceError::NoHandler { .. } | TraceError::NoDevice { .. }));
    let other = usage.then_some(USAGE).or(nothing_to_trace.then_some(INFRASTRUCTURE));
    ExitCode::from(session.or(soft_roce).or(other).unwrap_or(FAILED))
}

fn of_session(error: &SessionError) -> u8 {
    match error {
        SessionError::Unstable { .. } => UNSTABLE,
        SessionError::NoDevice(_) | SessionError::Verbs(VerbsError::ListDevices(_) | VerbsError::NoDevice { .. }) => INFRASTRUCTURE,
        SessionError::NoSuchCpu { .. } | SessionError::Folder(_) | SessionError::Runner(RunnerError::Refused { .. }) => USAGE,
        _ => FAILED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_ends_with_the_code_of_its_kind() {
        let no_cpu = SessionError::NoSuchCpu { flag: "--cpu", cpu: 9, allowed: "0".to_owned() };
        let denied = SessionError::Verbs(VerbsError::ListDevices(std::io::Error::from_raw_os_error(libc::EACCES)));
        for (error, code) in [
            (no_cpu, USAGE),
            (denied, INFRASTRUCTURE),
            (SessionError::NoDevice("none".to_owned()), INFRASTRUCTURE),
            (SessionError::Interrupted, FAILED),
        ] {
            assert_eq!(of_session(&error), code, "{error}");
        }
        assert_eq!(code_of(&UsageError("so".to_owned()).into()), ExitCode::from(USAGE));
        assert_eq!(code_of(&anyhow::anyhow!("so")), ExitCode::from(FAILED));
    }
}
