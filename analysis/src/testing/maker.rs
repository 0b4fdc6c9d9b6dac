//! Makes the events of one sample after the other, in the order of real kernels.
use super::ids::*;
use crate::stats::Rng;
use capture::Sample;
use ebpf_probes::*;
use std::collections::BTreeMap;

/// The stages of one sample by name, in ns.
pub type Truth = BTreeMap<&'static str, u64>;

pub(super) struct Maker {
    pub rng: Rng,
    pub now: u64,
    pub events: Vec<(Header, Body)>,
    pub truth: Truth,
    pub traced: bool,
}

impl Maker {
    fn wait(&mut self, stage: &'static str, around_ns: u64) {
        let spent = around_ns / 2 + self.rng.below(around_ns) + if self.rng.below(200) == 0 { around_ns * 20 } else { 0 };
        *self.truth.entry(stage).or_default() += spent;
        self.now += spent;
    }

    fn emit(&mut self, cpu: u32, pid: u32, body: Body) {
        if self.traced {
            let tgid = if pid == TID { TGID } else { pid };
            self.events.push((Header { cpu, ts_ns: self.now, pid, tgid, ..Header::default() }, body));
        }
    }

    fn post(&mut self, sample: &mut Sample) {
        sample.post_begin_ns = self.now;
        self.wait("post", 400);
        self.emit(0, TID, Body::RxePost(RxePost { qp: QP, qpn: QPN, reserved: 0 }));
    }

    fn task(&mut self, cpu: u32, pid: u32, which: u32) {
        self.emit(cpu, pid, Body::RxeTask(RxeTask { qp: QP, qpn: QPN, path: which }));
    }

    fn xmit(&mut self, cpu: u32, pid: u32, wr_id: u64) {
        let psn = (wr_id & 0xff_ffff) as u32;
        self.emit(cpu, pid, Body::RxeXmit(RxeXmit { qp: QP, wr_id, qpn: QPN, psn, opcode: 4, reserved: 0 }));
    }

    fn requester(&mut self, wr_id: u64, workqueue: bool) {
        let (cpu, pid) = if workqueue { (1, WORKER) } else { (0, TID) };
        self.wait("requester queue", 40);
        if workqueue {
            self.emit(0, TID, Body::WorkQueue(Work { work: WORK, func: 1 }));
            self.wait("requester workqueue", 2_000);
            self.emit(1, WORKER, Body::WorkStart(Work { work: WORK, func: 1 }));
            self.wait("requester queue", 30);
        }
        self.task(cpu, pid, if workqueue { path::SENDER } else { path::REQUESTER });
        self.wait("requester", 600);
        self.xmit(cpu, pid, wr_id);
    }

    /// The client arms, polls once, finds nothing and falls asleep; in the meantime the peer works.
    fn sleep(&mut self, sample: &mut Sample) {
        let sent = self.now;
        sample.post_end_ns = self.now + 100;
        sample.arm_ns = sample.post_end_ns + 50;
        sample.wait_begin_ns = sample.arm_ns + 400;
        self.now = sample.wait_begin_ns + 700;
        self.emit(0, TID, Body::SchedSwitch(Switch { prev_pid: TID, next_pid: 0, ..Switch::default() }));
        *self.truth.entry("wire + peer").or_default() += self.now - sent;
    }

    fn cq_post(&mut self, cpu: u32, pid: u32, cq: u64, wr_id: u64) {
        self.emit(cpu, pid, Body::CqPost(CqPost { cq, wr_id, qpn: QPN, status: 0, opcode: 0, byte_len: 64 }));
    }

    fn rcv(&mut self, cpu: u32, pid: u32, path: u32) {
        self.emit(cpu, pid, Body::RxeRcv(RxeRcv { qp: QP, skb: 0xabc, qpn: QPN, path }));
    }

