//! Limits of this process: locked memory, real-time throttling, open files.
use super::context::Context;
use super::finding::Finding;
use crate::machine::rights::{CapabilitySet, has_capability, limit};

pub(super) const CHECKS: &[fn(&Context<'_>) -> Vec<Finding>] = &[locked_memory, realtime_throttling, open_files];

const MIB: u64 = 1 << 20;

/// What a run with default parameters registers and locks is far below this.
const ENOUGH_LOCKED_BYTES: u64 = 64 * MIB;

fn locked_memory(context: &Context<'_>) -> Vec<Finding> {
    let Some((soft, hard)) = limit(context.root, "Max locked memory") else { return Vec::new() };
    let size = |bytes: u64| if bytes == u64::MAX { "unlimited".to_owned() } else { format!("{} kiB", bytes / 1024) };
    let found = format!("locked memory (memlock): {}, at most {}", size(soft), size(hard));
    vec![if has_capability(context.root, CapabilitySet::IPC_LOCK) {
        Finding::ok("limits.memlock", format!("{found}; does not bind: this process has CAP_IPC_LOCK"))
    } else if soft >= ENOUGH_LOCKED_BYTES {
        Finding::ok("limits.memlock", found)
    } else {
        let command = if hard >= ENOUGH_LOCKED_BYTES {
            "ulimit -l unlimited || ulimit -l $(ulimit -H -l)"
        } else {
            "echo '* - memlock unlimited' | sudo tee /etc/security/limits.d/rdma.conf  # then log in again"
        };
        Finding::warn("limits.memlock", found)
            .effect("registered memory is locked memory: creating a queue or registering a large buffer fails with ENOMEM")
            .command(command)
    }]
}

fn realtime_throttling(context: &Context<'_>) -> Vec<Finding> {
    let (runtime, period) = (context.number("/proc/sys/kernel/sched_rt_runtime_us"), context.number("/proc/sys/kernel/sched_rt_period_us"));
    let (Some(runtime), Some(period)) = (runtime, period) else { return Vec::new() };
    vec![if runtime < 0 || runtime >= period {
        Finding::ok("limits.rt_throttling", "real-time threads are not throttled")
            .effect("a poller with real-time priority can lock a CPU up: keep one CPU free")
    } else {
        Finding::note("limits.rt_throttling", format!("real-time threads get {runtime} of {period} µs"))
            .effect(format!(
                "a poller with real-time priority may be stopped for {} ms at a time; ordinary threads are not affected",
                (period - runtime) / 1000
            ))
            .command("sudo sysctl -w kernel.sched_rt_runtime_us=-1")
    }]
}

fn open_files(context: &Context<'_>) -> Vec<Finding> {
    match limit(context.root, "Max open files") {
        // Each probe takes a few descriptors; the plan of the highest level has some dozens.
        Some((soft, _)) if soft < 512 => vec![
            Finding::warn("limits.open_files", format!("open files: {soft}"))
                .effect("each probe needs descriptors: attaching may fail with EMFILE")
                .command("ulimit -n 4096"),
        ],
        _ => Vec::new(),
    }
}
