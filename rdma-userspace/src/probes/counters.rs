//! What the probes counted: hits by program, records by kind.

use aya::maps::{MapData, PerCpuArray};
use ebpf_probes::config::COUNTERS_MAP;
use ebpf_probes::{Kind, Program, counters};

use super::ProbeError;
use super::drain::Delivered;

/// Records of one kind since the probes were loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindLoss {
    /// The kind.
    pub kind: Kind,
    /// Records that the probes tried to write.
    pub attempted: u64,
    /// Records that the reader got.
    pub delivered: u64,
    /// Records that found no room in the ring.
    pub lost: u64,
}

/// What was recorded and what was lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// By kind, in the order of [`Kind::ALL`]; kinds that never happened are left out.
    pub kinds: Vec<KindLoss>,
    /// Runs of programs that the kernel itself skipped; `None`: this kernel does not tell.
    pub missed_probes: Option<u64>,
}

impl Losses {
    /// Records lost in all.
    pub fn lost(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.lost).sum()
    }

    /// The counts of one kind; zeros when it never happened.
    pub fn of(&self, kind: Kind) -> KindLoss {
        let none = KindLoss { kind, attempted: 0, delivered: 0, lost: 0 };
        self.kinds.iter().copied().find(|row| row.kind == kind).unwrap_or(none)
    }
}

/// Counters of all CPUs, summed.
pub(super) struct Counters(Vec<u64>);

impl Counters {
    pub(super) fn read(map: &PerCpuArray<MapData, [u64; counters::LEN]>) -> Result<Self, ProbeError> {
        let rows = map.get(&0, 0).map_err(|error| ProbeError::from_map(COUNTERS_MAP, error))?;
        let mut sums = vec![0_u64; counters::LEN];
        for row in rows.iter() {
            for (sum, value) in sums.iter_mut().zip(row) {
                *sum += value;
            }
        }
        Ok(Counters(sums))
    }

    pub(super) fn hits(&self, program: Program) -> u64 {
        self.0[counters::HITS + program as usize]
    }

    pub(super) fn losses(&self, delivered: &Delivered) -> Vec<KindLoss> {
        let row = |kind: Kind| {
            let at = kind as usize;
            KindLoss { kind, attempted: self.0[counters::ATTEMPTED + at], delivered: delivered.of(at), lost: self.0[counters::LOST + at] }
        };
        Kind::ALL.iter().map(|kind| row(*kind)).filter(|row| row.attempted > 0 || row.delivered > 0).collect()
    }
}
