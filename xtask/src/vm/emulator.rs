//! Which QEMU runs the guests. One older than 8.1 is not good enough under emulation: it may keep running an instruction that
//! another virtual CPU has already overwritten. A kernel that attaches a probe to a running function passes through an int3
//! there, and a guest that meets the stale one dies in "NULL pointer dereference" (seen on Debian 12's 7.2 and 6.1, twice in two
//! tries; not with 10.0). So the newer build from the release's backports is fetched and unpacked beside the kernels.

use super::apt::{self, Archive, PrivateApt};
use crate::{exit, paths, process};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Name of the program.
pub const PROGRAM: &str = "qemu-system-x86_64";
/// The first version whose translated code is locked against other CPUs' writes while it is made.
const GOOD_ENOUGH: (u32, u32) = (8, 1);
/// What a QEMU needs beside the libraries that the installed one already has.
const PACKAGES: [&str; 4] = ["qemu-system-x86", "qemu-system-common", "qemu-system-data", "seabios"];

/// A QEMU that can be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emulator {
    program: PathBuf,
    /// Folders with its firmware, for one that is not installed.
    data: Vec<PathBuf>,
    /// Where its C library and its modules are, for one of another release.
    foreign: Option<Foreign>,
    /// What it says about itself, such as `10.0.2`.
    pub version: String,
}

/// What a program of another Debian release needs, unpacked: it is started through its own loader.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Foreign {
    loader: PathBuf,
    libraries: PathBuf,
    modules: PathBuf,
}

impl Emulator {
    /// The installed one where it is good enough, else the one from backports; where that cannot be had, the installed one with
    /// a warning.
    pub fn find() -> Result<Self> {
        let installed = process::which(PROGRAM)
            .ok_or_else(|| exit::infrastructure(format!("{PROGRAM} is not on this machine (`cargo xtask setup` installs it)")))?;
        let installed = Self::installed(installed)?;
        if installed.is_at_least(GOOD_ENOUGH) {
            return Ok(installed);
        }
        match Self::unpacked() {
            Ok(newer) => Ok(newer),
            Err(error) => {
                let wanted = format!("{}.{}", GOOD_ENOUGH.0, GOOD_ENOUGH.1);
                eprintln!(
                    "xtask: QEMU {} is older than {wanted}, so that attaching probes under load may crash an emulated guest; no newer one: {error:#}",
                    installed.version
                );
                Ok(installed)
            }
        }
    }

    /// One that is installed on this machine.
    pub fn installed(program: PathBuf) -> Result<Self> {
        Self { program, data: Vec::new(), foreign: None, version: String::new() }.asked()
    }

    /// One of another Debian release, unpacked below `root` together with every library that it needs.
    pub fn foreign(root: &Path) -> Result<Self> {
        let libraries = root.join("usr/lib/x86_64-linux-gnu");
        let foreign = Foreign { loader: libraries.join("ld-linux-x86-64.so.2"), modules: libraries.join("qemu"), libraries };
        Self { program: root.join("usr/bin").join(PROGRAM), data: firmware(root), foreign: Some(foreign), version: String::new() }.asked()
    }

    /// Itself, with the version that it says.
    fn asked(mut self) -> Result<Self> {
        let said = process::output(self.command().arg("--version"))?;
        let version = version_in(&said).with_context(|| format!("{} says no version", self.program.display()))?;
        self.version = version.to_owned();
        Ok(self)
    }

    /// Whether its version is this one or newer.
    pub fn is_at_least(&self, wanted: (u32, u32)) -> bool {
        let mut parts = self.version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= wanted
    }

    /// Whether it was built with a device of this name. The list of all devices is not asked for: to make it, QEMU also loads modules of an
    /// installed one, and dies when that is older. It ends with 0 for a device that it does not know too.
    pub fn has_device(&self, name: &str) -> Result<bool> {
        let options = process::output(self.command().args(["-device", &format!("{name},help")]))?;
        Ok(options.contains(&format!("{name} options:")))
    }

