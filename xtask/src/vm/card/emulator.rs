//! A QEMU that can hold the card: 11.1 or newer, because a PCI function played by another process (`vfio-user-pci`) is new there.
//! Debian 13 has one in its backports. It is unpacked below `target/vm/`, together with every library that it needs, and started
//! through its own loader: an older Debian's C library will not do.

use crate::exit;
use crate::paths;
use crate::process;
use crate::vm::apt::{Archive, PrivateApt};
use crate::vm::emulator::{self, Emulator};
use anyhow::{Context, Result, bail};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// The device that holds a function played by another process.
const DEVICE: &str = "vfio-user-pci";
const GOOD_ENOUGH: (u32, u32) = (11, 1);
const PACKAGE: &str = "qemu-system-x86";
/// Where the libraries come from, and where QEMU does.
const SUITES: [&str; 2] = ["trixie", "trixie-backports"];
/// Its version and where it came from; written last.
const RECORD: &str = "qemu.json";

#[derive(Debug, Serialize)]
struct Record<'a> {
    version: &'a str,
    packages: &'a [String],
}

/// The installed one where it is new enough, else the unpacked one, which is fetched when it is not there yet.
///
/// # Errors
/// With the reason, where neither can be had (exit 69).
pub fn find() -> Result<Emulator> {
    if let Some(installed) = process::which(emulator::PROGRAM) {
        let installed = Emulator::installed(installed)?;
        if installed.is_at_least(GOOD_ENOUGH) && installed.has_device(DEVICE)? {
            return Ok(installed);
        }
    }
    unpacked().map_err(|error| {
        let (major, minor) = GOOD_ENOUGH;
        exit::infrastructure(format!("the emulated card needs QEMU {major}.{minor} or newer with {DEVICE}, and there is none: {error:#}"))
    })
}

fn folder() -> PathBuf {
    paths::target().join("vm/qemu-card")
}

fn unpacked() -> Result<Emulator> {
    let (folder, root) = (folder(), folder().join("root"));
    if folder.join(RECORD).is_file() {
        return Emulator::foreign(&root);
    }
    let packages = fetch(&folder, &root)?;
    let emulator = Emulator::foreign(&root)?;
    if !emulator.is_at_least(GOOD_ENOUGH) || !emulator.has_device(DEVICE)? {
        bail!("the newest of {} is QEMU {}, or was built without it", SUITES[1], emulator.version);
    }
    let record = Record { version: &emulator.version, packages: &packages };
    fs::write(folder.join(RECORD), serde_json::to_vec_pretty(&record)?)?;
    Ok(emulator)
}

/// Downloads and unpacks; returns the packages.
fn fetch(folder: &Path, root: &Path) -> Result<Vec<String>> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("clearing {}", folder.display()))?;
    }
    let apt = PrivateApt::open(&paths::target().join("vm/apt/qemu-card"), &Archive::of_this_machine()?, &SUITES)?;
    let mut packages = apt.with_dependencies(PACKAGE, SUITES[1])?;
    packages.retain(|package| is_needed(package));
    let qemu = packages.iter().find(|it| it.starts_with(&format!("{PACKAGE}="))).context("the archive offers no QEMU")?;
    eprintln!("xtask: fetching {qemu} and {} packages that it needs, for the emulated card", packages.len() - 1);
    let archives = folder.join("packages");
    apt.download(&packages, &archives)?;
    emulator::unpack(&archives, root)?;
    Ok(packages)
}

/// QEMU, its firmware and libraries; what only an installation would run (debconf, passwd, …) is left out.
fn is_needed(package: &str) -> bool {
    let is_library = (package.starts_with("lib") || package.starts_with("zlib1g=")) && !package.contains("-bin=");
    is_library || package.starts_with("qemu-system-") || package.starts_with("seabios=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_firmware_are_needed_and_what_installs_is_not() {
        for needed in ["libc6=2.41", "libglib2.0-0t64=1", "zlib1g=1", "qemu-system-common=1:11.1", "qemu-system-x86=1:11.1", "seabios=1"] {
            assert!(is_needed(needed), "{needed}");
        }
        for other in ["debconf=1", "libpam-modules-bin=1", "gcc-14-base=14", "passwd=1", "ipxe-qemu=1"] {
            assert!(!is_needed(other), "{other}");
        }
    }
}
