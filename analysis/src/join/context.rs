//! Whose time an event happened on.
//!
//! Records of one context follow each other: a thread's wherever it runs, the idle task's on its CPU. A softirq or a hard interrupt that
//! runs on top of a thread carries that thread's id, so nesting is found without looking at CPUs.
use ebpf_probes::Header;

/// Did the two happen on the same thread (or, for the idle task, on the same CPU)?
pub fn same(a: &Header, b: &Header) -> bool {
    a.pid == b.pid && (a.pid != 0 || a.cpu == b.cpu)
}