    fn tasklet_on(&mut self, cpu: u32, pid: u32) {
        self.wait("notify delay", 300);
        self.emit(cpu, pid, Body::SoftirqEntry(Softirq { vec: 6, reserved: 0 }));
        self.wait("notify delay", 60);
        self.emit(cpu, pid, Body::TaskletEntry(Tasklet { tasklet: 1, func: 2 }));
        self.wait("bottom half", 60);
    }

    /// Handler, wake-up, switch, return, poll. The waker runs on CPU 1, the client on CPU 0.
    fn wake(&mut self, sample: &mut Sample, pid: u32, in_softirq: bool) {
        let body = CompHandler { cq: CQ, user_handle: CQ_HANDLE, channel: CHANNEL, owner_tgid: TGID, restrack_id: 4 };
        self.emit(1, pid, Body::CompHandler(body));
        self.wait("handler", 200);
        self.emit(1, pid, Body::SchedWaking(Wake { target_pid: TID, target_cpu: u32::MAX }));
        let idle = self.rng.below(2) == 0;
        if idle {
            self.wait("idle exit", 900);
            self.emit(0, 0, Body::CpuIdleExit(CpuIdle { state: 1, reserved: 0 }));
        }
        self.wait("activation", 500);
        self.emit(if idle { 0 } else { 1 }, 0, Body::SchedWakeup(Wake { target_pid: TID, target_cpu: u32::MAX }));
        self.wait("run queue", 700);
        let mut comm = [0; 16];
        comm[..9].copy_from_slice(b"swapper/0");
        self.emit(0, 0, Body::SchedSwitch(Switch { prev_pid: 0, next_pid: TID, prev_comm: comm, ..Switch::default() }));
        if in_softirq {
            let now = self.now;
            self.now += 10;
            self.emit(1, pid, Body::SoftirqExit(Softirq { vec: 6, reserved: 0 }));
            self.now = now;
        }
        self.wait("return to user", 800);
        sample.wait_end_ns = self.now;
        sample.waits = 1;
        self.wait("poll", 200);
        sample.done_ns = self.now;
    }

    pub fn send_event(&mut self, sample: &mut Sample, new_kernel: bool) {
        sample.end_wr_id = sample.begin_wr_id + 1;
        self.post(sample);
        self.requester(sample.begin_wr_id, new_kernel);
        // The acknowledgement of the send: its CQE goes to another CQ and must not be taken for the end.
        let sent = self.now;
        self.now += 90;
        self.rcv(1, SERVER, path::COMPLETER);
        self.now += 20;
        self.task(1, SERVER, path::COMPLETER);
        self.now += 20;
        self.cq_post(1, SERVER, SEND_CQ, sample.begin_wr_id);
        *self.truth.entry("wire + peer").or_default() += self.now - sent;
        self.sleep(sample);
        self.wait("wire + peer", 3_000);
        let pid = if new_kernel { WORKER } else { SERVER };
        self.rcv(1, SERVER, path::RESPONDER);
        self.wait("task queue", 50);
        if new_kernel {
            self.emit(1, SERVER, Body::WorkQueue(Work { work: WORK + 64, func: 1 }));
            self.wait("task workqueue", 1_500);
            self.emit(1, WORKER, Body::WorkStart(Work { work: WORK + 64, func: 1 }));
            self.wait("task queue", 40);
        }
        self.task(1, pid, if new_kernel { path::RECEIVER } else { path::RESPONDER });
        self.wait("protocol", 400);
        self.cq_post(1, pid, CQ, sample.end_wr_id);
        if new_kernel {
            self.wait("notify delay", 30);
        } else {
            self.tasklet_on(1, pid);
        }
        self.wake(sample, pid, !new_kernel);
    }

    pub fn read_poll(&mut self, sample: &mut Sample) {
        self.post(sample);
        self.requester(sample.begin_wr_id, true);
        sample.post_end_ns = self.now.saturating_sub(100).max(sample.post_begin_ns);
        self.wait("wire + peer", 2_000);
        // The sender task is still running and takes the answer along.
        self.rcv(1, WORKER, path::COMPLETER);
        self.wait("protocol (start not seen)", 500);
        self.cq_post(1, WORKER, CQ, sample.end_wr_id);
        self.wait("detect", 150);
        sample.done_ns = self.now;
    }

