//! Layout of the counters: one row of `u64` per CPU, so that a probe pays for one map lookup.
//!
//! A row is [`LEN`] numbers: hits by program, then attempted records by kind, then lost records by kind. The probes add
//! without atomics: a row belongs to one CPU, and the kernel keeps two probes of one kind from nesting on a CPU.

use crate::config::KINDS_MAX;

/// Programs are fewer than this.
pub const PROGRAMS_MAX: u32 = 128;
/// First index of the hits, indexed by [`crate::Program`].
pub const HITS: usize = 0;
/// First index of the attempted records, indexed by [`crate::Kind`].
pub const ATTEMPTED: usize = HITS + PROGRAMS_MAX as usize;
/// First index of the records that found no room in the ring, indexed by [`crate::Kind`].
pub const LOST: usize = ATTEMPTED + KINDS_MAX as usize;
/// Numbers in a row.
pub const LEN: usize = LOST + KINDS_MAX as usize;
