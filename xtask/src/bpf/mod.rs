//! `cargo xtask bpf`: builds the probes' program for the BPF target, checks the object, and keeps the committed copy for
//! machines that have no compiler for that target.

mod build;
mod flags;
mod object;
mod record;

use crate::toolchain::{self, Compiler};
use crate::{exit, paths};
use anyhow::{Result, anyhow, bail};
use record::Place;
use std::fs;
use std::path::PathBuf;

const PROGRAM: &str = "rdmascope-probes";
const RENEW: &str = "renew it with `cargo xtask bpf --update-prebuilt`";

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

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<()> {
    let object = ensure()?;
    let summary = object::check(&fs::read(&object)?)?;
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
    let built = Place::built();
    match (Compiler::find(), toolchain::linker_folder()) {
        (Some(compiler), Some(linker)) => build::build(&compiler, &linker, &built)?,
        (compiler, linker) => {
            let mut why = if compiler.is_none() { Compiler::reasons() } else { Vec::new() };
            if linker.is_none() {
                why.push(format!("no bpf-linker {}", toolchain::LINKER_VERSION));
            }
            let why = why.join("; ");
            prebuilt_is_fresh()
                .map_err(|stale| exit::infrastructure(format!("the BPF target cannot be built here ({why}) and {stale:#}")))?;
            eprintln!("xtask: the BPF target cannot be built here ({why}): taking the committed object");
            built.take(&Place::committed())?;
        }
    }
    object::check(&fs::read(built.object())?)?;
    Ok(built.object())
}

/// An object of the present sources that is there without building.
#[derive(Debug)]
pub struct Ready(Place);

/// Looks for an object that need not be built: what was built here before, else the committed one.
///
/// # Errors
/// Why neither can be taken, in words about the committed one.
pub fn ready() -> Result<Ready> {
    if Place::built().fresh().is_ok() {
        return Ok(Ready(Place::built()));
    }
    Place::committed().fresh().map(|_| Ready(Place::committed()))
}

impl Ready {
    /// Puts the object where the next build of `rdmascope` takes it from; returns which one it is and why.
    pub fn take(&self) -> Result<String> {
        let built = Place::built();
        built.take(&self.0)?;
        object::check(&fs::read(built.object())?)?;
        let toolchain = built.record()?.toolchain;
        let which = paths::shown(&self.0.object());
        Ok(format!("taking {which}: it is made from the present sources (by {toolchain}), so nothing has to be built"))
    }
}

fn update_prebuilt() -> Result<()> {
    if Compiler::find().is_none() || toolchain::linker_folder().is_none() {
        return Err(exit::infrastructure("the committed object can only be replaced where the BPF target can be built"));
    }
    let committed = Place::committed();
    committed.take(&Place::built())?;
    println!("{} is up to date", paths::shown(&committed.object()));
    Ok(())
}

/// Fails when the committed object is not made from the present sources.
pub fn prebuilt_is_fresh() -> Result<()> {
    Place::committed().fresh().map(drop).map_err(|stale| anyhow!("{stale:#} ({RENEW})"))
}

/// Fails when the object that this machine just built differs from the committed one although the toolchain is the same.
pub fn prebuilt_is_reproduced() -> Result<()> {
    let (built, committed) = (Place::built().record()?, Place::committed().record()?);
    if built.toolchain == committed.toolchain && built.object_sha256 != committed.object_sha256 {
        bail!("the same toolchain ({}) built other bytes than the committed object's; {RENEW}", built.toolchain);
    }
    Ok(())
}
