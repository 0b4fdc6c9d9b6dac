//! `cargo xtask setup`: finds what is missing on this machine, says it, and installs it. Quick where nothing is missing.
//! Works in a bare Debian or Ubuntu with cargo and a C linker.

use crate::toolchain::{self, Compiler};
use crate::{exit, paths, process};
use anyhow::{Result, anyhow};
use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::process::Command;

/// What building and the virtual machines need, and why. The names are those of Debian 12 and of Debian 13.
const PACKAGES: [(&str, &str); 15] = [
    ("libibverbs-dev", "verbs"),
    ("librdmacm-dev", "verbs"),
    ("pkg-config", "finding libibverbs"),
    ("libclang-dev", "reading its headers"),
    ("ibverbs-providers", "the soft-RoCE provider in the guest"),
    ("ibverbs-utils", "ibv_rc_pingpong in the guest"),
    ("iproute2", "ip and rdma in the guest"),
    ("busybox-static", "the guest's shell"),
    ("kmod", "module dependencies"),
    ("xz-utils", "unpacking modules"),
    ("zstd", "unpacking modules"),
    ("libc-bin", "finding shared libraries"),
    ("util-linux", "ending a virtual machine with xtask"),
    ("qemu-system-x86", "the virtual machine"),
    ("ca-certificates", "downloads"),
];
/// What only the tests need.
const TEST_PACKAGES: [(&str, &str); 2] =
    [("perftest", "foreign programs to trace in the guest"), ("git", "the list of the files that are checked")];
/// Debian's compiler for the BPF target, and what building the linker needs; in the security suites of these releases.
const BPF_PACKAGES: [&str; 3] = ["rustc-web", "cargo-web", "rust-web-src"];
const LINKER_PACKAGES: [&str; 2] = ["llvm-22-dev", "g++"];
/// Why they are needed.
const BPF_REASON: &str = "building the probes";
const BPF_RELEASES: [&str; 2] = ["bookworm", "trixie"];

/// What a job needs beside a build of `rdmascope` and a guest to run it in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// What the tests use.
    pub tests: bool,
    /// A compiler for the BPF target and its linker: 200 s and 1 GB.
    pub bpf: bool,
}

impl Needs {
    /// Everything that any job needs.
    pub const ALL: Self = Self { tests: true, bpf: true };

    fn packages(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        PACKAGES.into_iter().chain(TEST_PACKAGES.into_iter().filter(move |_| self.tests))
    }
}

/// Options of `cargo xtask setup`.
#[derive(Debug, Default, Clone, clap::Args)]
pub struct Args {
    /// Install nothing: print what is missing and the command that installs it, and end with 69.
    #[arg(long)]
    pub no_install: bool,
    /// Install without asking.
    #[arg(long, short)]
    pub yes: bool,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<()> {
    ensure(args, Needs::ALL)?;
    println!("everything is there");
    Ok(())
}

/// What has to be done on this machine.
#[derive(Debug, Default)]
struct Plan {
    /// Packages, and why each is needed.
    packages: Vec<(&'static str, &'static str)>,
    /// Packages without which the committed BPF object is taken.
    bpf_packages: Vec<&'static str>,
    nightly: bool,
    linker: bool,
}

impl Plan {
    fn is_empty(&self) -> bool {
        self.packages.is_empty() && self.bpf_packages.is_empty() && !self.nightly && !self.linker
    }

    /// Whether this plan has something to install that `before` had not.
    fn goes_beyond(&self, before: &Self) -> bool {
        self.packages.iter().any(|package| !before.packages.contains(package))
            || self.bpf_packages.iter().any(|package| !before.bpf_packages.contains(package))
            || (self.nightly && !before.nightly)
            || (self.linker && !before.linker)
    }

    fn has_packages(&self) -> bool {
        !self.packages.is_empty() || !self.bpf_packages.is_empty()
    }

