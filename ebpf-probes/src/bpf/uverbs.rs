//! The driver-neutral side: the completion handler and the read of an event.

use aya_ebpf::helpers::bpf_get_current_pid_tgid;
use aya_ebpf::macros::{kprobe, kretprobe, map};
use aya_ebpf::maps::HashMap;
use aya_ebpf::programs::{ProbeContext, RetProbeContext};
use aya_log_ebpf::debug;
use ebpf_probes::config::{NONE, TRACKED_MAX};
use ebpf_probes::{CompHandler, EventRead, Kind, Program};

use super::globals::*;
use super::hit::{Hit, now_ns};
use super::{argument, field, read, tracked};

/// Channel of a read that has not returned, by thread.
#[map]
static READERS: HashMap<u64, u64> = HashMap::with_max_entries(TRACKED_MAX, 0);

/// `ib_uverbs_comp_handler(struct ib_cq *cq, void *cq_context)`.
#[kprobe]
pub fn comp_handler(ctx: ProbeContext) -> u32 {
    let ts_ns = now_ns();
    let Some(hit) = Hit::of(Program::CompHandler) else { return 0 };
    let (Some(cq), Some(channel)) = (argument(&ctx, 0), argument(&ctx, 1)) else { return 0 };
    let owner_tgid = owner_of(cq).unwrap_or(0);
    if TRACE_ALL_CQS.load() == 0 && owner_tgid != 0 && !tracked::tgid(owner_tgid) {
        return 0;
    }
    let user_handle = user_handle_of(cq).unwrap_or(0);
    let restrack_id = known(&OFF_CQ_RES_ID).and_then(|offset| field(cq, offset)).unwrap_or(NONE);
    debug!(&ctx, "handler of cq {:x}, handle {:x}, owner {}", cq, user_handle, owner_tgid);
    hit.emit_at(ts_ns, Kind::CompHandler, CompHandler { cq, user_handle, channel, owner_tgid, restrack_id });
    0
}

/// Process that created the CQ.
#[inline(always)]
pub fn owner_of(cq: u64) -> Option<u32> {
    let (task_offset, tgid_offset) = (known(&OFF_CQ_TASK)?, known(&OFF_TASK_TGID)?);
    match field::<u64>(cq, task_offset)? {
        0 => None,
        task => field(task, tgid_offset),
    }
}

/// The owner's `struct ibv_cq *`.
#[inline(always)]
pub fn user_handle_of(cq: u64) -> Option<u64> {
    let (uobject_offset, handle_offset) = (known(&OFF_CQ_UOBJECT)?, known(&OFF_UOBJECT_HANDLE)?);
    match field::<u64>(cq, uobject_offset)? {
        0 => None,
        uobject => field(uobject, handle_offset),
    }
}

/// `ib_uverbs_comp_event_read(struct file *filp, ...)`: remembers the channel.
#[kprobe]
pub fn event_read_entry(ctx: ProbeContext) -> u32 {
    let Some(_hit) = Hit::of(Program::EventReadEntry) else { return 0 };
    let current = bpf_get_current_pid_tgid();
    if !tracked::tgid((current >> 32) as u32) {
        return 0;
    }
    let channel = ctx.arg::<u64>(0).and_then(channel_of).unwrap_or(0);
    // A full table leaves the channel out of the record.
    let _ = READERS.insert(current, channel, 0);
    0
}

#[inline(always)]
fn channel_of(file: u64) -> Option<u64> {
    let (private_offset, queue_offset) = (known(&OFF_FILE_PRIVATE)?, known(&OFF_EV_QUEUE)?);
    Some(read::<u64>(file, private_offset)? + u64::from(queue_offset))
}

/// Return of `ib_uverbs_comp_event_read`.
#[kretprobe]
pub fn event_read_return(ctx: RetProbeContext) -> u32 {
    let ts_ns = now_ns();
    let Some(hit) = Hit::of(Program::EventReadReturn) else { return 0 };
    let current = bpf_get_current_pid_tgid();
    if !tracked::tgid((current >> 32) as u32) {
        return 0;
    }
    // SAFETY: only this thread writes its own entry.
    let channel = unsafe { READERS.get(current) }.copied().unwrap_or(0);
    let _ = READERS.remove(current);
    hit.emit_at(ts_ns, Kind::EventRead, EventRead { channel, result: ctx.ret::<i64>() });
    0
}
