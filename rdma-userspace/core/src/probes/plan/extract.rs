//! What an extract of a kernel must keep for the same plan to follow from it.

use std::path::Path;

use super::{is_relevant_symbol, missed_fields, offsets};
use crate::machine::Root;
use crate::machine::btf::Keep;
use crate::machine::kernel::{self, KernelError, Wanted};
use crate::probes::drivers::{self, DRIVERS, HookKind};

/// Writes an extract of the kernel below `root` (`/` for the running one) to the folder `to`: symbols, modules, BTF, as far as the
/// plan asks for them. Returns the bytes written.
///
/// # Errors
/// [`KernelError`] when something cannot be read or written.
pub fn extract(root: impl Into<Root>, to: &Path) -> Result<u64, KernelError> {
    let modules = drivers::modules().into_iter().map(|module| (module, of_module(module))).collect();
    kernel::extract(&root.into(), to, &Wanted { is_symbol: &is_relevant_symbol, modules, vmlinux: of_vmlinux() })
}

fn of_module(module: &'static str) -> Keep {
    let of_driver = DRIVERS.iter().filter(|driver| driver.modules.iter().chain(driver.also).any(|own| *own == module));
    let members = offsets::members().filter(|(modules, ..)| modules.contains(&module));
    Keep {
        members: members.map(|(_, structure, path)| (structure, path)).collect(),
        functions: of_driver.flat_map(functions).collect(),
        callbacks: Vec::new(),
    }
}

/// Everything: a driver may be built in.
fn of_vmlinux() -> Keep {
    let members = offsets::members().map(|(_, structure, path)| (structure, path));
    let tracepoints = DRIVERS.iter().flat_map(|driver| driver.hooks).filter(|hook| hook.kind == HookKind::RawTracepoint);
    let names = tracepoints.flat_map(|hook| hook.candidates).map(|candidate| format!("btf_trace_{}", candidate.symbol));
    Keep {
        members: members.chain(missed_fields::MISSED_MEMBERS.iter().copied()).collect(),
        functions: DRIVERS.iter().flat_map(functions).collect(),
        callbacks: names.collect(),
    }
}

fn functions(driver: &drivers::Driver) -> Vec<&'static str> {
    let hooks = driver.hooks.iter().filter(|hook| hook.kind == HookKind::Kprobe);
    hooks.flat_map(|hook| hook.candidates).map(|candidate| candidate.symbol).collect()
}