    /// The commands of the plan, as they are run.
    fn commands(&self) -> Vec<Command> {
        let mut commands = Vec::new();
        if self.has_packages() {
            commands.push(apt(&["update", "-qq"]));
        }
        let packages = self.packages.iter().map(|(name, _)| *name).collect();
        for packages in [&packages, &self.bpf_packages].into_iter().filter(|list| !list.is_empty()) {
            let mut install = apt(&["install", "-y", "-qq", "--no-install-recommends"]);
            install.args(packages);
            commands.push(install);
        }
        if self.nightly {
            let mut rustup = process::command("rustup");
            rustup.args(["toolchain", "install", "nightly", "--profile", "minimal", "--component", "rust-src"]);
            commands.push(rustup);
        }
        if self.linker {
            let mut cargo = process::cargo();
            cargo.args(["install", "--locked", "bpf-linker", "--version", toolchain::LINKER_VERSION, "--root"]);
            cargo.arg(paths::tools()).args(["--no-default-features", "--features"]);
            cargo.arg(format!("llvm-{}", toolchain::LLVM_MAJOR)).env("LLVM_PREFIX", toolchain::llvm_prefix());
            commands.push(cargo);
        }
        commands
    }
}

/// Installs what is missing for `needs`, or says what it is and fails.
pub fn ensure(args: &Args, needs: Needs) -> Result<()> {
    let plan = plan(needs)?;
    carry_out(&plan, args)?;
    if plan.has_packages() {
        // The lists of packages are new now, and may offer what the old ones did not.
        let rest = self::plan(needs)?;
        if rest.goes_beyond(&plan) {
            carry_out(&rest, args)?;
        }
    }
    Ok(())
}

fn carry_out(plan: &Plan, args: &Args) -> Result<()> {
    if plan.is_empty() {
        return Ok(());
    }
    let commands = plan.commands();
    let lines: Vec<String> = commands.iter().map(shown).collect();
    println!("missing on this machine:");
    for (package, why) in plan.packages.iter().copied().chain(plan.bpf_packages.iter().map(|package| (*package, BPF_REASON))) {
        println!("  {package} ({why})");
    }
    if plan.nightly {
        println!("  a nightly Rust with its library sources ({BPF_REASON})");
    }
    if plan.linker {
        println!("  bpf-linker {} ({BPF_REASON}; into {})", toolchain::LINKER_VERSION, paths::shown(&paths::tools()));
    }
    println!("commands:\n  {}", lines.join("\n  "));
    if args.no_install {
        return Err(exit::infrastructure(format!("not installing anything; run:\n{}", lines.join(" &&\n"))));
    }
    if plan.has_packages() && !process::is_root() && process::which("sudo").is_none() {
        return Err(exit::infrastructure(format!("neither root nor sudo; as root, run:\n{}", lines.join(" &&\n"))));
    }
    if !args.yes && !agreed()? {
        return Err(exit::infrastructure("nothing was installed"));
    }
    for command in commands {
        install(command)?;
    }
    Ok(())
}

/// Installs a tracer that a bench compares with, or says what it is and fails. Nothing else needs it.
pub fn ensure_tracer(args: &Args, tracer: &str) -> Result<()> {
    if process::which(tracer).is_some() {
        return Ok(());
    }
    let mut command = apt(&["install", "-y", "-qq", "--no-install-recommends"]);
    command.arg(tracer);
    let line = shown(&command);
    println!("missing on this machine:\n  {tracer} (the bench compares with it)\ncommand:\n  {line}");
    if args.no_install {
        return Err(exit::infrastructure(format!("not installing anything; run:\n{line}")));
    }
    if !args.yes && !agreed()? {
        return Err(exit::infrastructure("nothing was installed"));
    }
    install(apt(&["update", "-qq"]))?;
    install(command)
}

fn install(mut command: Command) -> Result<()> {
    let line = shown(&command);
    println!("+ {line}");
    // The toolchain is a convenience: without it the committed object is taken.
    let is_apt = command.get_args().chain([command.get_program()]).any(|word| word.to_string_lossy().ends_with("apt-get"));
    match process::run(&mut command) {
        Err(error) if is_apt => Err(exit::infrastructure(format!("{error:#}"))),
        Err(error) => {
            eprintln!("xtask: {error:#}; the committed BPF object will be used");
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

/// The command as a user could type it, with the variable that matters.
fn shown(command: &Command) -> String {
    let prefix = command.get_envs().find(|(name, _)| *name == "LLVM_PREFIX");
    let prefix = prefix.and_then(|(name, value)| Some(format!("{}={} ", name.to_str()?, value?.to_str()?)));
    prefix.unwrap_or_default() + &process::line(command)
}

/// Asks, where there is someone to ask.
fn agreed() -> Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Ok(true);
    }
    print!("install now? [Y/n] ");
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "" | "y" | "Y" | "yes"))
}

