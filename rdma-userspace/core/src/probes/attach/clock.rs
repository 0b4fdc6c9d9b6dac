//! The proof that the probes' clock is the runner's: a kernel stamp taken between two of our own.

use aya::Ebpf;
use aya::maps::{Array, MapData};
use aya::programs::{RawTracePoint, RawTracePointRunOptions, TestRun};
use ebpf_probes::Program;
use ebpf_probes::config::CLOCK_MAP;

use crate::probes::ProbeError;

/// Brackets that are tried; the narrowest is kept.
const TRIES: u32 = 16;

/// One bracket, `CLOCK_MONOTONIC` in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockCheck {
    /// `clock_gettime` before.
    pub before_ns: u64,
    /// `bpf_ktime_get_ns` of a program run in between.
    pub kernel_ns: u64,
    /// `clock_gettime` after.
    pub after_ns: u64,
}

impl ClockCheck {
    /// Whether the kernel's stamp lies between the two: the clocks are the same to within the width of the bracket.
    pub fn holds(&self) -> bool {
        (self.before_ns..=self.after_ns).contains(&self.kernel_ns)
    }

    /// Width of the bracket in nanoseconds: the bound on the difference of the clocks.
    pub fn width_ns(&self) -> u64 {
        self.after_ns.saturating_sub(self.before_ns)
    }
}

/// `CLOCK_MONOTONIC` in nanoseconds.
pub fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec for the whole call; CLOCK_MONOTONIC exists on every Linux, so the call cannot fail.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Runs the clock program a few times (`BPF_PROG_TEST_RUN`) and keeps the narrowest bracket; a bracket that does not hold is
/// kept before any that does.
pub(super) fn check(ebpf: &mut Ebpf) -> Result<ClockCheck, ProbeError> {
    let name = Program::ClockProbe.symbol();
    let mut stored: Array<MapData, u64> = {
        let map = ebpf.take_map(CLOCK_MAP).ok_or(ProbeError::NotInObject { what: "map", name: CLOCK_MAP })?;
        Array::try_from(map).map_err(|error| ProbeError::from_map(CLOCK_MAP, error))?
    };
    let program = ebpf.program_mut(name).ok_or(ProbeError::NotInObject { what: "program", name })?;
    let program: &mut RawTracePoint = program.try_into().map_err(|error| ProbeError::from_program("use", name, error))?;
    program.load().map_err(|error| ProbeError::from_program("load", name, error))?;
    let mut best: Option<ClockCheck> = None;
    for _ in 0..TRIES {
        stored.set(0, 0, 0).map_err(|error| ProbeError::from_map(CLOCK_MAP, error))?;
        let before_ns = monotonic_ns();
        program.test_run(RawTracePointRunOptions::new()).map_err(|error| ProbeError::from_program("run", name, error))?;
        let after_ns = monotonic_ns();
        let kernel_ns = stored.get(&0, 0).map_err(|error| ProbeError::from_map(CLOCK_MAP, error))?;
        let now = ClockCheck { before_ns, kernel_ns, after_ns };
        if !now.holds() {
            return Ok(now);
        }
        if best.is_none_or(|best| now.width_ns() < best.width_ns()) {
            best = Some(now);
        }
    }
    Ok(best.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_outside_the_bracket_does_not_hold() {
        assert!(ClockCheck { before_ns: 10, kernel_ns: 15, after_ns: 20 }.holds());
        assert!(!ClockCheck { before_ns: 10, kernel_ns: 9, after_ns: 20 }.holds());
        assert!(!ClockCheck { before_ns: 10, kernel_ns: 21, after_ns: 20 }.holds());
        assert!(!ClockCheck { before_ns: 10, kernel_ns: 0, after_ns: 20 }.holds(), "a program that never ran");
    }

    #[test]
    fn the_clock_runs_forward() {
        let first = monotonic_ns();
        assert!(first > 0 && monotonic_ns() >= first);
    }
}
