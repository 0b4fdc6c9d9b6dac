//! The capabilities that probes need: put in force on a thread, taken out of force, given up for good.

use std::io;

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// What loading and attaching may need. `BPF` and `PERFMON` do on kernels from 5.8 on; `SYSLOG` shows the addresses of symbols, and
/// `SYS_RESOURCE` lifts the limit of locked memory that kernels before 5.11 hold against maps. `SYS_ADMIN` stands for the first two.
pub(super) const NEEDED: CapabilitySet = CapabilitySet::BPF
    .union(CapabilitySet::PERFMON)
    .union(CapabilitySet::SYSLOG)
    .union(CapabilitySet::SYS_RESOURCE)
    .union(CapabilitySet::SYS_ADMIN);
/// What no other thread of the program needs either, and root has.
pub(super) const DANGEROUS: CapabilitySet =
    CapabilitySet::SYS_PTRACE.union(CapabilitySet::SYS_MODULE).union(CapabilitySet::SYS_RAWIO).union(CapabilitySet::SYS_BOOT);

/// Puts what is needed in force on the calling thread.
pub(super) fn raise() -> io::Result<()> {
    let sets = capabilities(None)?;
    let effective = sets.effective.union(sets.permitted.intersection(NEEDED));
    Ok(set_capabilities(None, CapabilitySets { effective, ..sets })?)
}

/// Out of force, but kept.
pub(super) fn lower() -> io::Result<()> {
    let sets = capabilities(None)?;
    Ok(set_capabilities(None, CapabilitySets { effective: sets.effective.difference(NEEDED), ..sets })?)
}

/// Gone for good, from the calling thread and what it starts. A program that it executes as root has them again.
pub(super) fn give_up() -> io::Result<()> {
    let sets = capabilities(None)?;
    let gone = NEEDED.union(DANGEROUS);
    let left = CapabilitySets {
        effective: sets.effective.difference(gone),
        permitted: sets.permitted.difference(gone),
        inheritable: sets.inheritable.difference(gone),
    };
    Ok(set_capabilities(None, left)?)
}

/// Which of the rights that probes cannot do without the calling thread lacks, as a sentence; `None`: none.
pub(super) fn lacking() -> Option<String> {
    let sets = capabilities(None).ok()?;
    let has = |one: CapabilitySet| sets.effective.intersects(one.union(CapabilitySet::SYS_ADMIN));
    let names = [(CapabilitySet::BPF, "CAP_BPF"), (CapabilitySet::PERFMON, "CAP_PERFMON")];
    let missing: Vec<&str> = names.into_iter().filter(|(one, _)| !has(*one)).map(|(_, name)| name).collect();
    match missing.as_slice() {
        [] => None,
        [one] => Some(format!("{one} is missing")),
        several => Some(format!("{} are missing", several.join(" and "))),
    }
}
