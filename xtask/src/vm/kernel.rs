//! Kernels for the guests: by release name from the Debian archive (downloaded and unpacked once, never installed), or the
//! one that this machine runs.

use super::apt::{Archive, PrivateApt};
use crate::{exit, paths, process};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// A kernel that can be asked for.
#[derive(Debug)]
pub struct Release {
    /// The name that it is asked for by.
    pub name: &'static str,
    /// The Debian suite that has it.
    suite: &'static str,
    /// The package that depends on the newest build.
    meta_package: &'static str,
}

const fn release(name: &'static str, suite: &'static str, meta_package: &'static str) -> Release {
    Release { name, suite, meta_package }
}

/// The kernels that can be asked for, oldest first; `7` is the newest that Debian builds for a stable release.
pub const RELEASES: [Release; 5] = [
    release("5.10", "bullseye", META_PACKAGE),
    release("6.1", "bookworm", META_PACKAGE),
    release("6.12", "bookworm-backports", META_PACKAGE),
    release("6.12-rt", "bookworm-backports", "linux-image-rt-amd64"),
    release("7", "trixie-backports", META_PACKAGE),
];
/// The name of the running kernel.
pub const HOST: &str = "host";
const META_PACKAGE: &str = "linux-image-amd64";

/// A kernel with its modules, ready to boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// The name that it was asked for by.
    pub name: String,
    /// What `uname -r` says inside.
    pub release: String,
    /// The packages it came from (`name=version`); none for the running kernel.
    pub packages: Vec<String>,
    /// The image.
    pub image: PathBuf,
    /// The folder that holds `lib/modules/RELEASE`.
    pub module_root: PathBuf,
}

impl Kernel {
    /// The folder of this kernel's modules.
    pub fn modules(&self) -> PathBuf {
        self.module_root.join("lib/modules").join(&self.release)
    }

    /// The folder where things made for this kernel are kept.
    pub fn cache(&self) -> PathBuf {
        folder_of(&self.name)
    }
}

fn folder_of(name: &str) -> PathBuf {
    paths::target().join("vm/kernels").join(name)
}

/// The kernels that a list of names stands for, each once and in the order given; `all` is every release.
///
/// # Errors
/// A name that nothing is known by (a usage error), before anything is fetched or built.
pub fn named(names: &[String]) -> Result<Vec<String>> {
    let mut kernels: Vec<String> = Vec::new();
    for name in names.iter().map(|name| name.trim()) {
        let known: Vec<&str> = RELEASES.iter().map(|release| release.name).collect();
        let chosen = match name {
            "all" => known,
            HOST => vec![HOST],
            name if known.contains(&name) => vec![name],
            _ => return Err(unknown(name)),
        };
        let new: Vec<String> = chosen.into_iter().filter(|name| !kernels.iter().any(|it| it == name)).map(str::to_owned).collect();
        kernels.extend(new);
    }
    Ok(kernels)
}

fn unknown(name: &str) -> anyhow::Error {
    let known: Vec<&str> = RELEASES.iter().map(|release| release.name).collect();
    exit::coded(2, format!("no kernel `{name}`: known are {} and {HOST}", known.join(", ")))
}

/// The kernel of that name, fetched unless it is there already; `refresh` fetches it again.
pub fn ensure(name: &str, refresh: bool) -> Result<Kernel> {
    if name == HOST {
        return running();
    }
    let Some(release) = RELEASES.iter().find(|release| release.name == name) else {
        return Err(unknown(name));
    };
    let record = folder_of(name).join("kernel.json");
    if !refresh && let Ok(text) = fs::read(&record) {
        let kernel: Kernel = serde_json::from_slice(&text).with_context(|| format!("reading {}", record.display()))?;
        if kernel.image.is_file() && kernel.modules().is_dir() {
            return Ok(kernel);
        }
    }
    let kernel = fetch(release)?;
    fs::write(&record, serde_json::to_vec_pretty(&kernel)?)?;
    Ok(kernel)
}

