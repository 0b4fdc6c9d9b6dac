//! Tests of reading and scoring GIDs.
use super::*;
use crate::machine::fixture::{Tree, rxe_machine};

fn entry(index: u32, address: &str, kind: GidType) -> GidEntry {
    GidEntry { index, gid: Gid(address.parse::<Ipv6Addr>().expect("an address").octets()), kind, netdev: None }
}

#[test]
fn order_of_preference() {
    let best_first = [
        entry(0, "::ffff:10.0.0.2", GidType::RoceV2),
        entry(0, "2001:db8::1", GidType::RoceV2),
        entry(0, "::1", GidType::RoceV2),
        entry(0, "::ffff:10.0.0.2", GidType::RoceV1),
        entry(0, "2001:db8::1", GidType::RoceV1),
        entry(0, "fe80::1", GidType::RoceV2),
    ];
    let points = |entry: &GidEntry| entry.score().map(|score| score.points);
    for pair in best_first.windows(2) {
        assert!(points(&pair[0]) > points(&pair[1]), "{pair:?}");
    }
}

#[test]
fn kinds() {
    assert_eq!(GidType::of(Some("IB/RoCE v1"), "Ethernet", false), GidType::RoceV1);
    assert_eq!(GidType::of(Some("IB/RoCE v1"), "InfiniBand", false), GidType::Infiniband);
    assert_eq!(GidType::of(Some("RoCE v2"), "Ethernet", false), GidType::RoceV2);
    assert_eq!(GidType::of(Some("IB/RoCE v1"), "Ethernet", true), GidType::Iwarp);
    assert_eq!(GidType::of(Some("RoCE v9"), "Ethernet", false), GidType::Unknown);
    assert_eq!(GidType::of(None, "InfiniBand", false), GidType::Infiniband);
}

#[test]
fn what_a_run_takes_only_by_index_has_no_score() {
    let table = [
        entry(0, "fe80::1", GidType::RoceV2),
        entry(1, "::ffff:169.254.3.4", GidType::RoceV2),
        entry(2, "2001:db8::1", GidType::Unknown),
        entry(3, "200::", GidType::Iwarp),
    ];
    assert_eq!(best(&table), None);
    assert!(table.iter().all(|entry| entry.score().is_none()));
    assert_eq!([0, 1, 2].map(|at: usize| table[at].scope()), ["link-local", "link-local", "global"]);
    assert_eq!(entry(0, "::ffff:127.0.0.1", GidType::RoceV2).scope(), "loopback");
}

#[test]
fn of_equal_entries_the_first_is_the_best() {
    let table = [entry(4, "::ffff:10.0.0.2", GidType::RoceV2), entry(2, "::ffff:10.0.0.1", GidType::RoceV2)];
    assert_eq!(best(&table).map(|entry| entry.index), Some(2));
}

#[test]
fn roce_v2_over_ipv4_is_preferred() {
    let table = ["fe80::5054:ff:fe12:3456", "::ffff:192.0.2.1", "2001:db8::1"].into_iter().enumerate().flat_map(|(at, address)| {
        let at = 2 * at as u32;
        [entry(at, address, GidType::RoceV1), entry(at + 1, address, GidType::RoceV2)]
    });
    let table: Vec<GidEntry> = table.collect();
    let best = best(&table).expect("one is suitable");
    assert_eq!(best.index, 3);
    assert_eq!(best.score().expect("a score").reason, "RoCE v2, IPv4 address");
}

#[test]
fn infiniband_uses_its_port_gid() {
    let table = [entry(0, "fe80::2:c903:1:2", GidType::Infiniband)];
    assert_eq!(best(&table).map(|entry| entry.index), Some(0));
}

#[test]
fn the_table_is_read_from_sysfs() {
    let tree = rxe_machine();
    let root = tree.root();
    let found = table(&root, "rxe0", 1).expect("a table");
    assert_eq!(found.len(), 2, "the zero entry is left out");
    assert_eq!((found[1].index, found[1].kind, found[1].netdev.as_deref()), (1, GidType::RoceV2, Some("eth0")));
    assert_eq!(found[1].gid.to_string(), "::ffff:10.0.0.2");
    tree.write("sys/class/infiniband/rxe0/ports/1/gids/3", "not a gid\n");
    let error = table(&root, "rxe0", 1).expect_err("damaged");
    assert!(error.path.ends_with("gids/3"), "{error:?}");
    assert!(table(&root, "rxe9", 1).is_err() && table(&Tree::new().root(), "rxe0", 1).is_err());
}

#[test]
fn readers_get_text_and_scores() {
    #[derive(Serialize)]
    struct Port {
        #[serde(serialize_with = "serialize_for_readers")]
        gids: Vec<GidEntry>,
    }
    let gids = vec![entry(0, "fe80::1", GidType::RoceV2), entry(1, "::ffff:10.0.0.2", GidType::RoceV2)];
    let json = serde_json::to_value(Port { gids }).expect("JSON");
    assert_eq!(json["gids"][0]["score"], serde_json::Value::Null);
    assert_eq!(json["gids"][1]["score"], 120);
    assert_eq!((&json["gids"][1]["value"], &json["gids"][1]["kind"]), (&"::ffff:10.0.0.2".into(), &"RoCE v2".into()));
}
