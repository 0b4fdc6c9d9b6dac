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

const PROGRAM: &str = "qemu-system-x86_64";
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
    /// What it says about itself, such as `10.0.2`.
    pub version: String,
}

impl Emulator {
    /// The installed one where it is good enough, else the one from backports; where that cannot be had, the installed one with
    /// a warning.
    pub fn find() -> Result<Self> {
        let installed = process::which(PROGRAM)
            .ok_or_else(|| exit::infrastructure(format!("{PROGRAM} is not on this machine (`cargo xtask setup` installs it)")))?;
        let installed = Self::at(installed, Vec::new())?;
        if installed.is_good_enough() {
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

    fn at(program: PathBuf, data: Vec<PathBuf>) -> Result<Self> {
        let said = process::output(process::command(&program).arg("--version"))?;
        let version = version_in(&said).with_context(|| format!("{} says no version", program.display()))?;
        Ok(Self { program, data, version: version.to_owned() })
    }

    fn is_good_enough(&self) -> bool {
        let mut parts = self.version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= GOOD_ENOUGH
    }

    /// The one below `target/vm/`, fetched when it is not there yet.
    fn unpacked() -> Result<Self> {
        let folder = paths::target().join("vm/qemu");
        let root = folder.join("root");
        if !folder.join("done").is_file() {
            fetch(&folder, &root)?;
        }
        let data = ["usr/share/qemu", "usr/share/seabios"].map(|name| root.join(name)).to_vec();
        Self::at(root.join("usr/bin").join(PROGRAM), data)
    }

    /// The start of a command line.
    pub fn words(&self) -> Vec<&std::ffi::OsStr> {
        let data = self.data.iter().flat_map(|folder| ["-L".as_ref(), folder.as_os_str()]);
        std::iter::once(self.program.as_os_str()).chain(data).collect()
    }
}

fn fetch(folder: &Path, root: &Path) -> Result<()> {
    let suite = format!("{}-backports", apt::debian_codename().context("this machine is no Debian")?);
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    let apt = PrivateApt::open(&paths::target().join("vm/apt").join(&suite), &Archive::of_this_machine()?, &suite)?;
    eprintln!("xtask: fetching a newer QEMU from {suite}");
    let archives = folder.join("packages");
    apt.download(&PACKAGES.map(str::to_owned), &archives)?;
    fs::create_dir_all(root)?;
    for entry in fs::read_dir(&archives)? {
        let mut unpack: Command = process::command("dpkg-deb");
        process::output(unpack.arg("-x").arg(entry?.path()).arg(root))?;
    }
    fs::remove_dir_all(&archives)?;
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
        let with = |version: &str| Emulator { program: PathBuf::new(), data: Vec::new(), version: version.to_owned() };
        assert!(!with("7.2.22").is_good_enough() && !with("8.0.9").is_good_enough());
        assert!(with("8.1.0").is_good_enough() && with("10.0.2").is_good_enough());
    }
}
