//! Which Rust toolchain can build for the BPF target on this machine: a rustup nightly with rust-src, else Debian's
//! `rustc-web` with `rust-web-src`. Both need `bpf-linker`, built against the LLVM that Debian's compiler uses.

use crate::{paths, process};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The linker's version; a newer one may change the object.
pub const LINKER_VERSION: &str = "0.13.0";
/// LLVM that the linker is built with. It reads bitcode of this version and older ones.
pub const LLVM_MAJOR: u32 = 22;
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CARGO: &str = "/usr/bin/cargo";

/// A compiler that can build `core` for the BPF target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiler {
    kind: Kind,
    /// First line of `rustc -vV`, such as `rustc 1.96.0 (ac68faa20 2026-05-25)`.
    pub version: String,
    /// LLVM inside it.
    pub llvm: String,
    /// Its sysroot; appears in debug information unless it is mapped away.
    pub sysroot: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nightly,
    Debian,
}

impl Compiler {
    /// The compilers of this machine that can do it, in order of preference.
    pub fn find() -> Option<Self> {
        [Kind::Nightly, Kind::Debian].into_iter().find_map(|kind| Self::probe(kind).ok())
    }

    /// Asks one compiler; the error says why it cannot be used.
    fn probe(kind: Kind) -> Result<Self, String> {
        let rustc = || match kind {
            Kind::Nightly => {
                let mut rustup = process::command("rustup");
                rustup.args(["run", "nightly", "rustc"]);
                rustup
            }
            Kind::Debian => process::command(DEBIAN_RUSTC),
        };
        let ask = |args: &[&str]| process::output(rustc().args(args)).map_err(|error| error.to_string());
        let verbose = ask(&["-vV"])?;
        let sysroot = PathBuf::from(ask(&["--print", "sysroot"])?.trim());
        if !sysroot.join("lib/rustlib/src/rust/library/core").is_dir() {
            return Err(format!("{} has no library sources", sysroot.display()));
        }
        let llvm = field(&verbose, "LLVM version: ").unwrap_or_default().to_owned();
        let major = llvm.split('.').next().and_then(|major| major.parse::<u32>().ok());
        if major.is_none_or(|major| major > LLVM_MAJOR) {
            return Err(format!("LLVM {llvm} is newer than the linker's {LLVM_MAJOR}"));
        }
        let version = verbose.lines().next().unwrap_or_default().to_owned();
        Ok(Self { kind, version, llvm, sysroot })
    }

    /// Why each compiler that was not chosen cannot be used, for the message when none can.
    pub fn reasons() -> Vec<String> {
        let reason = |kind, name: &str| Self::probe(kind).err().map(|why| format!("{name}: {why}"));
        let named = [(Kind::Nightly, "rustup nightly"), (Kind::Debian, "Debian's rustc-web")];
        named.into_iter().filter_map(|(kind, name)| reason(kind, name)).collect()
    }

    /// A cargo that builds with this compiler.
    pub fn cargo(&self) -> Command {
        let mut cargo = match self.kind {
            Kind::Nightly => {
                let mut rustup = process::command("rustup");
                rustup.args(["run", "nightly", "cargo"]);
                rustup
            }
            Kind::Debian => {
                let mut cargo = process::command(DEBIAN_CARGO);
                cargo.env("RUSTC", DEBIAN_RUSTC).env("RUSTC_BOOTSTRAP", "1");
                cargo
            }
        };
        cargo.current_dir(paths::root());
        cargo
    }

    /// What a committed object is labelled with: the same label must give the same bytes.
    pub fn label(&self) -> String {
        format!("{}, LLVM {}, bpf-linker {LINKER_VERSION}", self.version, self.llvm)
    }
}

/// The folder of a `bpf-linker` of the right version: this workspace's own, else one on `PATH`.
pub fn linker_folder() -> Option<PathBuf> {
    let own = paths::tools().join("bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::iter::once(own).chain(std::env::split_paths(&path)).find(|folder| is_linker(&folder.join("bpf-linker")))
}

fn is_linker(program: &Path) -> bool {
    let version = |program: &Path| process::output(process::command(program).arg("--version")).ok();
    program.is_file() && version(program).is_some_and(|said| said.trim().ends_with(LINKER_VERSION))
}

/// Where Debian keeps the LLVM that the linker is built with.
pub fn llvm_prefix() -> PathBuf {
    PathBuf::from(format!("/usr/lib/llvm-{LLVM_MAJOR}"))
}

/// The rest of the first line of `text` that starts with `name`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_version_text() {
        let text = "rustc 1.96.0 (ac68faa20 2026-05-25)\nhost: x86_64-unknown-linux-gnu\nLLVM version: 22.1.8\n";
        assert_eq!(field(text, "LLVM version: "), Some("22.1.8"));
        assert_eq!(field(text, "binary: "), None);
    }
}
