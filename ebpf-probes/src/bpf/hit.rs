//! One run of a program: its counters, and the one record that it may write.

use aya_ebpf::bindings::BPF_RB_NO_WAKEUP;
use aya_ebpf::helpers::{bpf_get_current_pid_tgid, bpf_get_smp_processor_id, bpf_ktime_get_ns};
use aya_ebpf::macros::map;
use aya_ebpf::maps::{Array, RingBuf};
use ebpf_probes::{Header, Kind, Program, counters};

/// The records. The loader sets the size.
#[map]
static RING: RingBuf = RingBuf::with_byte_size(1 << 20, 0);
/// The counters, see [`counters`]. The loader sets how many CPUs there are.
#[map]
static COUNTERS: Array<[u64; counters::LEN]> = Array::with_max_entries(1, 0);

#[repr(C)]
struct Record<B> {
    header: Header,
    body: B,
}

/// One run of a program on this CPU.
pub struct Hit {
    row: *mut u64,
    cpu: u32,
    program: Program,
}

/// `CLOCK_MONOTONIC` in nanoseconds.
#[inline(always)]
pub fn now_ns() -> u64 {
    // SAFETY: the helper has no precondition.
    unsafe { bpf_ktime_get_ns() }
}

impl Hit {
    /// Counts the run. `None` never happens for a map with that entry; the verifier wants the check.
    #[inline(always)]
    pub fn of(program: Program) -> Option<Self> {
        // SAFETY: the helper has no precondition.
        let cpu = unsafe { bpf_get_smp_processor_id() };
        let row: *mut u64 = COUNTERS.get_ptr_mut(cpu)?.cast();
        let hit = Self { row, cpu, program };
        hit.count(counters::HITS + program as usize);
        Some(hit)
    }

    #[inline(always)]
    fn count(&self, index: usize) {
        // SAFETY: every index is a constant below `counters::LEN`, and the row belongs to this CPU.
        unsafe { *self.row.add(index) += 1 }
    }

    /// Writes a record stamped now.
    #[inline(always)]
    pub fn emit<B: Copy + 'static>(&self, kind: Kind, body: B) {
        self.emit_at(now_ns(), kind, body);
    }

    /// Writes a record with a stamp taken earlier in this run.
    #[inline(always)]
    pub fn emit_at<B: Copy + 'static>(&self, ts_ns: u64, kind: Kind, body: B) {
        self.count(counters::attempted(kind, self.program));
        let Some(mut entry) = RING.reserve::<Record<B>>(0) else {
            self.count(counters::lost(kind, self.program));
            return;
        };
        let current = bpf_get_current_pid_tgid();
        let header = Header {
            kind: kind as u16,
            size: size_of::<Record<B>>() as u16,
            cpu: self.cpu,
            ts_ns,
            pid: current as u32,
            tgid: (current >> 32) as u32,
        };
        entry.write(Record { header, body });
        entry.submit(u64::from(BPF_RB_NO_WAKEUP));
    }
}
