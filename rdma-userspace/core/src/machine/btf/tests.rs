//! Tests of the BTF reader on small synthetic data and on the machine's own.

use super::test_support::Builder;
use super::*;

fn base() -> Btf {
    let mut it = Builder::new();
    let int = it.add("int", kind::INT, false, 0, 4, &[32]);
    let pid_t = it.add("pid_t", kind::TYPEDEF, false, 0, int, &[]);
    let anonymous = it.structure("", kind::UNION, 8, false, &[("left", int, 0), ("right", int, 32)]);
    let restrack = it.structure("rdma_restrack_entry", kind::STRUCT, 48, false, &[("task", int, 320)]);
    let constant = it.add("", kind::CONST, false, 0, restrack, &[]);
    it.structure("ib_cq", kind::STRUCT, 224, false, &[("device", int, 0), ("", anonymous, 64), ("res", constant, 1216)]);
    it.structure("task_struct", kind::STRUCT, 100, true, &[("flags", int, 3 << 24 | 5), ("pid", pid_t, 512)]);
    it.add("btf_trace_sched_waking", kind::TYPEDEF, false, 0, int, &[]);
    Btf::parse(it.build(), None).expect("parses")
}

#[test]
fn members_are_found_through_paths_anonymous_members_and_qualifiers() {
    let btf = base();
    assert_eq!(btf.member_offset("ib_cq", "res.task"), Ok(152 + 40));
    assert_eq!(btf.member_offset("ib_cq", "right"), Ok(12));
    assert_eq!(btf.member_offset("task_struct", "pid"), Ok(64));
    assert_eq!(btf.size_of("ib_cq"), Ok(224));
    assert!(btf.has_typedef("btf_trace_sched_waking") && !btf.has_typedef("btf_trace_other"));
}

#[test]
fn what_is_not_there_is_named() {
    let btf = base();
    assert_eq!(btf.member_offset("none", "a"), Err(BtfError::NoStruct { name: "none".into() }));
    assert_eq!(btf.member_offset("ib_cq", "res.none"), Err(BtfError::NoMember { structure: "res".into(), member: "none".into() }));
    assert!(matches!(btf.member_offset("task_struct", "flags"), Err(BtfError::BitField { .. })));
    assert_eq!(btf.parameters("nothing"), None);
}

#[test]
fn a_module_continues_the_types_and_strings_of_its_base() {
    let base = Arc::new(base());
    let cq = base.find("ib_cq", |head| head.kind == kind::STRUCT).expect("in the base");
    let mut it = Builder::on(&base);
    let pad = it.add("u64", kind::INT, false, 0, 8, &[64]);
    let rxe_cq = it.structure("rxe_cq", kind::STRUCT, 300, false, &[("lock", pad, 0), ("ibcq", cq, 64)]);
    let pointer = it.add("", kind::PTR, false, 0, rxe_cq, &[]);
    it.function("rxe_cq_post", &[pointer, pad]);
    let module = Btf::parse(it.build(), Some(base)).expect("parses");
    assert_eq!(module.member_offset("rxe_cq", "ibcq.res.task"), Ok(8 + 192));
    assert_eq!(module.member_offset("task_struct", "pid"), Ok(64), "from the base");
    assert_eq!(module.parameters("rxe_cq_post"), Some(vec!["struct rxe_cq *".to_owned(), "u64".to_owned()]));
}

#[test]
fn damaged_data_is_an_error_and_never_a_panic() {
    assert!(matches!(Btf::parse(vec![0; 64], None), Err(BtfError::NotBtf { .. })));
    let mut it = Builder::new();
    it.add("odd", 31, false, 0, 0, &[]);
    assert!(matches!(Btf::parse(it.build(), None), Err(BtfError::UnknownKind { kind: 31, .. })));
    let mut it = Builder::new();
    let int = it.add("int", kind::INT, false, 0, 4, &[32]);
    it.structure("s", kind::STRUCT, 8, false, &[("a", int, 0)]);
    let whole = it.build();
    for length in 0..whole.len() {
        assert!(Btf::parse(whole[..length].to_vec(), None).is_err(), "{length} of {} bytes parsed", whole.len());
    }
}

#[test]
fn a_typedef_that_refers_to_itself_ends() {
    let mut it = Builder::new();
    let own = it.next_id;
    it.add("loop", kind::TYPEDEF, false, 0, own, &[]);
    it.structure("s", kind::STRUCT, 8, false, &[("a", own, 0)]);
    let btf = Btf::parse(it.build(), None).expect("parses");
    assert_eq!(btf.member_offset("s", "a.b"), Err(BtfError::TooDeep { id: own }));
}

/// The machine's own BTF, where it has one: the reader copes with a real file and finds what every kernel has.
#[test]
fn the_running_kernel_is_understood() {
    let Ok(bytes) = std::fs::read("/sys/kernel/btf/vmlinux") else { return };
    let btf = Btf::parse(bytes, None).expect("parses");
    let pid = btf.member_offset("task_struct", "pid").expect("pid");
    assert_eq!(btf.member_offset("task_struct", "tgid"), Ok(pid + 4));
    assert!(pid > 100 && pid < btf.size_of("task_struct").expect("size"));
    assert_eq!(btf.member_offset("work_struct", "func"), Ok(24));
    assert!(btf.has_typedef("btf_trace_sched_switch"));
    let switch = btf.callback_parameters("btf_trace_sched_switch").expect("described");
    assert_eq!(switch[2..4], ["struct task_struct *", "struct task_struct *"]);
}
