//! Tests of scoring and pairing of GIDs.
use super::*;

fn entry(index: u32, address: &str, kind: GidType) -> GidEntry {
    GidEntry { index, gid: Gid(address.parse::<Ipv6Addr>().unwrap().octets()), kind, netdev: None }
}

/// What a RoCE port with one IPv4 and one IPv6 address shows.
fn roce(v4: &str, v6: &str) -> Vec<GidEntry> {
    vec![
        entry(0, "fe80::5054:ff:fe12:3456", GidType::RoceV1),
        entry(1, "fe80::5054:ff:fe12:3456", GidType::RoceV2),
        entry(2, v4, GidType::RoceV1),
        entry(3, v4, GidType::RoceV2),
        entry(4, v6, GidType::RoceV1),
        entry(5, v6, GidType::RoceV2),
    ]
}

#[test]
fn roce_v2_over_ipv4_is_preferred() {
    let choice = choose_local(&roce("::ffff:192.0.2.1", "2001:db8::1")).unwrap();
    assert_eq!(choice.entry.index, 3);
    assert_eq!(choice.reason, "RoCE v2, IPv4 address");
}

#[test]
fn link_local_is_never_chosen_by_accident() {
    let table = vec![entry(0, "fe80::1", GidType::RoceV2), entry(1, "::ffff:169.254.3.4", GidType::RoceV2)];
    let error = choose_local(&table).unwrap_err().to_string();
    assert!(error.contains("fe80::1") && error.contains("not by itself") && error.contains("--gid-index"), "{error}");
    assert!(choose_pair(&table, &table, true, None, None).is_err());
    // By index it is allowed.
    let pair = choose_pair(&table, &table, false, Some(0), Some(0)).unwrap();
    assert_eq!((pair.local.index, pair.remote.index), (0, 0));
}

#[test]
fn a_pair_shares_type_and_family() {
    let ours = roce("::ffff:192.0.2.1", "2001:db8::1");
    // The peer has no RoCE v2 over IPv4.
    let theirs = vec![entry(0, "::ffff:192.0.2.2", GidType::RoceV1), entry(7, "2001:db8::2", GidType::RoceV2)];
    let pair = choose_pair(&ours, &theirs, false, None, None).unwrap();
    assert_eq!((pair.local.index, pair.remote.index), (5, 7));
    // Only v1 is common.
    let pair = choose_pair(&ours, &theirs[..1], false, None, None).unwrap();
    assert_eq!((pair.local.index, pair.remote.index), (2, 0));
    // Nothing is common.
    let pair = choose_pair(&ours[3..4], &theirs[1..], false, None, None);
    assert!(pair.unwrap_err().to_string().contains("no two entries share"));
}

#[test]
fn the_nearest_network_wins_among_equals() {
    let ours = vec![entry(0, "::ffff:10.0.0.1", GidType::RoceV2), entry(1, "::ffff:192.0.2.1", GidType::RoceV2)];
    let theirs = vec![entry(4, "::ffff:192.0.2.9", GidType::RoceV2)];
    assert_eq!(choose_pair(&ours, &theirs, false, None, None).unwrap().local.index, 1);
}

#[test]
fn loopback_serves_one_machine_only() {
    let table = vec![entry(0, "fe80::1", GidType::RoceV2), entry(1, "::ffff:127.0.0.1", GidType::RoceV2), entry(2, "::1", GidType::RoceV2)];
    assert!(choose_pair(&table, &table, false, None, None).is_err());
    let pair = choose_pair(&table, &table, true, None, None).unwrap();
    assert!(pair.local.index == 1 && pair.remote.index == 1, "{pair:?}");
}

#[test]
fn a_missing_index_is_named() {
    let table = roce("::ffff:192.0.2.1", "2001:db8::1");
    let error = choose_pair(&table, &table, true, Some(17), None).unwrap_err().to_string();
    assert!(error.contains("local table has no entry 17"), "{error}");
}

#[test]
fn infiniband_uses_its_port_gid() {
    let table = vec![entry(0, "fe80::2:c903:1:2", GidType::Infiniband)];
    assert_eq!(choose_local(&table).unwrap().entry.index, 0);
}

#[test]
fn the_table_is_read_from_sysfs() {
    let tree = tempfile::tempdir().unwrap();
    let port = tree.path().join("rxe0/ports/1");
    for dir in ["gids", "gid_attrs/types", "gid_attrs/ndevs"] {
        fs::create_dir_all(port.join(dir)).unwrap();
    }
    let rows = [("0", "fe80:0000:0000:0000:5054:00ff:fe12:3456"), ("1", "0000:0000:0000:0000:0000:ffff:c000:0201"), ("2", "::")];
    for (index, gid) in rows {
        fs::write(port.join("gids").join(index), format!("{gid}\n")).unwrap();
        if gid != "::" {
            fs::write(port.join("gid_attrs/types").join(index), "RoCE v2\n").unwrap();
            fs::write(port.join("gid_attrs/ndevs").join(index), "eth0\n").unwrap();
        }
    }
    let table = table_at(tree.path(), "rxe0", 1, LinkLayer::Ethernet).unwrap();
    assert_eq!(table.len(), 2);
    assert_eq!((table[1].index, table[1].kind, table[1].netdev.as_deref()), (1, GidType::RoceV2, Some("eth0")));
    assert_eq!(table[1].gid.to_string(), "::ffff:192.0.2.1");
    fs::write(port.join("gids/3"), "not a gid\n").unwrap();
    assert!(table_at(tree.path(), "rxe0", 1, LinkLayer::Ethernet).unwrap_err().to_string().contains("gids/3"));
    assert!(table_at(tree.path(), "rxe9", 1, LinkLayer::Ethernet).is_err());
}
