//! Unread CQEs of a CQ, seen from outside: those that its process has not polled. Only soft-RoCE shows them: its queue lies in memory
//! that kernel and process share, consumer index included.

use aya::programs::{RawTracePoint, RawTracePointRunOptions, TestRun};
use ebpf_probes::Program;

use super::probes::Probes;
use crate::probes::ProbeError;

impl Probes {
    /// CQEs of a soft-RoCE CQ that its process has not polled at this moment; `None` where it is no longer that CQ (another restrack id
    /// or owner lies there), or the kernel's layout is not known.
    ///
    /// `cq` must be the address of a soft-RoCE CQ as a record gave it: for another driver's CQ the answer would be wrong.
    ///
    /// # Errors
    /// [`ProbeError`] when the program cannot be loaded or run.
    pub fn unread_cqes(&mut self, cq: u64, restrack_id: u32, owner_tgid: u32) -> Result<Option<u32>, ProbeError> {
        let name = Program::CqLook.symbol();
        let program = self.ebpf_mut().program_mut(name).ok_or(ProbeError::NotInObject { what: "program", name })?;
        let program: &mut RawTracePoint = program.try_into().map_err(|error| ProbeError::from_program("use", name, error))?;
        if program.fd().is_err() {
            program.load().map_err(|error| ProbeError::from_program("load", name, error))?;
        }
        let mut options = RawTracePointRunOptions::new();
        options.args[..3].copy_from_slice(&[cq, u64::from(restrack_id), u64::from(owner_tgid)]);
        let result = program.test_run(options).map_err(|error| ProbeError::from_program("run", name, error))?;
        Ok(result.return_value.checked_sub(1))
    }
}