    pub fn read_inline(&mut self, sample: &mut Sample) {
        self.post(sample);
        self.requester(sample.begin_wr_id, false);
        self.wait("wire + peer", 900);
        self.rcv(0, TID, path::COMPLETER);
        self.wait("task queue", 40);
        self.task(0, TID, path::COMPLETER);
        self.wait("protocol", 300);
        self.cq_post(0, TID, CQ, sample.end_wr_id);
        self.wait("post return after completion", 300);
        sample.post_end_ns = self.now;
        sample.arm_ns = self.now + 30;
        self.wait("detect", 500);
        sample.done_ns = self.now.max(sample.arm_ns);
    }

    pub fn two_guests(&mut self, sample: &mut Sample) {
        self.post(sample);
        self.requester(sample.begin_wr_id, false);
        self.sleep(sample);
        self.wait("wire + peer", 20_000);
        self.emit(1, 0, Body::IrqEntry(Irq { irq: IRQ, reserved: 0 }));
        self.wait("rx interrupt", 250);
        self.emit(1, 0, Body::IrqExit(Irq { irq: IRQ, reserved: 0 }));
        self.wait("rx interrupt", 50);
        self.emit(1, 0, Body::SoftirqEntry(Softirq { vec: 3, reserved: 0 }));
        self.wait("rx softirq", 900);
        self.rcv(1, 0, path::COMPLETER);
        self.wait("task queue", 40);
        self.task(1, 0, path::COMPLETER);
        self.wait("protocol", 300);
        self.cq_post(1, 0, CQ, sample.end_wr_id);
        self.wait("notify delay", 100);
        self.emit(1, 0, Body::NapiPoll(Napi { work: 1, budget: 64 }));
        self.emit(1, 0, Body::SoftirqExit(Softirq { vec: 3, reserved: 0 }));
        self.tasklet_on(1, 0);
        self.wake(sample, 0, true);
    }

    /// A card of mlx5: interrupt, request for the tasklet, tasklet, callback, handler.
    pub fn send_mlx5(&mut self, sample: &mut Sample) {
        sample.end_wr_id = sample.begin_wr_id + 1;
        sample.post_begin_ns = self.now;
        self.wait("post", 400);
        sample.post_end_ns = self.now;
        sample.arm_ns = sample.post_end_ns + 50;
        sample.wait_begin_ns = sample.arm_ns + 400;
        self.now = sample.wait_begin_ns + 700;
        self.emit(0, TID, Body::SchedSwitch(Switch { prev_pid: TID, next_pid: 0, ..Switch::default() }));
        *self.truth.entry("device + network").or_default() += self.now - sample.post_end_ns;
        self.wait("device + network", 3_000);
        self.emit(1, 0, Body::IrqEntry(Irq { irq: COMPLETION_IRQ, reserved: 0 }));
        self.wait("hard irq", 80);
        self.emit(1, 0, Body::DriverIrq(DriverEntry { object: EVENT_QUEUE, irq: COMPLETION_IRQ, reserved: 0 }));
        self.wait("hard irq", 200);
        let cq = DriverCq { driver_cq: DRIVER_CQ, cqn: CQN, irq: COMPLETION_IRQ };
        self.emit(1, 0, Body::DriverEnqueue(cq));
        self.wait("bottom-half wait", 100);
        self.emit(1, 0, Body::IrqExit(Irq { irq: COMPLETION_IRQ, reserved: 0 }));
        self.wait("bottom-half wait", 60);
        self.emit(1, 0, Body::SoftirqEntry(Softirq { vec: 6, reserved: 0 }));
        self.wait("bottom-half wait", 60);
        self.emit(1, 0, Body::TaskletEntry(Tasklet { tasklet: EVENT_QUEUE, func: 2 }));
        self.wait("bottom half", 60);
        self.emit(1, 0, Body::DriverComp(cq));
        self.wait("bottom half", 40);
        self.wake(sample, 0, true);
    }
}
