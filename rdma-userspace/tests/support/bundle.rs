//! `doctor --fire` with its bundle: what came of it, and that nothing of this machine's owner is in the file.
use super::program::rdmascope;
use rdmascope_core::machine::{Root, device};
use serde_json::Value;
use std::fs;
use std::net::Ipv6Addr;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(400);

/// What the command did.
pub struct Fired {
    /// Its exit code; `None`: by a signal.
    pub code: Option<i32>,
    /// What it printed.
    pub text: String,
    /// The bundle, as it was written.
    pub bundle: Value,
}

/// Runs it on a device. The bundle is searched for addresses and names.
pub fn fire(device: &str) -> Fired {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("bundle.json");
    let end = rdmascope(&["doctor", "--fire", device, "--bundle", path.to_str().expect("plain")]).end_within(PATIENCE);
    println!("{}", end.text);
    let bundle = fs::read_to_string(&path).unwrap_or_else(|error| panic!("no bundle ({error}): {}", end.text));
    tells_nothing_of_its_owner(&bundle, device);
    Fired { code: end.code, text: end.text, bundle: serde_json::from_str(&bundle).expect("JSON") }
}

impl Fired {
    /// The judgement on a hook.
    pub fn judgement(&self, hook: &str) -> &str {
        let hooks = self.bundle["hooks"].as_array().expect("hooks");
        let row = hooks.iter().find(|row| row["hook"] == hook).unwrap_or_else(|| panic!("{hook}: no row in {hooks:?}"));
        row["judgement"]["is"].as_str().expect("a word")
    }

    /// A count over the chains.
    pub fn chains(&self, what: &str) -> u64 {
        self.bundle["chains"][what].as_u64().unwrap_or_else(|| panic!("{what}: {}", self.bundle["chains"]))
    }

    /// Chains in which a step is missing; `None`: it is not in the path.
    pub fn missing(&self, step: &str) -> Option<u64> {
        let steps = self.bundle["chains"]["steps"].as_array().expect("steps");
        steps.iter().find(|seen| seen["step"] == step).unwrap_or_else(|| panic!("no {step}"))["missing"].as_u64()
    }
}

fn tells_nothing_of_its_owner(bundle: &str, name: &str) {
    let told = |path: String| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let mut hidden = vec![told("/proc/sys/kernel/hostname".into()), told("/proc/sys/kernel/random/boot_id".into()), name.to_owned()];
    let device = device::device(&Root::live(), name).expect("the device");
    hidden.extend(device.node_guid.clone());
    let gids: Vec<String> = device.ports.iter().flat_map(|port| port.gids.iter().map(|entry| entry.gid.to_string())).collect();
    assert!(!gids.is_empty(), "{name} has no GID to search for");
    for gid in &gids {
        let address: Ipv6Addr = gid.parse().expect("an address");
        hidden.extend(address.to_ipv4_mapped().map(|it| it.to_string()));
        let words = address.segments().map(|word| format!("{word:04x}"));
        hidden.push(words.join(":"));
    }
    hidden.extend(gids);
    for entry in fs::read_dir("/sys/class/net").into_iter().flatten().flatten() {
        let mac = told(format!("{}/address", entry.path().display()));
        hidden.extend(Some(mac).filter(|mac| !mac.is_empty() && mac != "00:00:00:00:00:00"));
    }
    // The loopback address is everybody's.
    for hidden in hidden.iter().filter(|it| *it != "::1") {
        assert!(hidden.len() > 3, "`{hidden}` is too short to search for: {hidden:?}");
        assert!(!bundle.contains(hidden.as_str()), "`{hidden}` is in the bundle: {bundle}");
    }
}
