//! What the probes counted: hits by program, records by kind.

use aya::maps::{Array, MapData};
use ebpf_probes::config::COUNTERS_MAP;
use ebpf_probes::{Kind, Program, counters};

use super::drain::Delivered;
use crate::probes::ProbeError;

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

/// The map of the counters: one row per CPU.
pub(super) type Rows = Array<MapData, [u64; counters::LEN]>;

/// Counters of all CPUs, summed, and the hits of each.
pub(super) struct Counters {
    sums: Vec<u64>,
    hits: Vec<Vec<u64>>,
}

impl Counters {
    pub(super) fn read(map: &Rows) -> Result<Self, ProbeError> {
        let mut sums = vec![0_u64; counters::LEN];
        let mut hits = Vec::new();
        for cpu in 0..map.len() {
            let row = map.get(&cpu, 0).map_err(|error| ProbeError::from_map(COUNTERS_MAP, error))?;
            for (sum, value) in sums.iter_mut().zip(&row) {
                *sum += value;
            }
            hits.push(row[counters::HITS..counters::HITS + counters::PROGRAMS_MAX as usize].to_vec());
        }
        Ok(Counters { sums, hits })
    }

    /// Hits of a program by CPU number.
    pub(super) fn hits_by_cpu(&self, program: Program) -> Vec<u64> {
        self.hits.iter().map(|row| row[program as usize]).collect()
    }

    pub(super) fn hits(&self, program: Program) -> u64 {
        self.sums[counters::HITS + program as usize]
    }

    pub(super) fn losses(&self, delivered: &Delivered) -> Vec<KindLoss> {
        let row = |kind: Kind| {
            let sum = |lanes: [usize; counters::LANES]| lanes.iter().map(|at| self.sums[*at]).sum();
            KindLoss {
                kind,
                attempted: sum(counters::all_attempted(kind)),
                delivered: delivered.of(kind as usize),
                lost: sum(counters::all_lost(kind)),
            }
        };
        Kind::ALL.iter().map(|kind| row(*kind)).filter(|row| row.attempted > 0 || row.delivered > 0).collect()
    }
}
