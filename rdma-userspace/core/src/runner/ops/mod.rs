//! Operations: one file each, with its description, the client's step and the server's. This is their one list.
mod atomic;
mod cmp_swap;
mod description;
mod fetch_add;
mod read;
mod send;
mod step;
mod write;
mod write_pp;

pub(super) use description::{Description, LocalArea};
pub(super) use step::{ClientOperation, Measured, Step};

use super::error::RunnerError;
use capture::Operation;

/// What is done with an operation once its type is known.
pub(super) trait WithOperation {
    /// What comes of it.
    type Output;
    /// Does it.
    fn with<O: ClientOperation>(self) -> Self::Output;
}

/// Does something with the type of an operation.
///
/// # Errors
/// [`RunnerError::Refused`] for what is no operation of ours.
pub(super) fn with_operation<W: WithOperation>(op: Operation, then: W) -> Result<W::Output, RunnerError> {
    Ok(match op {
        Operation::Send => then.with::<send::Send>(),
        Operation::Write => then.with::<write::Write>(),
        Operation::WritePp => then.with::<write_pp::WritePp>(),
        Operation::Read => then.with::<read::Read>(),
        Operation::FetchAdd => then.with::<fetch_add::FetchAdd>(),
        Operation::CmpSwap => then.with::<cmp_swap::CmpSwap>(),
        Operation::Foreign => {
            let why = "it stands for what other programs do; a run measures one of its own".into();
            return Err(RunnerError::Refused { what: format!("The operation {op}").into(), why });
        }
    })
}

/// What an operation is.
///
/// # Errors
/// [`RunnerError::Refused`] for what is no operation of ours.
pub(super) fn description(op: Operation) -> Result<&'static Description, RunnerError> {
    struct Describe;
    impl WithOperation for Describe {
        type Output = &'static Description;
        fn with<O: ClientOperation>(self) -> Self::Output {
            O::DESCRIPTION
        }
    }
    with_operation(op, Describe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use capture::Side;
    use capture::named::Named;
    use capture::operation::EndsWith;

    #[test]
    fn every_measured_operation_is_described_and_no_other() {
        for &op in Operation::ALL {
            match description(op) {
                Ok(_) => assert!(Operation::MEASURED.contains(&op), "{op}"),
                Err(error) => {
                    assert!(!Operation::MEASURED.contains(&op), "{op}");
                    assert!(error.to_string().contains(op.name()), "{error}");
                }
            }
        }
    }

    #[test]
    fn memory_is_lent_only_where_the_operation_needs_it() {
        // Right of the peer: write, read, atomic; on the client's memory, on the server's.
        let expected = |op| match op {
            Operation::Send | Operation::Foreign => ([false; 3], [false; 3]),
            Operation::Write => ([false; 3], [true, false, false]),
            Operation::WritePp => ([true, false, false], [true, false, false]),
            Operation::Read => ([false; 3], [false, true, false]),
            Operation::FetchAdd | Operation::CmpSwap => ([false; 3], [false, false, true]),
        };
        for &op in Operation::MEASURED {
            let it = description(op).expect("described");
            let rights = |side| {
                let lends = it.lends(side);
                assert!(lends.local_write, "{op}");
                [lends.remote_write, lends.remote_read, lends.remote_atomic]
            };
            assert_eq!((rights(Side::Client), rights(Side::Server)), expected(op), "{op}");
            assert_eq!(it.reaches_peer(Side::Client), op != Operation::Send, "{op}");
            assert_eq!(it.reaches_peer(Side::Server), op == Operation::WritePp, "{op}");
            assert_eq!((it.alignment == 8, it.size.is_some()), (op.is_atomic(), op.is_atomic()), "{op}");
            assert_eq!(it.takes_receives, op.ends_with() == EndsWith::Receive, "{op}");
        }
    }
}
