//! Is there room for locked memory? Asked before registering, so that the answer is a sentence and not ENOMEM.
use super::error::VerbsError;
use super::ffi::os;
use crate::machine::proc_text::field;
use crate::machine::rights::{CapabilitySet, effective_in};

const STATUS: &str = "/proc/thread-self/status";

/// What this thread may still lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemlockBudget {
    /// Soft limit in bytes; `None`: unlimited.
    pub limit_bytes: Option<u64>,
    /// Locked or pinned already, in bytes: the kernel counts both apart, each against the same limit; this is the larger.
    pub used_bytes: u64,
    /// `CAP_IPC_LOCK`: the limit does not apply.
    pub exempt: bool,
}

impl MemlockBudget {
    /// Reads limit, use and capability of the calling thread.
    pub fn read() -> Result<Self, VerbsError> {
        let failed = |source| VerbsError::ReadMemlock { path: STATUS, source };
        let limit_bytes = os::memlock_limit_bytes().map_err(failed)?;
        let status = std::fs::read_to_string(STATUS).map_err(failed)?;
        Ok(Self::parse(limit_bytes, &status))
    }

    fn parse(limit_bytes: Option<u64>, status: &str) -> Self {
        let kilobytes = |name| {
            field(status, name).and_then(|text| text.strip_suffix("kB")).and_then(|text| text.trim().parse::<u64>().ok()).unwrap_or(0)
                * 1024
        };
        let exempt = effective_in(status).is_some_and(|held| held.contains(CapabilitySet::IPC_LOCK));
        Self { limit_bytes, used_bytes: kilobytes("VmLck").max(kilobytes("VmPin")), exempt }
    }

    /// Refuses what the kernel would refuse.
    pub fn check(&self, needed_bytes: u64) -> Result<(), VerbsError> {
        match self.limit_bytes {
            Some(limit_bytes) if !self.exempt && self.used_bytes.saturating_add(needed_bytes) > limit_bytes => {
                Err(VerbsError::Memlock { needed_bytes, limit_bytes, used_bytes: self.used_bytes })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDINARY: &str = "Name:\tx\nVmLck:\t      64 kB\nVmPin:\t     128 kB\nCapEff:\t0000000000000000\n";

    #[test]
    fn the_limit_holds_for_ordinary_users_only() {
        let budget = MemlockBudget::parse(Some(1 << 20), ORDINARY);
        assert_eq!(budget, MemlockBudget { limit_bytes: Some(1 << 20), used_bytes: 128 << 10, exempt: false });
        budget.check((1 << 20) - (128 << 10)).unwrap();
        let error = budget.check((1 << 20) - (128 << 10) + 1).unwrap_err().to_string();
        assert!(error.contains("1048576") && error.contains("131072") && error.contains("ulimit -l"), "{error}");
        let root = MemlockBudget::parse(Some(0), &ORDINARY.replace("0000000000000000", "000001ffffffffff"));
        assert!(root.exempt);
        root.check(u64::MAX).unwrap();
        MemlockBudget::parse(None, ORDINARY).check(u64::MAX).unwrap();
    }

    #[test]
    fn the_real_status_is_read() {
        MemlockBudget::read().unwrap();
    }
}
