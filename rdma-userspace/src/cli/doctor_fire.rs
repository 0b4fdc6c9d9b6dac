//! `rdmascope doctor --fire`: which hooks fire on a device, proven by traffic of our own over it.
use super::exit::{FAILED, UsageError};
use super::print;
use analysis::explain::fire::{Bundle, judge};
use analysis::show::text;
use anyhow::Context;
use capture::{Capture, Level, Mode, Operation};
use rdmascope_core::doctor::colour_wanted;
use rdmascope_core::machine::rights::{CapabilitySet, effective_capabilities};
use rdmascope_core::machine::{Root, device};
use rdmascope_core::probes::{ProbeError, has_object};
use rdmascope_core::session::{self, CpuChoice, Options, OutputFolder, SessionError, Target};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Samples with the probes on; as many again without them.
const SAMPLES: u64 = 1000;
/// Size of a message in bytes.
const SIZE_BYTES: u32 = 64;
/// Size of the ring between the probes and this program: a thousand samples with every probe take a part of it.
const RING_BYTES: u32 = 16 << 20;
/// The server of a loopback run listens within this time, and a machine settles within the other.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const WARM_UP_MAX: Duration = Duration::from_secs(90);

/// Flags of `rdmascope doctor --fire`.
#[derive(clap::Args)]
#[command(next_help_heading = "Proof that the hooks fire")]
pub struct FireArgs {
    /// Run a thousand SENDs with completion events over a loopback pair on this device, with every probe on, and judge each hook: how often
    /// it fired, how often it must have, and how many samples have their whole chain from the interrupt to the thread. Needs root. Exit
    /// code 0: at least 99 % of the chains are whole (95 % where the kernel dropped hits) and every hook that must fire did; 1: not so, with
    /// the reason; 69: no such device.
    #[arg(long, value_name = "DEVICE", conflicts_with_all = ["device", "probes", "kallsyms", "btf", "module_btf", "modules", "root", "extract"])]
    pub fire: Option<String>,

    /// Also write the judgement to a new file that can be sent to strangers: one JSON object without names, addresses, paths or ids.
    #[arg(long, value_name = "FILE", requires = "fire")]
    bundle: Option<PathBuf>,
}