fn apt(args: &[&str]) -> Command {
    let mut command = if process::is_root() {
        process::command("apt-get")
    } else {
        let mut sudo = process::command("sudo");
        sudo.args(["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]);
        sudo
    };
    command.env("DEBIAN_FRONTEND", "noninteractive").args(args);
    command
}

fn plan(needs: Needs) -> Result<Plan> {
    if process::which("dpkg-query").is_none() || process::which("apt-get").is_none() {
        let names: Vec<&str> = needs.packages().map(|(name, _)| name).collect();
        return Err(exit::infrastructure(format!(
            "this is no Debian or Ubuntu: install by hand what these packages hold: {}",
            names.join(" ")
        )));
    }
    let installed = installed()?;
    let mut plan = Plan { packages: needs.packages().filter(|(name, _)| !installed.contains(*name)).collect(), ..Plan::default() };
    if needs.bpf {
        plan_bpf(&mut plan, &installed);
    }
    Ok(plan)
}

/// Adds what building for the BPF target lacks, where this machine can have it.
fn plan_bpf(plan: &mut Plan, installed: &BTreeSet<String>) {
    let missing =
        |names: &[&'static str]| -> Vec<&'static str> { names.iter().copied().filter(|name| !installed.contains(*name)).collect() };
    let compiler = Compiler::find();
    if compiler.is_none() {
        if has_candidates(&BPF_PACKAGES) {
            plan.bpf_packages.extend(missing(&BPF_PACKAGES));
        } else {
            plan.nightly = process::which("rustup").is_some();
        }
    }
    let can_compile = compiler.is_some() || plan.nightly || !plan.bpf_packages.is_empty();
    if can_compile && toolchain::linker_folder().is_none() {
        let is_offered = missing(&LINKER_PACKAGES).is_empty() || has_candidates(&LINKER_PACKAGES);
        if is_offered {
            plan.bpf_packages.extend(missing(&LINKER_PACKAGES));
            plan.linker = true;
        }
    }
}

/// Names of the installed packages, without architecture.
fn installed() -> Result<BTreeSet<String>> {
    let format = "-f=${db:Status-Status} ${Package}\\n";
    let list = process::output(process::command("dpkg-query").args(["-W", format]))
        .map_err(|error| anyhow!("asking for the installed packages: {error:#}"))?;
    Ok(list.lines().filter_map(|line| line.strip_prefix("installed ")).map(str::to_owned).collect())
}

/// Whether this machine's archive offers every one of the packages.
fn has_candidates(packages: &[&str]) -> bool {
    let policy = process::output(process::command("apt-cache").env("LC_ALL", "C").arg("policy").args(packages));
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    are_offered(packages.len(), &policy.unwrap_or_default(), &release)
}

/// Whether what `apt-cache policy` says of `count` packages is an offer of each. Where the lists were never fetched, nothing is
/// known: then the releases that have them are told by their names.
fn are_offered(count: usize, policy: &str, os_release: &str) -> bool {
    let offered = policy.lines().filter(|line| line.trim_start().starts_with("Candidate:") && !line.ends_with("(none)")).count();
    // Without lists a package that an installed one merely names has an entry too, with "(none)".
    let codename = os_release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    offered == count || (offered == 0 && codename.is_some_and(|name| BPF_RELEASES.contains(&name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_plan_runs_nothing() {
        assert!(Plan::default().is_empty());
        assert!(Plan::default().commands().is_empty());
    }

    #[test]
    fn the_commands_can_be_typed() {
        let packages = vec![("kmod", "one"), ("zstd", "two")];
        let plan = Plan { packages, bpf_packages: vec!["g++"], nightly: false, linker: true };
        let lines: Vec<String> = plan.commands().iter().map(shown).collect();
        assert_eq!(lines.len(), 4);
        assert!(lines[1].ends_with("apt-get install -y -qq --no-install-recommends kmod zstd"), "{}", lines[1]);
        assert!(lines[3].starts_with("LLVM_PREFIX=/usr/lib/llvm-22 "), "{}", lines[2]);
        assert!(lines[3].contains("bpf-linker --version 0.13.0"), "{}", lines[2]);
    }
    #[test]
    fn a_job_asks_for_what_it_needs_and_no_more() {
        let names = |needs: Needs| needs.packages().map(|(name, _)| name).collect::<Vec<_>>();
        let demo = names(Needs { tests: false, bpf: false });
        assert!(demo.contains(&"libibverbs-dev") && demo.contains(&"qemu-system-x86"));
        for only_tests in ["git", "perftest"] {
            assert!(!demo.contains(&only_tests) && names(Needs::ALL).contains(&only_tests), "{only_tests}");
        }
    }

    #[test]
    fn new_lists_may_offer_more_and_a_failed_install_is_not_tried_again() {
        let before = Plan { packages: vec![("kmod", "")], bpf_packages: vec!["rustc-web"], nightly: false, linker: false };
        let failed = Plan { bpf_packages: vec!["rustc-web"], ..Plan::default() };
        assert!(!failed.goes_beyond(&before) && !Plan::default().goes_beyond(&before));
        let more = Plan { bpf_packages: vec!["rustc-web", "llvm-22-dev"], linker: true, ..Plan::default() };
        assert!(more.goes_beyond(&before) && !more.goes_beyond(&more));
    }

    #[test]
    fn packages_are_offered_by_the_lists_or_where_there_are_none_by_the_release() {
        let policy = |candidate: &str| format!("rustc-web:\n  Installed: (none)\n  Candidate: {candidate}\n  Version table:\n");
        let (bookworm, trixie, noble) = ("VERSION_CODENAME=bookworm\n", "ID=debian\nVERSION_CODENAME=trixie\n", "VERSION_CODENAME=noble\n");
        assert!(are_offered(1, &policy("1.96.0"), noble));
        assert!(!are_offered(2, &policy("1.96.0"), bookworm), "the lists know one of two");
        for nothing_known in ["".to_owned(), policy("(none)")] {
            assert!(are_offered(1, &nothing_known, bookworm) && are_offered(1, &nothing_known, trixie));
            assert!(!are_offered(1, &nothing_known, noble));
        }
    }
}
