//! Programs with typed arguments: function entries by a trampoline (fentry) instead of a kprobe, tracepoints whose arguments the
//! verifier knows (tp_btf) instead of raw ones. A trampoline costs a fifth of a kprobe, a field of a typed argument one load instead
//! of a call; and one such program may interrupt another, where the kernel skips the second of two kprobes.
//!
//! aya cannot attach to a module's functions this way (it knows the kernel's own BTF only), so these few programs are taken from the
//! object a second time, with the same maps, and loaded here. What the kernel refuses stays what the plan says: a kprobe, a raw
//! tracepoint. 5.10 has no BTF of modules.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

use aya::Ebpf;
use aya::maps::Map;
use aya_obj::{EbpfSectionKind, Object};
use ebpf_probes::Program;

use super::bpf_calls::{self, TRACE_FENTRY, TRACE_RAW_TP, Tracing};
use super::object::object;
use crate::machine::btf::Btf;
use crate::probes::drivers::HookKind;
use crate::probes::plan::{Plan, PlannedHook};

/// Programs whose code reads its arguments in either way.
const EITHER_WAY: &[Program] = &[
    Program::SchedWaking,
    Program::SchedWakeup,
    Program::SchedSwitch,
    Program::SchedMigrate,
    Program::WorkQueue,
    Program::WorkStart,
    Program::CompHandler,
    Program::RxePost,
    Program::RxeXmit,
    Program::RxeSend,
    Program::RxeCompQueue,
    Program::RxeRespQueue,
    Program::RxeRequester,
    Program::RxeCompleter,
    Program::RxeResponder,
    Program::RxeSender,
    Program::RxeReceiver,
    Program::RxeCqPost,
];

/// A loaded program.
struct Loaded {
    fd: OwnedFd,
    kind: HookKind,
}

/// The programs that the kernel took, and why it did not take others.
#[derive(Default)]
pub(super) struct Typed {
    programs: BTreeMap<Program, Loaded>,
    refused: BTreeMap<Program, String>,
}

impl Typed {
    /// Loads what the kernel takes of the plan's programs. `globals` are those of the object; its maps are shared with `ebpf`.
    pub(super) fn load(ebpf: &Ebpf, globals: &[(String, Vec<u8>)], plan: &Plan) -> Self {
        let mut typed = Typed::default();
        let wanted: Vec<&PlannedHook> =
            plan.hooks.iter().filter(|hook| hook.symbol.is_some() && EITHER_WAY.contains(&hook.program)).collect();
        let mut types = match Types::read() {
            Ok(types) => types,
            Err(why) => {
                typed.refused.extend(wanted.iter().map(|hook| (hook.program, why.clone())));
                return typed;
            }
        };
        // Arguments that the kernel declares `void *` are no types: there the trampoline alone is had.
        for with_types in [true, false] {
            let hooks = wanted.iter().copied().filter(|hook| with_types || hook.kind == HookKind::Kprobe);
            let hooks: Vec<&PlannedHook> = hooks.filter(|hook| !typed.programs.contains_key(&hook.program)).collect();
            if hooks.is_empty() {
                continue;
            }
            if let Err(why) = typed.load_all(ebpf, globals, &mut types, &hooks, with_types) {
                typed.refused.extend(hooks.iter().map(|hook| (hook.program, why.clone())));
            }
        }
        typed
    }

    fn load_all(
        &mut self,
        ebpf: &Ebpf,
        globals: &[(String, Vec<u8>)],
        types: &mut Types,
        hooks: &[&PlannedHook],
        with_types: bool,
    ) -> Result<(), String> {
        for kind in [HookKind::Kprobe, HookKind::RawTracepoint] {
            let of_kind: Vec<&&PlannedHook> = hooks.iter().filter(|hook| hook.kind == kind).collect();
            if of_kind.is_empty() {
                continue;
            }
            let switches = [("TYPED", u32::from(with_types)), ("TRAMPOLINE", u32::from(kind == HookKind::Kprobe))];
            let (object, _constants) = relocated(ebpf, globals, switches)?;
            for hook in of_kind {
                match load_one(&object, types, hook) {
                    Ok(loaded) => {
                        self.programs.insert(hook.program, loaded);
                        self.refused.remove(&hook.program);
                    }
                    Err(why) => {
                        self.refused.insert(hook.program, why);
                    }
                }
            }
        }
        Ok(())
    }

    /// How a hook of the plan is attached instead.
    pub(super) fn kind(&self, program: Program) -> Option<HookKind> {
        self.programs.get(&program).map(|loaded| loaded.kind)
    }

    /// Why a hook is attached as the plan says although its program could do with types.
    pub(super) fn refusal(&self, program: Program) -> Option<&str> {
        self.refused.get(&program).map(String::as_str)
    }

    /// The program's descriptor.
    pub(super) fn fd(&self, program: Program) -> Option<BorrowedFd<'_>> {
        self.programs.get(&program).map(|loaded| loaded.fd.as_fd())
    }

    /// Forgets a program that does not attach.
    pub(super) fn refuse(&mut self, program: Program, why: String) {
        self.programs.remove(&program);
        self.refused.insert(program, why);
    }
}