/// Runs, judges and prints.
pub fn main(name: &str, args: &FireArgs, json: bool) -> anyhow::Result<ExitCode> {
    let file = args.bundle.as_deref().map(BundleFile::reserve).transpose()?;
    // The device before the rights: without one, they would not help.
    let port = port_of(name)?;
    may_probe(name)?;
    let folder = tempfile::tempdir().context("no folder for the capture of this run")?;
    let mut capture = record(name, port, folder.path())?;
    let report = judge(&mut capture)?;
    let bundle = serde_json::to_string_pretty(&Bundle::of(&capture.manifest, &report))? + "\n";
    print(if json { bundle.clone() } else { text::fire(&report, colour_wanted()) }.as_str())?;
    if let Some(file) = file {
        let path = file.write(&bundle)?;
        if !json {
            print(&format!("\nbundle: {} (no names, addresses, paths or ids; read it before you send it)\n", path.display()))?;
        }
    }
    Ok(if report.is_proven() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// The first active port of the device.
fn port_of(name: &str) -> Result<u8, SessionError> {
    let root = Root::live();
    let Some(found) = device::device(&root, name) else {
        let names: Vec<String> = device::devices(&root).into_iter().map(|device| device.name).collect();
        let there = if names.is_empty() { "no RDMA device at all".to_owned() } else { names.join(", ") };
        return Err(SessionError::NoDevice(format!("there is no RDMA device {name}; this host has {there}")));
    };
    let active = found.ports.iter().find(|port| port.is_active()).map(|port| port.number);
    active.ok_or_else(|| SessionError::NoDevice(format!("no port of RDMA device {name} is active; see `rdmascope doctor --device {name}`")))
}

/// The probes can be had, as far as that is known before they are loaded.
fn may_probe(name: &str) -> anyhow::Result<()> {
    if !has_object() {
        return Err(ProbeError::NoObject.into());
    }
    let Some(held) = effective_capabilities(&Root::live()) else { return Ok(()) };
    let needed = [(CapabilitySet::BPF, "CAP_BPF"), (CapabilitySet::PERFMON, "CAP_PERFMON")];
    let lacks = |one: CapabilitySet| !held.intersects(one.union(CapabilitySet::SYS_ADMIN));
    let missing: Vec<&str> = needed.into_iter().filter(|(one, _)| lacks(*one)).map(|(_, name)| name).collect();
    if missing.is_empty() {
        return Ok(());
    }
    anyhow::bail!("--fire attaches probes, which needs root ({} not held); run: sudo rdmascope doctor --fire {name}", missing.join(" and "))
}

/// Records the run below `folder`. A run without probes is an error: there is nothing to judge.
fn record(name: &str, port: u8, folder: &Path) -> anyhow::Result<Capture> {
    let output = OutputFolder::new(folder)?;
    let outcome = session::run(options(name, port, folder));
    // It is read once and thrown away: the log is as good as sealed files.
    output.finish(false);
    outcome?;
    let found = capture::find(folder)?;
    let capture = Capture::open(found.first().context("the run left no capture")?)?;
    if !capture.manifest.plan.iter().any(|row| row.attached) {
        anyhow::bail!("no probe could be attached, so there is nothing to judge: {}", capture.manifest.notes.join("; "));
    }
    Ok(capture)
}

fn options(name: &str, port: u8, folder: &Path) -> Options {
    Options {
        target: Target::Loopback,
        device: Some(name.to_owned()),
        port,
        gid_index: None,
        server_gid_index: None,
        ops: vec![Operation::Send],
        modes: vec![Mode::Event],
        server_mode: None,
        size_bytes: SIZE_BYTES,
        samples: SAMPLES,
        level: Level::Full,
        ring_bytes: RING_BYTES,
        peer_capture: false,
        cpu: CpuChoice::Auto,
        server_cpu: CpuChoice::Auto,
        comp_vector: 0,
        out: folder.to_owned(),
        connect_timeout: CONNECT_TIMEOUT,
        warm_up_max: WARM_UP_MAX,
        quiet: false,
        progress_json: None,
    }
}

/// The file of the bundle: new, made before anything runs, and gone again when nothing came of it.
struct BundleFile {
    path: PathBuf,
    file: File,
    written: bool,
}

impl BundleFile {
    fn reserve(path: &Path) -> anyhow::Result<BundleFile> {
        let name = path.display();
        let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(|error| {
            UsageError(match error.kind() {
                ErrorKind::AlreadyExists => format!("{name} exists, and --bundle overwrites nothing: give a new file"),
                _ => format!("--bundle cannot be written to {name}: {error}"),
            })
        })?;
        Ok(BundleFile { path: path.to_owned(), file, written: false })
    }

    fn write(mut self, text: &str) -> anyhow::Result<PathBuf> {
        let wrote = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_all());
        wrote.with_context(|| format!("the bundle was not written to {}", self.path.display()))?;
        self.written = true;
        Ok(self.path.clone())
    }
}

impl Drop for BundleFile {
    fn drop(&mut self) {
        if !self.written {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_overwrites_nothing_and_leaves_nothing_behind() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("bundle.json");
        drop(BundleFile::reserve(&path).expect("new"));
        assert!(!path.exists(), "an empty bundle is left behind");
        assert_eq!(BundleFile::reserve(&path).expect("new").write("{}").expect("writes"), path);
        let why = |path: &Path| BundleFile::reserve(path).map(|_| ()).expect_err("refused");
        assert!(why(&path).to_string().contains("overwrites nothing") && why(&path).is::<UsageError>());
        assert_eq!(fs::read_to_string(&path).expect("reads"), "{}");
        assert!(why(&dir.path().join("no/such/folder")).to_string().contains("cannot be written"));
    }
}
