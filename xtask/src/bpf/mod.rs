//! `cargo xtask bpf`: builds the probes' program for the BPF target, checks the object, and keeps the committed copy for
//! machines that have no compiler for that target.

mod object;

use crate::toolchain::{self, Compiler};
use crate::{exit, paths, process, sources};
use anyhow::{Context, Result, bail};
use object::check;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::PathBuf;

const PROGRAM: &str = "rdmascope-probes";
const TARGET: &str = "bpfel-unknown-none";
/// What the object depends on beside its sources. Part of the fingerprint.
const RUSTFLAGS: [&str; 3] = ["--cfg=bpf_target_arch=\"x86_64\"", "-Cdebuginfo=2", "-Clink-arg=--btf"];
const PROFILE: [&str; 5] = [
    "profile.release.debug=2",
    "profile.release.opt-level=3",
    "profile.release.codegen-units=1",
    "profile.release.lto=false",
    "profile.release.panic=\"abort\"",
];

/// Options of `cargo xtask bpf`.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// Also replace the committed object in ebpf-probes/prebuilt/ and its record.
    #[arg(long)]
    update_prebuilt: bool,
    /// Print nothing but the path.
    #[arg(long, short)]
    quiet: bool,
}

/// What the committed object was made of.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    /// SHA-256 of sources, locked dependencies and flags, see [`sources::fingerprint`].
    sources_sha256: String,
    /// SHA-256 of the object.
    object_sha256: String,
    /// Compiler, LLVM and linker.
    toolchain: String,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<()> {
    let object = ensure()?;
    let summary = check(&fs::read(&object)?)?;
    if !args.quiet {
        print!("{summary}");
    }
    println!("{}", paths::shown(&object));
    if args.update_prebuilt {
        update_prebuilt()?;
    } else if let Err(stale) = prebuilt_is_fresh().and_then(|()| prebuilt_is_reproduced()) {
        eprintln!("xtask: note: {stale:#}");
    }
    Ok(())
}

/// Builds the object, or takes the committed one where no compiler can; returns its path.
pub fn ensure() -> Result<PathBuf> {
    let object = paths::bpf_object();
    match (Compiler::find(), toolchain::linker_folder()) {
        (Some(compiler), Some(linker)) => build(&compiler, &linker)?,
        (compiler, linker) => {
            let mut why = if compiler.is_none() { Compiler::reasons() } else { Vec::new() };
            if linker.is_none() {
                why.push(format!("no bpf-linker {}", toolchain::LINKER_VERSION));
            }
            let why = why.join("; ");
            let copy = prebuilt().join(PROGRAM);
            prebuilt_is_fresh()
                .map_err(|stale| exit::infrastructure(format!("the BPF target cannot be built here ({why}) and {stale:#}")))?;
            eprintln!("xtask: the BPF target cannot be built here ({why}): taking the committed object");
            replace(&object, &fs::read(&copy)?)?;
        }
    }
    check(&fs::read(&object)?)?;
    Ok(object)
}

fn build(compiler: &Compiler, linker: &std::path::Path) -> Result<()> {
    let root = paths::root();
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let folder = paths::target().join("bpf-build");
    let mut flags: Vec<String> = RUSTFLAGS.iter().map(|flag| (*flag).to_owned()).collect();
    // Debug information names files: the same object must come out of every folder.
    let mapped = [(Some(root), "/rdmascope"), (cargo_home, "/cargo"), (Some(compiler.sysroot.clone()), "/rust")];
    for (from, to) in mapped {
        flags.extend(from.map(|from| format!("--remap-path-prefix={}={to}", from.display())));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(linker.to_path_buf()).chain(std::env::split_paths(&path)))?;
    let mut cargo = compiler.cargo();
    cargo.args(["build", "--release", "--package", "ebpf-probes", "--bin", PROGRAM, "--features", "bpf"]);
    cargo.args(["-Zbuild-std=core", "--target", TARGET, "--target-dir"]).arg(&folder);
    cargo.args(PROFILE.iter().flat_map(|option| ["--config", option]));
    cargo.env("PATH", path).env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    process::run(&mut cargo).context("building the probes for the BPF target")?;
    let built = folder.join(TARGET).join("release").join(PROGRAM);
    let whole = fs::read(&built).with_context(|| format!("reading {}", built.display()))?;
    replace(&paths::bpf_object(), &object::stripped(&whole)?)
}

/// Writes the file only when it differs, so that what depends on it is not built again for nothing.
fn replace(path: &std::path::Path, content: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    let folder = path.parent().context("a file lies in a folder")?;
    fs::create_dir_all(folder)?;
    let unfinished = path.with_extension("new");
    fs::write(&unfinished, content)?;
    fs::rename(&unfinished, path).with_context(|| format!("writing {}", path.display()))
}

fn prebuilt() -> PathBuf {
    paths::root().join("ebpf-probes").join("prebuilt")
}

fn record_path() -> PathBuf {
    prebuilt().join("record.json")
}

fn fingerprint() -> Result<String> {
    let flags: Vec<&str> = RUSTFLAGS.iter().chain(PROFILE.iter()).copied().collect();
    sources::fingerprint(&paths::root(), &flags)
}

fn update_prebuilt() -> Result<()> {
    let Some(compiler) = Compiler::find().filter(|_| toolchain::linker_folder().is_some()) else {
        return Err(exit::infrastructure("the committed object can only be replaced where the BPF target can be built"));
    };
    let object = fs::read(paths::bpf_object())?;
    let object_sha256 = sources::sha256(&object);
    let record = Record { sources_sha256: fingerprint()?, object_sha256, toolchain: compiler.label() };
    replace(&prebuilt().join(PROGRAM), &object)?;
    replace(&record_path(), format!("{}\n", serde_json::to_string_pretty(&record)?).as_bytes())?;
    println!("{} is up to date", paths::shown(&prebuilt().join(PROGRAM)));
    Ok(())
}

/// Fails when the committed object is not made from the present sources, or differs from a build by the same toolchain.
pub fn prebuilt_is_fresh() -> Result<()> {
    const RENEW: &str = "renew it with `cargo xtask bpf --update-prebuilt`";
    let record = fs::read(record_path()).with_context(|| format!("there is no committed object ({RENEW})"))?;
    let record: Record = serde_json::from_slice(&record).context("reading the committed object's record")?;
    if record.sources_sha256 != fingerprint()? {
        bail!("the committed object is older than the probes' sources ({RENEW})");
    }
    let object = prebuilt().join(PROGRAM);
    let object = fs::read(&object).with_context(|| format!("reading {}", object.display()))?;
    if record.object_sha256 != sources::sha256(&object) {
        bail!("the committed object is not the one that its record describes ({RENEW})");
    }
    Ok(())
}

/// Fails when the object that this machine just built differs from the committed one although the toolchain is the same.
pub fn prebuilt_is_reproduced() -> Result<()> {
    let record: Record = serde_json::from_slice(&fs::read(record_path())?)?;
    let same = Compiler::find().is_some_and(|compiler| compiler.label() == record.toolchain);
    if same && sources::sha256(&fs::read(paths::bpf_object())?) != record.object_sha256 {
        bail!("the same toolchain ({}) built other bytes than the committed object's", record.toolchain);
    }
    Ok(())
}
