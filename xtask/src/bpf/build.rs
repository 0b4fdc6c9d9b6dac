//! Building the probes' program for the BPF target.

use super::flags::{self, PROFILE, RUSTFLAGS};
use super::object;
use super::record::{Place, Record};
use crate::sources::{self, Sources};
use crate::toolchain::Compiler;
use crate::{paths, process};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

const TARGET: &str = "bpfel-unknown-none";
const PACKAGE: [&str; 4] = ["--package", "ebpf-probes", "--features", "bpf"];
/// Builds the object, and leaves it with its record in `to`.
pub fn build(compiler: &Compiler, linker: &Path, to: &Place) -> Result<()> {
    let root = paths::root();
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let folder = paths::target().join("bpf-build");
    let mut rustflags: Vec<String> = RUSTFLAGS.iter().map(|flag| (*flag).to_owned()).collect();
    // Debug information names files: the same object must come out of every folder.
    let mapped = [(Some(root.clone()), "/rdmascope"), (cargo_home, "/cargo"), (Some(compiler.sysroot.clone()), "/rust")];
    for (from, to) in mapped {
        rustflags.extend(from.map(|from| format!("--remap-path-prefix={}={to}", from.display())));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(linker.to_path_buf()).chain(std::env::split_paths(&path)))?;
    let mut cargo = compiler.cargo();
    cargo.arg("build").args(PACKAGE).args(["--release", "--bin", super::PROGRAM]);
    cargo.args(["-Zbuild-std=core", "--target", TARGET, "--target-dir"]).arg(&folder);
    cargo.args(PROFILE.iter().flat_map(|option| ["--config", option]));
    cargo.env("PATH", path).env("CARGO_ENCODED_RUSTFLAGS", rustflags.join("\u{1f}"));
    process::run(&mut cargo).context("building the probes for the BPF target")?;
    let linked = folder.join(TARGET).join("release").join(super::PROGRAM);
    let whole = fs::read(&linked).with_context(|| format!("reading {}", linked.display()))?;
    let object = object::stripped(&whole)?;
    let read = linked.with_extension("d");
    let read = fs::read_to_string(&read).with_context(|| format!("reading {}", read.display()))?;
    let mut tree = compiler.cargo();
    tree.args(["tree", "--locked"]).args(PACKAGE).args(["--target", TARGET, "--edges", "normal", "--prefix", "none", "--format", "{p}"]);
    let sources = Sources::of_build(&root, &read, &process::output(&mut tree)?, &flags::recorded())?;
    let record = Record::new(sources, sources::sha256(&object), compiler.label());
    to.put(&object, &record)
}
