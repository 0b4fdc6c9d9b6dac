//! The BPF object that was built into this program.

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/rdmascope-probes"));

/// Whether this build carries the object.
pub fn has_object() -> bool {
    !OBJECT.is_empty()
}

/// The object's bytes; empty when this build carries none.
pub fn object() -> &'static [u8] {
    OBJECT
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use aya_obj::generated::{BPF_PSEUDO_MAP_FD, BPF_PSEUDO_MAP_VALUE};
    use aya_obj::{EbpfSectionKind, Function, Object};
    use ebpf_probes::Program;
    use ebpf_probes::config::{
        CLOCK_MAP, COUNTERS_MAP, RING_MAP, SYSCALL_THREAD_MAP, SYSCALLS_MAP, TRACKED_IRQS_MAP, TRACKED_PIDS_MAP, TRACKED_QPNS_MAP,
        TRACKED_TGIDS_MAP,
    };

    use super::*;

    fn parsed() -> Object {
        Object::parse(object()).expect("this build carries an object")
    }

    /// The code of a program.
    fn code(object: &Object, program: Program) -> &Function {
        let name = program.symbol();
        let found = object.programs.get(name).unwrap_or_else(|| panic!("no program {name}"));
        object.functions.get(&found.function_key()).unwrap_or_else(|| panic!("no code of {name}"))
    }

    #[test]
    fn every_program_has_its_code_its_types_and_its_source_lines() {
        let object = parsed();
        assert!(object.btf.is_some() && object.btf_ext.is_some());
        for program in Program::ALL {
            let function = code(&object, *program);
            let (types, lines) = (function.func_info.func_info.len(), function.line_info.line_info.len());
            assert!(!function.instructions.is_empty() && types == 1 && lines > 1, "{program:?}: {types} types, {lines} lines");
        }
    }

    #[test]
    fn every_map_and_global_that_the_loader_names_is_there() {
        let mut object = parsed();
        let tracked = [TRACKED_IRQS_MAP, TRACKED_PIDS_MAP, TRACKED_QPNS_MAP, TRACKED_TGIDS_MAP];
        for name in [RING_MAP, COUNTERS_MAP, CLOCK_MAP, SYSCALLS_MAP, SYSCALL_THREAD_MAP, "AYA_LOGS"].into_iter().chain(tracked) {
            assert!(object.maps.contains_key(name), "no map {name}");
        }
        // One of each size: globals are found by their symbols.
        let globals: [(&str, &[u8]); 3] = [("TYPED", &[1; 4]), ("TASKLET_FUNC_7", &[1; 8]), (aya_log::LEVEL, &[1])];
        object.patch_map_data(globals.into_iter().map(|(name, bytes)| (name, (bytes, true))).collect()).expect("the globals are there");
    }

    #[test]
    fn every_program_reaches_its_maps_and_constants() {
        let mut object = parsed();
        let maps = object.maps.clone();
        let placed: Vec<_> = maps.iter().zip(3..).map(|((name, map), fd)| (name.as_str(), fd, map)).collect();
        let sections: HashSet<usize> = object.functions.keys().map(|(section, _)| *section).collect();
        let fds = |kind: fn(EbpfSectionKind) -> bool| -> HashSet<i32> {
            placed.iter().filter(|(_, _, map)| kind(map.section_kind())).map(|(_, fd, _)| *fd).collect()
        };
        let (constants, others) = (fds(|kind| kind == EbpfSectionKind::Rodata), fds(|kind| kind != EbpfSectionKind::Rodata));
        object.relocate_maps(placed.iter().copied(), &sections).expect("maps");
        object.relocate_calls(&sections).expect("calls");
        for program in Program::ALL {
            let function = code(&object, *program);
            let reached = |pseudo: u32, among: &HashSet<i32>| {
                function.instructions.iter().any(|it| it.code == LOAD_WIDE && u32::from(it.src_reg()) == pseudo && among.contains(&it.imm))
            };
            assert!(reached(BPF_PSEUDO_MAP_FD, &others), "{program:?} reaches no map");
            // Others have no offset or switch to look at.
            let has_constants = matches!(program, Program::CompHandler | Program::RxeXmit | Program::SchedSwitch);
            assert!(!has_constants || reached(BPF_PSEUDO_MAP_VALUE, &constants), "{program:?} reaches no constants");
        }
    }

    /// The code of an instruction that loads 64 bits: a map's address, once it is known.
    const LOAD_WIDE: u8 = 0x18;

    #[test]
    fn nothing_is_carried_for_debuggers() {
        let names = object().windows(7).any(|bytes| bytes == b".debug_");
        assert!(!names, "the object of {} bytes has debug sections", object().len());
    }
}
