//! What a session runs: operations and modes that were asked for, less what they or the device cannot do.
use super::progress::Progress;
use super::{Options, SessionError};
use crate::runner::{Endpoint, Params, RunnerError};
use crate::verbs::Device;
use capture::{Mode, Operation};

/// Which operation runs in which modes. What an operation cannot do is refused when it was asked for alone, and skipped by name otherwise.
pub(super) fn combinations(options: &Options, progress: &mut Progress) -> Result<Vec<(Operation, Vec<Mode>)>, SessionError> {
    let alone = options.ops.len() * options.modes.len() == 1;
    let mut all = Vec::new();
    let mut refused = None;
    for &op in &options.ops {
        let mut modes = Vec::new();
        for &mode in &options.modes {
            match params(options, op, mode).check() {
                Ok(()) => modes.push(mode),
                Err(error) if alone || !matches!(error, RunnerError::Refused { .. }) => return Err(error.into()),
                Err(error) => {
                    progress.say("skipped", &error.to_string());
                    refused = Some(error);
                }
            }
        }
        if !modes.is_empty() {
            all.push((op, modes));
        }
    }
    match refused {
        Some(error) if all.is_empty() => Err(error.into()),
        _ => Ok(all),
    }
}

/// What the device can do of it. The rest is skipped by name, and refused where nothing else is left.
pub(super) fn possible_on(
    device: &Device,
    combinations: Vec<(Operation, Vec<Mode>)>,
    progress: &mut Progress,
) -> Result<Vec<(Operation, Vec<Mode>)>, SessionError> {
    let mut possible = Vec::new();
    let mut refused = None;
    for (op, modes) in combinations {
        match Endpoint::supports(device, op) {
            Ok(()) => possible.push((op, modes)),
            Err(error) => {
                progress.say("skipped", &error.to_string());
                refused = Some(error);
            }
        }
    }
    match refused {
        Some(error) if possible.is_empty() => Err(error.into()),
        _ => Ok(possible),
    }
}

/// Parameters of a run, as far as the options decide them.
pub(super) fn params(options: &Options, op: Operation, mode: Mode) -> Params {
    Params {
        server_mode: options.server_mode.unwrap_or(mode),
        port: options.port,
        comp_vector: options.comp_vector,
        ..Params::new(op, mode, options.size_bytes)
    }
}
