//! `rdmascope doctor --fire` on soft-RoCE: what it has of the path is proven, and what it cannot have is said to be none of its path.
//!
//! Ignored by default: `cargo xtask test` runs them inside the guest, where `rdmascope` is on the PATH and `rxe0` is there.

use crate::support::bundle::fire;
use crate::support::program::rdmascope;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// A user without rights.
const NOBODY: u32 = 65_534;

#[test]
#[ignore = "runs in the VM"]
fn a_software_device_is_proven_without_an_interrupt_in_its_path() {
    let fired = fire("rxe0");
    assert_eq!(fired.code, Some(0), "{}", fired.text);
    assert_eq!(fired.bundle["device"]["completion_shape"], "anywhere");
    for hook in ["K5 completion handler", "K6 waking", "K7 wakeup", "K8 run", "R1 post enters the kernel", "R6 CQE posted"] {
        assert_eq!(fired.judgement(hook), "as_expected", "{hook}: {}", fired.text);
    }
    for step in ["K1 interrupt", "K3 request for the bottom half", "K4 bottom half", "driver's callback"] {
        assert_eq!(fired.missing(step), None, "{step}: {}", fired.text);
    }
    assert!(fired.text.contains("not in this device's path") && !fired.text.contains("EMULATED DEVICE"), "{}", fired.text);
    assert!(fired.chains("slept") >= 100, "{}", fired.text);
}

#[test]
#[ignore = "runs in the VM"]
fn without_rights_it_says_so_before_anything_runs() {
    let dir = tempfile::tempdir().expect("a folder");
    let bundle = dir.path().join("bundle.json");
    // Everybody may write there, so that nothing but the rights for probes is in the way.
    assert!(Command::new("chmod").arg("777").arg(dir.path()).status().expect("chmod is there").success());
    let path = bundle.to_str().expect("plain");
    let mut program = Command::new("rdmascope");
    let end = program.args(["doctor", "--fire", "rxe0", "--bundle", path]).uid(NOBODY).gid(NOBODY).output().expect("starts");
    let text = String::from_utf8_lossy(&end.stderr);
    assert_eq!(end.status.code(), Some(1), "{text}");
    assert!(text.contains("needs root") && text.contains("sudo rdmascope doctor --fire rxe0"), "{text}");
    assert!(!text.contains("warm-up") && !bundle.exists(), "{text}");
}

#[test]
#[ignore = "runs in the VM"]
fn the_bundle_is_what_json_prints() {
    let end = rdmascope(&["doctor", "--fire", "rxe0", "--json"]).end_within(Duration::from_secs(400));
    assert_eq!(end.code, Some(0), "{}", end.text);
    assert!(end.text.contains("\"bundle_version\": 1") && end.text.contains("\"proven\": true"), "{}", end.text);
}
