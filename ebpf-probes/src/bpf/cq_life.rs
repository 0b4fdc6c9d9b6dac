//! The life of a CQ, for `trace`: created, destroyed, armed, in error; and the raising of the softirqs that lead to completions.
//!
//! The filter by process is filled here too: a program that starts after the tracer is tracked from the moment it creates a CQ,
//! before that CQ can have an event.

use aya_ebpf::Global;
use aya_ebpf::helpers::bpf_get_current_pid_tgid;
use aya_ebpf::helpers::generated::bpf_get_current_comm;
use aya_ebpf::macros::{kprobe, kretprobe, map, raw_tracepoint};
use aya_ebpf::maps::HashMap;
use aya_ebpf::programs::{ProbeContext, RawTracePointContext, RetProbeContext};
use ebpf_probes::config::{NONE, OFFSET_UNKNOWN, TRACKED_MAX, auto_track};
use ebpf_probes::{CqArm, CqCreate, CqDestroy, CqError, Kind, Program, Softirq};

use super::globals::*;
use super::hit::{Hit, now_ns};
use super::uverbs::{owner_of, user_handle_of};
use super::{read, tracked};

globals! {
    /// `ib_cq.res`.
    OFF_CQ_RES: u32 = OFFSET_UNKNOWN;
    /// `ib_cq.res.type`.
    OFF_CQ_RES_TYPE: u32 = OFFSET_UNKNOWN;
    /// `ib_cq.cq_context`.
    OFF_CQ_CONTEXT: u32 = OFFSET_UNKNOWN;
    /// `ib_cq.cqe`.
    OFF_CQ_CQE: u32 = OFFSET_UNKNOWN;
    /// `ib_event.element`.
    OFF_EVENT_ELEMENT: u32 = OFFSET_UNKNOWN;
    /// `ib_event.event`.
    OFF_EVENT_KIND: u32 = OFFSET_UNKNOWN;
    /// `rxe_cq.queue`.
    OFF_RXE_CQ_QUEUE: u32 = OFFSET_UNKNOWN;
    /// `rxe_queue.buf`.
    OFF_RXE_QUEUE_BUF: u32 = OFFSET_UNKNOWN;
    /// Which creators of CQs become tracked by themselves: a value of [`auto_track`].
    AUTO_TRACK: u32 = auto_track::OFF;
    /// The name for [`auto_track::BY_NAME`], its first eight bytes.
    AUTO_NAME_0: u64 = 0;
    /// Its last eight bytes, zero padded.
    AUTO_NAME_1: u64 = 0;
}

/// `RDMA_RESTRACK_CQ` of `enum rdma_restrack_type`.
const RESTRACK_CQ: u32 = 1;
/// `struct rxe_queue_buf` (UAPI): mask, producer and consumer index.
const QUEUE_MASK: u32 = 4;
const QUEUE_PRODUCER: u32 = 128;
const QUEUE_CONSUMER: u32 = 256;
const VEC_NET_RX: u32 = 3;
const VEC_TASKLET: u32 = 6;

/// CQ that is being registered, by thread.
#[map]
static REGISTERING: HashMap<u64, u64> = HashMap::with_max_entries(TRACKED_MAX, 0);

/// `rdma_restrack_add(struct rdma_restrack_entry *res)`: remembers a CQ for the return, where its id is known.
#[kprobe]
pub fn restrack_add(ctx: ProbeContext) -> u32 {
    let Some(_hit) = Hit::of(Program::RestrackAdd) else { return 0 };
    let current = bpf_get_current_pid_tgid();
    if let Some(cq) = ctx.arg::<u64>(0).and_then(cq_of_entry)
        && is_wanted_creator((current >> 32) as u32)
    {
        // A full table leaves the creation out; the first event tells of the CQ then.
        let _ = REGISTERING.insert(current, cq, 0);
    }
    0
}

/// Return of `rdma_restrack_add`: the CQ is whole and has no event yet.
#[kretprobe]
pub fn restrack_added(_ctx: RetProbeContext) -> u32 {
    let ts_ns = now_ns();
    let Some(hit) = Hit::of(Program::RestrackAdded) else { return 0 };
    let current = bpf_get_current_pid_tgid();
    // SAFETY: only this thread writes its own entry.
    let Some(cq) = (unsafe { REGISTERING.get(current) }).copied() else { return 0 };
    let _ = REGISTERING.remove(current);
    let record = CqCreate {
        cq,
        user_handle: user_handle_of(cq).unwrap_or(0),
        channel: known(&OFF_CQ_CONTEXT).and_then(|offset| read(cq, offset)).unwrap_or(0),
        restrack_id: known(&OFF_CQ_RES_ID).and_then(|offset| read(cq, offset)).unwrap_or(NONE),
        depth: known(&OFF_CQ_CQE).and_then(|offset| read(cq, offset)).unwrap_or(NONE),
    };
    hit.emit_at(ts_ns, Kind::CqCreate, record);
    0
}

/// `rdma_restrack_del(struct rdma_restrack_entry *res)`: the CQ is about to be freed.
#[kprobe]
pub fn restrack_del(ctx: ProbeContext) -> u32 {
    let ts_ns = now_ns();
    let Some(hit) = Hit::of(Program::RestrackDel) else { return 0 };
    let Some(cq) = ctx.arg::<u64>(0).and_then(cq_of_entry) else { return 0 };
    // The process may be gone already and the kernel cleans up after it: its owner counts, not `current`.
    let owner_tgid = owner_of(cq).unwrap_or(0);
    if tracked::tgid(owner_tgid) {
        let channel = known(&OFF_CQ_CONTEXT).and_then(|offset| read(cq, offset)).unwrap_or(0);
        let restrack_id = known(&OFF_CQ_RES_ID).and_then(|offset| read(cq, offset)).unwrap_or(NONE);
        let user_handle = user_handle_of(cq).unwrap_or(0);
        hit.emit_at(ts_ns, Kind::CqDestroy, CqDestroy { cq, user_handle, channel, owner_tgid, restrack_id });
    }
    0
}