fn fetch(&Release { name, suite, meta_package }: &Release) -> Result<Kernel> {
    let folder = folder_of(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("clearing {}", folder.display()))?;
    }
    let apt = PrivateApt::open(&paths::target().join("vm/apt").join(suite), &Archive::of_this_machine()?, &[suite])?;
    let packages = apt.kernel_packages(meta_package)?;
    eprintln!("xtask: fetching kernel {name}: {}", packages.join(" "));
    let archives = folder.join("packages");
    apt.download(&packages, &archives)?;
    let root = folder.join("root");
    fs::create_dir_all(&root)?;
    for entry in fs::read_dir(&archives)? {
        process::output(process::command("dpkg-deb").arg("-x").arg(entry?.path()).arg(&root))?;
    }
    fs::remove_dir_all(&archives)?;
    // Newer packages put the modules below usr/; depmod looks below lib/.
    if !root.join("lib").exists() {
        std::os::unix::fs::symlink("usr/lib", root.join("lib"))?;
    }
    let release = only_release(&root.join("lib/modules"))?;
    let image = image_of(&root, &release).with_context(|| format!("kernel {name}"))?;
    let depmod = process::which("depmod").context("depmod (package kmod) is missing")?;
    process::output(process::command(depmod).arg("-b").arg(&root).arg(&release))?;
    Ok(Kernel { name: name.to_owned(), release, packages, image, module_root: root })
}

fn running() -> Result<Kernel> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned();
    let image = image_of(Path::new("/"), &release)
        .map_err(|error| exit::infrastructure(format!("the running kernel cannot be used: {error:#}")))?;
    let kernel = Kernel { name: HOST.to_owned(), release, packages: Vec::new(), image, module_root: PathBuf::from("/") };
    if !kernel.modules().join("modules.dep").is_file() {
        return Err(exit::infrastructure(format!("the running kernel has no modules in {}", kernel.modules().display())));
    }
    Ok(kernel)
}

/// The one folder in `modules` that holds a kernel's modules.
fn only_release(modules: &Path) -> Result<String> {
    let entries = fs::read_dir(modules).with_context(|| format!("listing {}", modules.display()))?;
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.path().join("kernel").is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    match (names.pop(), names.is_empty()) {
        (Some(name), true) => Ok(name),
        (None, _) => bail!("no modules in {}", modules.display()),
        (Some(_), false) => bail!("modules of more than one kernel in {}", modules.display()),
    }
}

fn image_of(root: &Path, release: &str) -> Result<PathBuf> {
    let candidates = [
        root.join("boot").join(format!("vmlinuz-{release}")),
        root.join("lib/modules").join(release).join("vmlinuz"),
        root.join("usr/lib/modules").join(release).join("vmlinuz"),
    ];
    let found = candidates.iter().find(|candidate| fs::File::open(candidate).is_ok());
    found.cloned().with_context(|| format!("no readable image of {release} (looked for {})", candidates[0].display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_release_is_wanted() {
        let folder = tempfile::tempdir().unwrap();
        assert!(only_release(folder.path()).is_err());
        fs::create_dir_all(folder.path().join("6.1.0-1/kernel")).unwrap();
        fs::create_dir_all(folder.path().join("leftover")).unwrap();
        assert_eq!(only_release(folder.path()).unwrap(), "6.1.0-1");
        fs::create_dir_all(folder.path().join("6.1.0-2/kernel")).unwrap();
        assert!(only_release(folder.path()).is_err());
    }

    #[test]
    fn all_kernels_are_every_release_each_once() {
        let named = |list: &[&str]| named(&list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(named(&["all"]).unwrap(), ["5.10", "6.1", "6.12", "6.12-rt", "7"]);
        assert_eq!(named(&["7", "6.1", "7"]).unwrap(), ["7", "6.1"]);
        assert_eq!(named(&["6.1", "all"]).unwrap().len(), RELEASES.len());
        for wrong in ["6.2", "", "6.12-RT"] {
            let error = named(&["6.1", wrong]).unwrap_err();
            assert_eq!(exit::code_of(&error), 2, "{wrong}");
            assert!(error.to_string().contains("6.12-rt"), "{error}");
        }
    }

    #[test]
    fn an_unknown_kernel_is_a_usage_error() {
        let error = ensure("2.4", false).unwrap_err();
        assert_eq!(exit::code_of(&error), 2);
        assert!(error.to_string().contains("6.12"));
    }
}
