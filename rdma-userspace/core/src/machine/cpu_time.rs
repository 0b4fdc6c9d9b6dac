//! CPU time of the machine from /proc/stat, context switches of a thread from /proc.
use super::proc_text::field;
use super::root::Root;

/// Context switches of one thread since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// It gave up its CPU (it slept).
    pub voluntary: u64,
    /// Its CPU was taken away.
    pub involuntary: u64,
}

/// Busy time of all CPUs of this machine in ns since boot; see [`machine_busy_ns_at`].
pub fn machine_busy_ns() -> Option<u64> {
    machine_busy_ns_at(&Root::live())
}

/// Busy time of all CPUs in ns since boot: user, nice, system, hard and soft interrupts.
///
/// Idle, waiting for I/O and time stolen by a hypervisor are not busy time (guest time is already part of user time).
/// The kernel counts in ticks (10 ms), so only differences over a second or more mean anything. `None` when not told.
pub fn machine_busy_ns_at(root: &Root) -> Option<u64> {
    sum_of_columns(root, &[0, 1, 2, 5, 6])
}

/// Time that a hypervisor took from all CPUs of this machine in ns since boot; see [`machine_steal_ns_at`].
pub fn machine_steal_ns() -> Option<u64> {
    machine_steal_ns_at(&Root::live())
}

/// Time stolen by a hypervisor, in ticks as [`machine_busy_ns_at`]; 0 on a machine that is not virtual, and where the hypervisor does not
/// tell.
pub fn machine_steal_ns_at(root: &Root) -> Option<u64> {
    sum_of_columns(root, &[7])
}

/// Columns of /proc/stat's first line: user nice system idle iowait irq softirq steal guest guest_nice (proc(5)).
fn sum_of_columns(root: &Root, columns: &[usize]) -> Option<u64> {
    let stat = root.text("/proc/stat")?;
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let sum: u64 = columns.iter().map(|&column| ticks.get(column).copied()).sum::<Option<u64>>()?;
    sum.checked_mul(1_000_000_000 / ticks_per_second(root))
}

/// Context switches of a thread of this process; `None` when there is no such thread.
pub fn thread_switches(tid: u32) -> Option<Switches> {
    thread_switches_at(&Root::live(), tid)
}

/// Context switches of a thread, from `/proc/self/task/TID/status`.
pub fn thread_switches_at(root: &Root, tid: u32) -> Option<Switches> {
    let status = root.text(format!("/proc/self/task/{tid}/status"))?;
    let number = |key| field(&status, key)?.parse().ok();
    Some(Switches { voluntary: number("voluntary_ctxt_switches")?, involuntary: number("nonvoluntary_ctxt_switches")? })
}

/// Ticks per second of /proc/stat: `AT_CLKTCK` of the auxiliary vector (100 on every common machine).
fn ticks_per_second(root: &Root) -> u64 {
    const AT_CLKTCK: u64 = 17;
    let auxv = root.bytes("/proc/self/auxv").unwrap_or_default();
    let word = |bytes: &[u8]| bytes.try_into().map(u64::from_ne_bytes).ok();
    auxv.chunks_exact(16)
        .find_map(|pair| (word(&pair[..8])? == AT_CLKTCK).then(|| word(&pair[8..]))?)
        .filter(|&ticks| ticks > 0 && ticks <= 1_000_000)
        .unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fixture::Tree;

    #[test]
    fn idle_iowait_and_steal_are_not_busy() {
        let tree = Tree::new().file("proc/stat", "cpu  100 20 30 5000 600 7 8 999 50 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n");
        assert_eq!(machine_busy_ns_at(&tree.root()), Some(165 * 10_000_000));
        assert_eq!(machine_steal_ns_at(&tree.root()), Some(999 * 10_000_000));
    }

    #[test]
    fn a_damaged_file_is_absent() {
        for text in ["", "cpu  1 2", "cpu  1 x 3 4 5 6 7", "intr 5"] {
            assert_eq!(machine_busy_ns_at(&Tree::new().file("proc/stat", text).root()), None, "{text:?}");
        }
    }

    #[test]
    fn switches_of_a_thread() {
        let tree = Tree::new().file("proc/self/task/7/status", "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n");
        assert_eq!(thread_switches_at(&tree.root(), 7), Some(Switches { voluntary: 12, involuntary: 3 }));
        assert_eq!(thread_switches_at(&tree.root(), 8), None);
    }

    #[test]
    fn this_machine_is_busy_and_a_sleep_is_a_voluntary_switch() {
        let busy = machine_busy_ns().expect("/proc/stat");
        assert!(busy > 0);
        let tid = std::fs::read_link("/proc/thread-self").expect("own thread");
        let tid: u32 = tid.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok()).expect("a number");
        let before = thread_switches(tid).expect("own thread");
        for _ in 0..3 {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        let after = thread_switches(tid).expect("own thread");
        assert!(after.voluntary >= before.voluntary + 3, "{before:?} {after:?}");
    }
}
