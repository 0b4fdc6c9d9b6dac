//! RDMA WRITE ping-pong: each side watches the last bytes of its own memory until the peer's next sequence is there.
//!
//! No completion marks the pong, so there is no event to wait for: polling only. The completions of the own writes are reaped as in `send`.
use super::{Operation, Party};
use crate::runner::endpoint::Endpoint;
use crate::runner::modes::CompletionMode;
use crate::runner::monitor::Monitor;
use crate::runner::rings::Halt;
use crate::verbs::ffi::os::monotonic_ns;
use analysis::capture::Sample;

/// Spins until the watched slot holds `on_wire`, and stamps that moment.
#[inline]
fn watch<M: CompletionMode>(end: &Endpoint, mode: &mut M, monitor: &Monitor, on_wire: u64, sample: &mut Sample) -> Result<(), Halt> {
    let mut looks = 0;
    let result = loop {
        if end.recvs.layout.load(&end.recv_mr, 0)? == on_wire {
            sample.done_ns = monotonic_ns();
            break Ok(());
        }
        looks += 1;
        if monitor.stopped() {
            break Err(Halt::Stopped);
        }
        std::hint::spin_loop();
    };
    mode.counters().empty_polls += looks;
    result
}

/// The client.
#[derive(Default)]
pub(crate) struct WritePp {
    on_wire: u64,
}

impl Operation for WritePp {
    const WAITS_FOR: &'static str = "the answer of the peer (its write into this side's memory)";

    #[inline]
    fn prepare(&mut self, end: &mut Endpoint, monitor: &Monitor) -> Result<u64, Halt> {
        end.sends.make_room(&end.send_cq, monitor)?;
        self.on_wire = end.sends.layout.on_wire(end.sends.posted() + 1);
        let (wr_id, slot) = end.sends.next()?;
        end.sends.layout.store(&end.send_mr, slot, self.on_wire)?;
        Ok(wr_id)
    }

    #[inline]
    fn finish<M: CompletionMode>(&mut self, end: &mut Endpoint, mode: &mut M, monitor: &Monitor, sample: &mut Sample) -> Result<(), Halt> {
        watch(end, mode, monitor, self.on_wire, sample)
    }

    #[inline]
    fn check(&mut self, _: &mut Endpoint) -> Result<(), Halt> {
        // The watched value was the sequence itself.
        Ok(())
    }
}

/// The server. Its sample says: `done_ns` message seen, `post_*` answer posted.
#[derive(Default)]
pub(crate) struct WatchAnswer;

impl Party for WatchAnswer {
    const WAITS_FOR: &'static str = "a message of the client (its write into this side's memory)";

    #[inline]
    fn step<M: CompletionMode>(&mut self, end: &mut Endpoint, mode: &mut M, monitor: &Monitor, sample: &mut Sample) -> Result<(), Halt> {
        end.sends.make_room(&end.send_cq, monitor)?;
        let on_wire = end.sends.layout.on_wire(end.sends.posted() + 1);
        let (wr_id, slot) = end.sends.next()?;
        end.sends.layout.store(&end.send_mr, slot, on_wire)?;
        watch(end, mode, monitor, on_wire, sample)?;
        sample.begin_wr_id = wr_id;
        sample.post_begin_ns = monotonic_ns();
        end.sends.post(&end.qp)?;
        sample.post_end_ns = monotonic_ns();
        Ok(())
    }
}
