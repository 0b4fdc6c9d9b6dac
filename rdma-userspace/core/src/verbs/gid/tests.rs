//! Tests of pairing GIDs.
use super::*;
use crate::machine::gid::Gid;
use std::net::Ipv6Addr;

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
fn link_local_is_never_chosen_by_accident() {
    let table = vec![entry(0, "fe80::1", GidType::RoceV2), entry(1, "::ffff:169.254.3.4", GidType::RoceV2)];
    let error = choose_pair(&table, &table, true, None, None).unwrap_err().to_string();
    assert!(error.contains("fe80::1") && error.contains("not by itself") && error.contains("--gid-index"), "{error}");
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
fn what_the_machine_shows_as_best_is_what_a_run_takes() {
    use crate::machine::device::device;
    use crate::machine::fixture::rxe_machine;
    let tree = rxe_machine();
    let best_and_taken = || {
        let port = device(&tree.root(), "rxe0").expect("rxe0").ports.remove(0);
        let taken = choose_pair(&port.gids, &port.gids, true, None, None).ok().map(|pair| pair.local.index);
        (port.best_gid().map(|entry| entry.index), taken)
    };
    assert_eq!(best_and_taken(), (Some(1), Some(1)));
    // Link-local only: neither.
    tree.write("sys/class/infiniband/rxe0/ports/1/gids/1", "0000:0000:0000:0000:0000:0000:0000:0000\n");
    assert_eq!(best_and_taken(), (None, None));
    // A global IPv6 address of RoCE v2 beside an IPv4 address of RoCE v1.
    tree.write("sys/class/infiniband/rxe0/ports/1/gids/1", "0000:0000:0000:0000:0000:ffff:0a00:0002\n");
    tree.write("sys/class/infiniband/rxe0/ports/1/gid_attrs/types/1", "IB/RoCE v1\n");
    tree.write("sys/class/infiniband/rxe0/ports/1/gids/2", "2001:0db8:0000:0000:0000:0000:0000:0001\n");
    tree.write("sys/class/infiniband/rxe0/ports/1/gid_attrs/types/2", "RoCE v2\n");
    assert_eq!(best_and_taken(), (Some(2), Some(2)));
}