    fn command(&self) -> Command {
        let words = self.words();
        let mut command = process::command(words[0]);
        command.args(&words[1..]).envs(self.modules());
        command
    }

    /// The one below `target/vm/`, fetched when it is not there yet.
    fn unpacked() -> Result<Self> {
        let folder = paths::target().join("vm/qemu");
        let root = folder.join("root");
        if !folder.join("done").is_file() {
            fetch(&folder, &root)?;
        }
        Self { program: root.join("usr/bin").join(PROGRAM), data: firmware(&root), foreign: None, version: String::new() }.asked()
    }

    /// The start of a command line.
    pub fn words(&self) -> Vec<&std::ffi::OsStr> {
        let data = self.data.iter().flat_map(|folder| ["-L".as_ref(), folder.as_os_str()]);
        let loader = self.foreign.iter().flat_map(|it| [it.loader.as_os_str(), "--library-path".as_ref(), it.libraries.as_os_str()]);
        loader.chain([self.program.as_os_str()]).chain(data).collect()
    }

    /// The variable that names the folder of its modules, where it is not the usual one.
    pub fn modules(&self) -> Option<(&'static str, &Path)> {
        self.foreign.as_ref().map(|it| ("QEMU_MODULE_DIR", it.modules.as_path()))
    }
}

/// The folders with the firmware of a QEMU that is unpacked below `root`.
fn firmware(root: &Path) -> Vec<PathBuf> {
    ["usr/share/qemu", "usr/share/seabios"].map(|name| root.join(name)).to_vec()
}

/// Unpacks every package in `archives` below `root`, and clears `archives`.
pub fn unpack(archives: &Path, root: &Path) -> Result<()> {
    fs::create_dir_all(root)?;
    for entry in fs::read_dir(archives)? {
        let mut unpack: Command = process::command("dpkg-deb");
        process::output(unpack.arg("-x").arg(entry?.path()).arg(root))?;
    }
    Ok(fs::remove_dir_all(archives)?)
}

fn fetch(folder: &Path, root: &Path) -> Result<()> {
    let suite = format!("{}-backports", apt::debian_codename().context("this machine is no Debian")?);
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    let apt = PrivateApt::open(&paths::target().join("vm/apt").join(&suite), &Archive::of_this_machine()?, &[&suite])?;
    eprintln!("xtask: fetching a newer QEMU from {suite}");
    let archives = folder.join("packages");
    apt.download(&PACKAGES.map(str::to_owned), &archives)?;
    unpack(&archives, root)?;
    fs::write(folder.join("done"), "")?;
    Ok(())
}

/// `10.0.2` in `QEMU emulator version 10.0.2 (Debian …)`.
fn version_in(text: &str) -> Option<&str> {
    text.split("version ").nth(1)?.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_compared() {
        let said = "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7)\nCopyright";
        assert_eq!(version_in(said), Some("7.2.22"));
        let is_good_enough = |version: &str| {
            let emulator = Emulator { program: PathBuf::new(), data: Vec::new(), foreign: None, version: version.to_owned() };
            emulator.is_at_least(GOOD_ENOUGH)
        };
        assert!(!is_good_enough("7.2.22") && !is_good_enough("8.0.9"));
        assert!(is_good_enough("8.1.0") && is_good_enough("10.0.2"));
    }

    #[test]
    fn one_of_another_release_is_started_by_its_own_loader() {
        let foreign = Foreign { loader: "/r/ld.so".into(), libraries: "/r/lib".into(), modules: "/r/lib/qemu".into() };
        let emulator =
            Emulator { program: "/r/qemu".into(), data: vec!["/r/share".into()], foreign: Some(foreign), version: String::new() };
        assert_eq!(emulator.words(), ["/r/ld.so", "--library-path", "/r/lib", "/r/qemu", "-L", "/r/share"]);
        assert_eq!(emulator.modules(), Some(("QEMU_MODULE_DIR", Path::new("/r/lib/qemu"))));
        let installed = Emulator { foreign: None, ..emulator };
        assert_eq!((installed.words().len(), installed.modules()), (3, None));
    }
}
