//! Layout of the counters: one row of `u64` per CPU, so that a probe pays for one lookup in an array, which the verifier puts in
//! place (in per-CPU arrays only since 6.10).
//!
//! A row is [`LEN`] numbers: hits by program, then attempted records, then lost records, both by lane and kind. The probes add
//! without atomics (5.10 has none that fit): a row belongs to one CPU, the kernel keeps a program from nesting in itself there, and
//! programs that write records of one kind are in lanes of their own, so that one may interrupt the other between load and store.

use crate::config::KINDS_MAX;
use crate::{Kind, Program};

/// Programs are fewer than this.
pub const PROGRAMS_MAX: u32 = 128;
/// Lanes of each kind: programs of one kind whose numbers differ modulo this count apart.
pub const LANES: usize = 4;
/// First index of the hits, indexed by [`crate::Program`].
pub const HITS: usize = 0;
const ATTEMPTED: usize = HITS + PROGRAMS_MAX as usize;
const LOST: usize = ATTEMPTED + LANES * KINDS_MAX as usize;
/// Numbers in a row.
pub const LEN: usize = LOST + LANES * KINDS_MAX as usize;

const fn lane(kind: Kind, program: Program) -> usize {
    lane_of(kind, program as usize % LANES)
}

const fn lane_of(kind: Kind, lane: usize) -> usize {
    lane * KINDS_MAX as usize + kind as usize
}

/// Index of the records of a kind that a program tried to write.
pub const fn attempted(kind: Kind, program: Program) -> usize {
    ATTEMPTED + lane(kind, program)
}

/// Index of the records of a kind that found no room in the ring.
pub const fn lost(kind: Kind, program: Program) -> usize {
    LOST + lane(kind, program)
}

/// Indices of all attempted records of a kind, one per lane.
pub fn all_attempted(kind: Kind) -> [usize; LANES] {
    core::array::from_fn(|lane| ATTEMPTED + lane_of(kind, lane))
}

/// Indices of all lost records of a kind, one per lane.
pub fn all_lost(kind: Kind) -> [usize; LANES] {
    core::array::from_fn(|lane| LOST + lane_of(kind, lane))
}
