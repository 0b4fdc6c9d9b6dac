//! Memory: huge pages, fragmentation, swapping, page migration.
use super::context::Context;
use super::finding::Finding;
use crate::machine::host::meminfo_bytes;

pub(super) const CHECKS: &[fn(&Context<'_>) -> Vec<Finding>] = &[huge_pages, fragmentation, swapping, numa_balancing, merging];

const MIB: u64 = 1 << 20;

fn huge_pages(context: &Context<'_>) -> Vec<Finding> {
    let value = |key| meminfo_bytes(context.root, key);
    let (Some(total), Some(free)) = (value("HugePages_Total"), value("HugePages_Free")) else {
        return vec![Finding::note("memory.huge_pages", "this kernel has no huge pages (hugetlbfs)")];
    };
    let size = value("Hugepagesize").map_or("size not told".to_owned(), |bytes| format!("{} kiB each", bytes / 1024));
    let transparent = context.choice("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_else(|| "not told".to_owned());
    let found = format!("huge pages: {free} of {total} free, {size}; transparent: {transparent}");
    vec![if free > 0 {
        Finding::ok("memory.huge_pages", found)
    } else {
        Finding::note("memory.huge_pages", found)
            .effect("small messages do not need them; large buffers make the card's address cache miss more often")
            .command("sudo sysctl -w vm.nr_hugepages=64")
    }]
}

/// Free blocks of 2 MiB and more (order 9 and up with pages of 4 kiB), from /proc/buddyinfo.
fn fragmentation(context: &Context<'_>) -> Vec<Finding> {
    let text = context.root.text("/proc/buddyinfo").unwrap_or_default();
    let (mut large, mut all) = (0_u64, 0_u64);
    for line in text.lines() {
        let Some((_, rest)) = line.split_once("zone") else { continue };
        for (order, blocks) in rest.split_whitespace().skip(1).enumerate() {
            let (Ok(blocks), Ok(order)) = (blocks.parse::<u64>(), u32::try_from(order)) else { continue };
            let pages = blocks.saturating_mul(1_u64.checked_shl(order).unwrap_or(0));
            all = all.saturating_add(pages);
            if order >= 9 {
                large = large.saturating_add(pages);
            }
        }
    }
    if all == 0 {
        return Vec::new();
    }
    let (large_mib, percent) = (large * 4096 / MIB, large * 100 / all);
    let found = format!("free memory in blocks of 2 MiB and more: {large_mib} MiB, {percent} % of what is free");
    vec![if percent >= 10 {
        Finding::ok("memory.fragmentation", found)
    } else {
        Finding::note("memory.fragmentation", found)
            .effect("large queues and buffers are pieced together, and creating them can take long or fail")
            .command("echo 1 | sudo tee /proc/sys/vm/compact_memory")
    }]
}

fn swapping(context: &Context<'_>) -> Vec<Finding> {
    let swap = meminfo_bytes(context.root, "SwapTotal").unwrap_or(0);
    let used = swap.saturating_sub(meminfo_bytes(context.root, "SwapFree").unwrap_or(swap));
    let Some(swappiness) = context.number("/proc/sys/vm/swappiness") else { return Vec::new() };
    let found = format!("swap: {} MiB of {} MiB used, swappiness {swappiness}", used / MIB, swap / MIB);
    vec![if swap == 0 {
        Finding::ok("memory.swap", format!("no swap (swappiness {swappiness})"))
    } else if swappiness <= 10 {
        Finding::ok("memory.swap", found)
    } else {
        Finding::note("memory.swap", found)
            .effect("the runner locks its memory; other programs' pages can be swapped out during a run, and the machine stalls")
            .command("sudo sysctl -w vm.swappiness=10")
    }]
}

fn numa_balancing(context: &Context<'_>) -> Vec<Finding> {
    let nodes = context
        .root
        .names("/sys/devices/system/node")
        .iter()
        .filter(|name| name.strip_prefix("node").is_some_and(|n| n.parse::<u32>().is_ok()))
        .count();
    match context.number("/proc/sys/kernel/numa_balancing") {
        None => Vec::new(),
        Some(0) => vec![Finding::ok("memory.numa_balancing", format!("automatic NUMA balancing is off (NUMA nodes: {nodes})"))],
        Some(_) if nodes < 2 => vec![Finding::ok("memory.numa_balancing", "automatic NUMA balancing is on, with one node it does nothing")],
        Some(_) => vec![
            Finding::warn("memory.numa_balancing", format!("automatic NUMA balancing is on (NUMA nodes: {nodes})"))
                .effect("the kernel unmaps pages to see who uses them: page faults of microseconds in the measured thread")
                .command("sudo sysctl -w kernel.numa_balancing=0"),
        ],
    }
}

fn merging(context: &Context<'_>) -> Vec<Finding> {
    match context.number("/sys/kernel/mm/ksm/run") {
        Some(1) => vec![
            Finding::note("memory.ksm", "merging of equal pages (KSM) is on")
                .effect("its thread takes CPU time and write-protects pages of programs that asked for it (virtual machines)")
                .command("echo 0 | sudo tee /sys/kernel/mm/ksm/run"),
        ],
        _ => Vec::new(),
    }
}
