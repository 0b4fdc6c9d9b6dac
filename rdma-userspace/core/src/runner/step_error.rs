//! Why one step of the measured loop did not come to its end.
use super::error::RunnerError;
use crate::verbs::{Completion, VerbsError};

/// Why a step did not come to its end.
#[derive(Debug)]
pub(crate) enum StepError {
    /// The monitor's flag was seen.
    Stopped,
    /// An error.
    Failed(Box<RunnerError>),
    /// A completion with an error status; the cause may be on the other queue.
    BadCompletion(&'static str, Completion),
}

impl From<VerbsError> for StepError {
    #[cold]
    fn from(error: VerbsError) -> Self {
        Self::Failed(Box::new(error.into()))
    }
}

impl From<RunnerError> for StepError {
    #[cold]
    fn from(error: RunnerError) -> Self {
        Self::Failed(Box::new(error))
    }
}