/// The object with its globals set and its maps in place; and the constants' map, which lives until the programs are loaded.
fn relocated(ebpf: &Ebpf, globals: &[(String, Vec<u8>)], switches: [(&str, u32); 2]) -> Result<(Object, Vec<OwnedFd>), String> {
    let text = |error: &dyn std::fmt::Display| format!("the object: {error}");
    let mut object = Object::parse(object()).map_err(|error| text(&error))?;
    let switches = switches.map(|(name, value)| (name, value.to_ne_bytes()));
    let all = globals
        .iter()
        .map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
        .chain(switches.iter().map(|(name, bytes)| (*name, bytes.as_slice())));
    object.patch_map_data(all.map(|(name, bytes)| (name, (bytes, true))).collect::<HashMap<_, _>>()).map_err(|error| text(&error))?;
    let maps = std::mem::take(&mut object.maps);
    let mut constants = Vec::new();
    let mut placed: Vec<(&str, RawFd, &aya_obj::Map)> = Vec::new();
    for (name, map) in &maps {
        let fd = if map.section_kind() == EbpfSectionKind::Rodata {
            let own = bpf_calls::constants(map.data()).map_err(|error| format!("map {name}: {error}"))?;
            let fd = own.as_raw_fd();
            constants.push(own);
            fd
        } else {
            fd_of(ebpf, name).ok_or_else(|| format!("map {name} is not there"))?
        };
        placed.push((name, fd, map));
    }
    let sections: HashSet<usize> = object.functions.keys().map(|(section, _)| *section).collect();
    object.relocate_maps(placed.into_iter(), &sections).map_err(|error| text(&error))?;
    object.relocate_calls(&sections).map_err(|error| text(&error))?;
    Ok((object, constants))
}

fn fd_of(ebpf: &Ebpf, name: &str) -> Option<RawFd> {
    let (Map::Array(data) | Map::HashMap(data) | Map::RingBuf(data) | Map::PerCpuArray(data) | Map::PerfEventArray(data)) =
        ebpf.map(name)?
    else {
        return None;
    };
    Some(data.fd().as_fd().as_raw_fd())
}

fn load_one(object: &Object, types: &mut Types, hook: &PlannedHook) -> Result<Loaded, String> {
    let name = hook.program.symbol();
    let program = object.programs.get(name).ok_or_else(|| format!("the object has no program {name}"))?;
    let function = object.functions.get(&program.function_key()).ok_or_else(|| format!("the object has no code of {name}"))?;
    let symbol = hook.symbol.as_deref().unwrap_or_default();
    let (kind, attach_type, (btf_id, module)) = match hook.kind {
        HookKind::RawTracepoint => (HookKind::TypedTracepoint, TRACE_RAW_TP, (types.tracepoint(symbol)?, None)),
        _ => (HookKind::Fentry, TRACE_FENTRY, types.function(symbol)?),
    };
    let tracing = Tracing { name, instructions: &function.instructions, license: &program.license, attach_type, btf_id, module };
    Ok(Loaded { fd: tracing.load()?, kind })
}

/// BTF of the kernel and of the modules that are asked for.
struct Types {
    vmlinux: Arc<Btf>,
    modules: BTreeMap<String, Result<(Btf, OwnedFd), String>>,
}

impl Types {
    fn read() -> Result<Self, String> {
        Ok(Types { vmlinux: Arc::new(btf_file("vmlinux", None)?), modules: BTreeMap::new() })
    }

    /// Id of a tracepoint's typedef.
    fn tracepoint(&self, name: &str) -> Result<u32, String> {
        self.vmlinux.typedef_id(&format!("btf_trace_{name}")).ok_or_else(|| format!("BTF does not describe tracepoint {name}"))
    }

    /// Id of a function given as `module:function` or `function`, and its module's BTF.
    fn function(&mut self, symbol: &str) -> Result<(u32, Option<BorrowedFd<'_>>), String> {
        let undescribed = || format!("BTF does not describe {symbol}");
        let Some((module, function)) = symbol.split_once(':') else {
            return Ok((self.vmlinux.function_id(symbol).ok_or_else(undescribed)?, None));
        };
        let vmlinux = &self.vmlinux;
        let read = || {
            let btf = btf_file(module, Some(vmlinux.clone()))?;
            Ok((btf, bpf_calls::module_btf(module).map_err(|error| format!("BTF of {module}: {error}"))?))
        };
        let found = self.modules.entry(module.to_owned()).or_insert_with(read);
        let (btf, fd) = found.as_ref().map_err(Clone::clone)?;
        Ok((btf.function_id(function).ok_or_else(undescribed)?, Some(fd.as_fd())))
    }
}

fn btf_file(name: &str, base: Option<Arc<Btf>>) -> Result<Btf, String> {
    let path = format!("/sys/kernel/btf/{name}");
    let bytes = std::fs::read(&path).map_err(|error| format!("{path}: {error}"))?;
    Btf::parse(bytes, base).map_err(|error| format!("{path}: {error}"))
}
