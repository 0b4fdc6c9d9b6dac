//! What the programs record: threads, processes and queue pairs that are added and taken out while the probes are loaded.

use ebpf_probes::config::TRACKED_POLLER;

use super::probes::Probes;
use super::process::threads_of;
use crate::probes::ProbeError;

impl Probes {
    /// Records the scheduling of a thread.
    ///
    /// # Errors
    /// [`ProbeError::Map`] when the set is full.
    pub fn track_pid(&mut self, tid: u32) -> Result<(), ProbeError> {
        self.tracked.pids.add(tid)
    }

    /// As [`Probes::track_pid`], for a thread that polls: also everything that takes its CPU, from begin to end.
    ///
    /// # Errors
    /// [`ProbeError::Map`] when the set is full.
    pub fn track_poller(&mut self, tid: u32) -> Result<(), ProbeError> {
        self.tracked.pids.set(tid, TRACKED_POLLER)
    }

    /// Stops recording a thread's scheduling.
    ///
    /// # Errors
    /// [`ProbeError::Map`].
    pub fn untrack_pid(&mut self, tid: u32) -> Result<(), ProbeError> {
        self.tracked.pids.remove(tid)
    }

    /// Records the completion handlers of a process's CQs.
    ///
    /// # Errors
    /// [`ProbeError::Map`] when the set is full.
    pub fn track_tgid(&mut self, tgid: u32) -> Result<(), ProbeError> {
        self.tracked.tgids.add(tgid)
    }

    /// Stops recording a process's completion handlers.
    ///
    /// # Errors
    /// [`ProbeError::Map`].
    pub fn untrack_tgid(&mut self, tgid: u32) -> Result<(), ProbeError> {
        self.tracked.tgids.remove(tgid)
    }

    /// Records the rxe events of a queue pair.
    ///
    /// # Errors
    /// [`ProbeError::Map`] when the set is full.
    pub fn track_qpn(&mut self, qpn: u32) -> Result<(), ProbeError> {
        self.tracked.qpns.add(qpn)
    }

    /// Stops recording a queue pair's rxe events.
    ///
    /// # Errors
    /// [`ProbeError::Map`].
    pub fn untrack_qpn(&mut self, qpn: u32) -> Result<(), ProbeError> {
        self.tracked.qpns.remove(qpn)
    }

    /// Records a process: its CQs and the scheduling of all threads that it has now. Returns the threads.
    ///
    /// # Errors
    /// [`ProbeError::NoProcess`] when it is gone, [`ProbeError::Map`] when a set is full.
    pub fn track_process(&mut self, pid: u32) -> Result<Vec<u32>, ProbeError> {
        let threads = threads_of(pid)?;
        self.track_tgid(pid)?;
        for thread in &threads {
            self.track_pid(*thread)?;
        }
        Ok(threads)
    }
}