/// The CQ around a restrack entry; `None` for entries of other things.
#[inline(always)]
fn cq_of_entry(entry: u64) -> Option<u64> {
    let (res, kind) = (known(&OFF_CQ_RES)?, known(&OFF_CQ_RES_TYPE)?);
    let cq = entry.wrapping_sub(u64::from(res));
    (read::<u32>(cq, kind)? == RESTRACK_CQ).then_some(cq)
}

/// Whether the creator's CQs are recorded; begins to track it where that was asked for.
#[inline(always)]
fn is_wanted_creator(tgid: u32) -> bool {
    match AUTO_TRACK.load() {
        auto_track::OFF => tracked::tgid(tgid),
        auto_track::BY_NAME => {
            let mut name = [0_u64; 2];
            // SAFETY: the helper writes at most the given size, zero padded.
            unsafe { bpf_get_current_comm(name.as_mut_ptr().cast(), size_of_val(&name) as u32) };
            if name[0] == AUTO_NAME_0.load() && name[1] == AUTO_NAME_1.load() {
                tracked::track_tgid(tgid);
            }
            // Whether the process (not this thread) has that name, the reader finds out.
            true
        }
        _ => {
            tracked::track_tgid(tgid);
            true
        }
    }
}

/// `rxe_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)`: the process arms its CQ.
#[kprobe]
pub fn cq_arm(ctx: ProbeContext) -> u32 {
    let ts_ns = now_ns();
    let Some(hit) = Hit::of(Program::CqArm) else { return 0 };
    if !tracked::tgid((bpf_get_current_pid_tgid() >> 32) as u32) {
        return 0;
    }
    let (Some(cq), Some(flags)) = (ctx.arg::<u64>(0), ctx.arg::<u32>(1)) else { return 0 };
    let unread = unread_of(cq).unwrap_or(NONE);
    hit.emit_at(ts_ns, Kind::CqArm, CqArm { cq, flags, unread });
    0
}

/// CQEs of a soft-RoCE CQ that its process has not polled: it writes its consumer index into the shared queue.
#[inline(always)]
fn unread_of(cq: u64) -> Option<u32> {
    let rxe_cq = cq.wrapping_sub(u64::from(known(&OFF_RXE_CQ_IBCQ).unwrap_or(0)));
    let queue = read::<u64>(rxe_cq, known(&OFF_RXE_CQ_QUEUE)?)?;
    let buffer = read::<u64>(queue, known(&OFF_RXE_QUEUE_BUF)?)?;
    let (mask, producer, consumer) =
        (read::<u32>(buffer, QUEUE_MASK)?, read::<u32>(buffer, QUEUE_PRODUCER)?, read::<u32>(buffer, QUEUE_CONSUMER)?);
    Some(producer.wrapping_sub(consumer) & mask)
}

/// `ib_uverbs_cq_event_handler(struct ib_event *event, void *context_ptr)`: the driver reports an error of a CQ, such as an overrun.
#[kprobe]
pub fn cq_error(ctx: ProbeContext) -> u32 {
    let ts_ns = now_ns();
    let Some(hit) = Hit::of(Program::CqError) else { return 0 };
    let Some(event) = ctx.arg::<u64>(0) else { return 0 };
    let Some(cq) = known(&OFF_EVENT_ELEMENT).and_then(|offset| read::<u64>(event, offset)) else { return 0 };
    let owner_tgid = owner_of(cq).unwrap_or(0);
    if owner_tgid == 0 || tracked::tgid(owner_tgid) {
        let event = known(&OFF_EVENT_KIND).and_then(|offset| read(event, offset)).unwrap_or(NONE);
        hit.emit_at(ts_ns, Kind::CqError, CqError { cq, user_handle: user_handle_of(cq).unwrap_or(0), owner_tgid, event });
    }
    0
}

/// `softirq_raise(unsigned int vec)`: the two vectors that lead to completions.
#[raw_tracepoint(tracepoint = "softirq_raise")]
pub fn softirq_raise(ctx: RawTracePointContext) -> i32 {
    let vec = ctx.arg::<u32>(0);
    if (vec == VEC_NET_RX || vec == VEC_TASKLET)
        && let Some(hit) = Hit::of(Program::SoftirqRaise)
    {
        hit.emit(Kind::SoftirqRaise, Softirq { vec, reserved: 0 });
    }
    0
}

/// Never attached: run by the reader with a soft-RoCE CQ, its restrack id and its owner; returns its unread CQEs plus one, 0 where it
/// is no longer that CQ. Written out because the attribute macro returns 0 whatever the function returns.
#[unsafe(no_mangle)]
#[unsafe(link_section = "raw_tp/sys_enter")]
pub fn cq_look(ctx: *mut core::ffi::c_void) -> u32 {
    look(&RawTracePointContext::new(ctx))
}

#[inline(always)]
fn look(ctx: &RawTracePointContext) -> u32 {
    let _ = Hit::of(Program::CqLook);
    let (cq, restrack_id, owner) = (ctx.arg::<u64>(0), ctx.arg::<u32>(1), ctx.arg::<u32>(2));
    let is_same = known(&OFF_CQ_RES_ID).and_then(|offset| read::<u32>(cq, offset)) == Some(restrack_id) && owner_of(cq) == Some(owner);
    if !is_same {
        return 0;
    }
    unread_of(cq).map_or(0, |unread| unread + 1)
}
