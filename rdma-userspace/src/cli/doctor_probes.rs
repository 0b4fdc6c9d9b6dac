//! `rdmascope doctor --probes`: which hooks the kernel offers, of this machine or of one whose files are given.
use super::print;
use anyhow::Context;
use capture::Level;
use rdmascope_core::machine::{Root, Sources};
use rdmascope_core::probes::{Plan, PlanView, drivers, extract};
use std::path::PathBuf;
use std::process::ExitCode;

/// Flags of `rdmascope doctor --probes`.
#[derive(clap::Args)]
#[command(next_help_heading = "Probe plan")]
pub struct PlanArgs {
    /// Print which hooks the kernel offers instead of the page: all levels, driver by driver.
    #[arg(long)]
    pub probes: bool,

    /// Another machine: its /proc/kallsyms (all modules of interest loaded).
    #[arg(long, value_name = "FILE", requires = "probes", conflicts_with = "root")]
    kallsyms: Option<PathBuf>,

    /// Another machine: its /sys/kernel/btf/vmlinux.
    #[arg(long, value_name = "FILE", requires = "kallsyms")]
    btf: Option<PathBuf>,

    /// Another machine: /sys/kernel/btf/NAME of a module; may be repeated, needs --btf.
    #[arg(long, value_name = "NAME=FILE", requires = "btf", value_parser = module_btf)]
    module_btf: Vec<(String, PathBuf)>,

    /// Another machine: its /proc/modules; without it, the modules that its symbols name.
    #[arg(long, value_name = "FILE", requires = "kallsyms")]
    modules: Option<PathBuf>,

    /// Another machine: a tree with proc/ and sys/ of it, such as one that --extract wrote.
    #[arg(long, value_name = "DIR", requires = "probes")]
    root: Option<PathBuf>,

    /// Also write the few files from which the same plan follows (no addresses in them) to a new folder.
    #[arg(long, value_name = "DIR", requires = "probes", conflicts_with = "kallsyms")]
    extract: Option<PathBuf>,
}

fn module_btf(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => {
            let (name, known) = (name.replace('-', "_"), drivers::modules());
            if known.contains(&name.as_str()) {
                return Ok((name, PathBuf::from(file)));
            }
            Err(format!("no hook is in a module {name}; they are in {}", known.join(", ")))
        }
        _ => Err("it is NAME=FILE, such as mlx5_ib=mlx5_ib.btf".to_owned()),
    }
}

/// Prints the plan.
pub fn main(args: &PlanArgs, json: bool) -> anyhow::Result<ExitCode> {
    let root = args.root.clone().map_or_else(Root::live, Root::at);
    let sources = match (&args.kallsyms, &args.root) {
        (Some(kallsyms), _) => Sources::files(kallsyms.clone(), args.btf.clone(), args.module_btf.clone(), args.modules.clone()),
        (None, Some(_)) => Sources::tree(&root).strict(),
        (None, None) => Sources::tree(&root),
    };
    let view = PlanView::of(&Plan::from_sources(&sources, Level::Full)?);
    let text = if json { serde_json::to_string_pretty(&view)? + "\n" } else { view.to_string() };
    print(&text)?;
    if let Some(to) = &args.extract {
        if to.exists() {
            anyhow::bail!("{} exists: --extract writes a new folder", to.display());
        }
        let bytes = extract(&root, to).with_context(|| format!("no extract in {}", to.display()))?;
        eprintln!("extract of {} KiB in {}", bytes.div_ceil(1024), to.display());
    }
    Ok(ExitCode::SUCCESS)
}
