//! Records made to order, without a hook in the kernel: what the bench of the reader drains. Works on any kernel that runs BPF.

use std::os::fd::AsFd;

use aya::Ebpf;
use aya::maps::{Array, RingBuf};
use aya::programs::RawTracePoint;
use ebpf_probes::config::{COUNTERS_MAP, GENERATED_PER_RUN, RING_MAP};
use ebpf_probes::{Kind, Program};

use super::bpf_calls::run_once;
use super::counters::{Counters, KindLoss, Rows};
use super::drain::{Delivered, Drain};
use super::load::{lift_memlock, load_object, page_bytes};
use super::object::object;
use crate::probes::ProbeError;

/// A program that writes records when it is run.
pub struct Generator {
    ebpf: Ebpf,
    counters: Rows,
    delivered: std::sync::Arc<Delivered>,
    next: u64,
}

impl Generator {
    /// Loads the program with a ring of its own; the other half reads it.
    ///
    /// # Errors
    /// As [`super::Probes::load`].
    pub fn load(ring_bytes: u32) -> Result<(Generator, Drain), ProbeError> {
        if object().is_empty() {
            return Err(ProbeError::NoObject);
        }
        lift_memlock();
        let ring_bytes = ring_bytes.next_power_of_two().max(page_bytes());
        let mut ebpf = load_object(&[], ring_bytes)?;
        let mut take = |name| ebpf.take_map(name).ok_or(ProbeError::NotInObject { what: "map", name });
        let counters = Array::try_from(take(COUNTERS_MAP)?).map_err(|error| ProbeError::from_map(COUNTERS_MAP, error))?;
        let ring = RingBuf::try_from(take(RING_MAP)?).map_err(|error| ProbeError::from_map(RING_MAP, error))?;
        let name = Program::Generate.symbol();
        let program = ebpf.program_mut(name).ok_or(ProbeError::NotInObject { what: "program", name })?;
        let program: &mut RawTracePoint = program.try_into().map_err(|error| ProbeError::from_program("use", name, error))?;
        program.load().map_err(|error| ProbeError::from_program("load", name, error))?;
        let delivered = Delivered::new();
        let drain = Drain::new(ring, delivered.clone(), ring_bytes);
        Ok((Generator { ebpf, counters, delivered, next: 0 }, drain))
    }

    /// Runs the program once on this CPU; returns how many records it tried to write. Their `wr_id`s count on from run to run.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn run(&mut self) -> std::io::Result<u64> {
        let program = self.ebpf.program(Program::Generate.symbol());
        let fd = program.and_then(|program| program.fd().ok()).ok_or_else(|| std::io::Error::from_raw_os_error(libc::EBADF))?;
        run_once(fd.as_fd(), self.next)?;
        self.next += u64::from(GENERATED_PER_RUN);
        Ok(u64::from(GENERATED_PER_RUN))
    }

    /// What became of the records.
    ///
    /// # Errors
    /// [`ProbeError::Map`] when the counters cannot be read.
    pub fn losses(&self) -> Result<KindLoss, ProbeError> {
        let rows = Counters::read(&self.counters)?.losses(&self.delivered);
        let none = KindLoss { kind: Kind::CqPost, attempted: 0, delivered: 0, lost: 0 };
        Ok(rows.into_iter().find(|row| row.kind == Kind::CqPost).unwrap_or(none))
    }
}
