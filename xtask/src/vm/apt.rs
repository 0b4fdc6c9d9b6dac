//! Packages of other Debian releases, fetched without touching the machine's own package management: a private apt
//! configuration whose archive is the one that the machine already uses.

use crate::{exit, process};
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An archive as one of the machine's apt entries names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    /// Address as apt takes it.
    pub uri: String,
    /// Keyring file that signs it, where the entry names one.
    pub signed_by: Option<String>,
}

impl Archive {
    /// The Debian archive of this machine.
    pub fn of_this_machine() -> Result<Self> {
        let codename = debian_codename().ok_or_else(|| {
            exit::infrastructure(
                "kernels by release number and newer QEMUs come from the Debian archive, and this machine is no Debian: use `--kernel host`, \
                 and install a newer QEMU",
            )
        })?;
        let codename = codename.as_str();
        let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
        if let Ok(entries) = fs::read_dir("/etc/apt/sources.list.d") {
            files.extend(entries.flatten().map(|entry| entry.path()));
        }
        let texts = files.iter().filter_map(|file| {
            let text = fs::read_to_string(file).ok()?;
            let is_deb822 = file.extension().is_some_and(|extension| extension == "sources");
            Some((text, is_deb822))
        });
        let found = texts.into_iter().find_map(
            |(text, is_deb822)| {
                if is_deb822 { from_deb822(&text, codename) } else { from_one_line(&text, codename) }
            },
        );
        found.ok_or_else(|| exit::infrastructure(format!("no apt entry of this machine offers {codename} main")))
    }
}

/// The code name of this machine's Debian release, such as `bookworm`; none on other distributions.
pub fn debian_codename() -> Option<String> {
    let release = fs::read_to_string("/etc/os-release").ok()?;
    let value = |key: &str| release.lines().find_map(|line| line.strip_prefix(key)).map(|value| value.trim_matches('"'));
    (value("ID=") == Some("debian")).then(|| value("VERSION_CODENAME=").map(str::to_owned))?
}

/// The archive of a deb822 file's first enabled stanza that offers `suite` and `main`.
fn from_deb822(text: &str, suite: &str) -> Option<Archive> {
    let text: String = text.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    text.split("\n\n").find_map(|stanza| {
        let value = |key: &str| {
            stanza.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case(key).then(|| value.trim())
            })
        };
        let has = |key: &str, word: &str| value(key).is_some_and(|words| words.split_whitespace().any(|it| it == word));
        let is_disabled = value("Enabled").is_some_and(|enabled| enabled.eq_ignore_ascii_case("no"));
        if is_disabled || !has("Types", "deb") || !has("Suites", suite) || !has("Components", "main") {
            return None;
        }
        let uri = value("URIs")?.split_whitespace().next()?.to_owned();
        // An embedded key continues on the next lines; only a file can be passed on.
        let signed_by = value("Signed-By").filter(|key| key.starts_with('/')).map(str::to_owned);
        Some(Archive { uri, signed_by })
    })
}

/// The archive of a one-line file's first `deb` entry that offers `suite` and `main`.
fn from_one_line(text: &str, suite: &str) -> Option<Archive> {
    text.lines().find_map(|line| {
        let rest = line.trim().strip_prefix("deb ")?.trim_start();
        let (options, rest) = match rest.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?,
            None => ("", rest),
        };
        let mut words = rest.split_whitespace();
        let uri = words.next()?.to_owned();
        let is_right = words.next()? == suite && words.any(|word| word == "main") && !uri.starts_with("cdrom:");
        let signed_by = options.split_whitespace().find_map(|option| option.strip_prefix("signed-by="));
        is_right.then(|| Archive { uri, signed_by: signed_by.map(str::to_owned) })
    })
}

/// A private apt configuration for one suite, or for several of one archive.
#[derive(Debug)]
pub struct PrivateApt {
    config: PathBuf,
}

impl PrivateApt {
    /// Writes the configuration for `suites` into `folder` and fetches the package lists.
    pub fn open(folder: &Path, archive: &Archive, suites: &[&str]) -> Result<Self> {
        for name in ["lists/partial", "cache/archives/partial", "empty"] {
            fs::create_dir_all(folder.join(name))?;
        }
        let signed = archive.signed_by.as_ref().map(|key| format!("[signed-by={key}] ")).unwrap_or_default();
        let sources: String = suites.iter().map(|suite| format!("deb {signed}{} {suite} main\n", archive.uri)).collect();
        fs::write(folder.join("sources.list"), sources)?;
        fs::write(folder.join("status"), "")?;
        let at = |name: &str| folder.join(name).display().to_string();
        let text = format!(
            "Dir::Etc::sourcelist \"{}\";\nDir::Etc::sourceparts \"{empty}\";\nDir::Etc::preferences \"{empty}/none\";\n\
             Dir::Etc::preferencesparts \"{empty}\";\nDir::State::lists \"{}\";\nDir::State::status \"{}\";\n\
             Dir::Cache \"{}\";\nAPT::Architecture \"amd64\";\nAPT::Sandbox::User \"root\";\n\
             Acquire::Check-Valid-Until \"false\";\nAcquire::Languages \"none\";\nAcquire::Retries \"3\";\n\
             Acquire::http::Timeout \"60\";\nAcquire::https::Timeout \"60\";\n\
             APT::Update::Error-Mode \"any\";\n#clear APT::Update::Post-Invoke;\n#clear APT::Update::Post-Invoke-Success;\n",
            at("sources.list"),
            at("lists"),
            at("status"),
            at("cache"),
            empty = at("empty"),
        );
        let config = folder.join("apt.conf");
        fs::write(&config, text)?;
        let apt = Self { config };
        process::output(apt.get().args(["update", "-qq"]))
            .map_err(|error| exit::infrastructure(format!("fetching the package lists of {}: {error:#}", suites.join(" and "))))?;
        Ok(apt)
    }

    fn get(&self) -> Command {
        let mut command = process::command("apt-get");
        command.arg("-c").arg(&self.config).env("LC_ALL", "C");
        command
    }

    /// The kernel packages that `meta` stands for, as `name=version`, itself included.
    pub fn kernel_packages(&self, meta: &str) -> Result<Vec<String>> {
        let mut packages = Vec::new();
        let mut seen = BTreeSet::new();
        let mut open = vec![meta.to_owned()];
        while let Some(name) = open.pop() {
            if !seen.insert(name.clone()) {
                continue;
            }
            let mut show = process::command("apt-cache");
            show.arg("-c").arg(&self.config).args(["show", "--no-all-versions", &name]).env("LC_ALL", "C");
            let text = process::output(&mut show).map_err(|error| exit::infrastructure(format!("the archive has no {name}: {error:#}")))?;
            let version = text.lines().find_map(|line| line.strip_prefix("Version: ")).context("a package has a version")?;
            packages.push(format!("{name}={version}"));
            open.extend(kernel_dependencies(&text));
        }
        packages.sort();
        Ok(packages)
    }

    /// What an installation of `package` from `suite` would bring to a machine that has nothing, as `name=version`; dependencies come
    /// from the other suites where `suite` has none.
    pub fn with_dependencies(&self, package: &str, suite: &str) -> Result<Vec<String>> {
        let mut simulate = self.get();
        simulate.args(["--simulate", "--no-install-recommends", "--target-release", suite, "install", package]);
        let text =
            process::output(&mut simulate).map_err(|error| exit::infrastructure(format!("resolving {package} of {suite}: {error:#}")))?;
        Ok(text.lines().filter_map(would_install).collect())
    }

    /// Downloads packages (`name=version`) into `folder`.
    pub fn download(&self, packages: &[String], folder: &Path) -> Result<()> {
        fs::create_dir_all(folder)?;
        let mut download = self.get();
        download.args(["download", "-qq"]).args(packages).current_dir(folder);
        process::output(&mut download)
            .map(drop)
            .map_err(|error| exit::infrastructure(format!("downloading {}: {error:#}", packages.join(" "))))
    }
}

/// `name=version` in a line of `apt-get --simulate install`: `Inst name (version suite [architecture])`.
fn would_install(line: &str) -> Option<String> {
    let (name, rest) = line.strip_prefix("Inst ")?.split_once(' ')?;
    let version = rest.split_once('(')?.1.split_whitespace().next()?;
    Some(format!("{name}={version}"))
}

/// The names in the Depends line of a package record that hold parts of a kernel.
fn kernel_dependencies(record: &str) -> Vec<String> {
    let depends = record.lines().find_map(|line| line.strip_prefix("Depends: ")).unwrap_or_default();
    let names = depends.split(',').filter_map(|alternatives| alternatives.split_whitespace().next());
    let parts = ["linux-image-", "linux-binary-", "linux-modules-", "linux-base-"];
    names.filter(|name| parts.iter().any(|part| name.starts_with(part))).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deb822_entry_is_found_past_others() {
        let text = "Types: deb\nURIs: mirror://one/\nSuites: other\nComponents: main\n\n# comment\nTypes: deb deb-src\n\
                    # old address\nURIs: mirror://two/debian mirror://three\nSuites: bookworm bookworm-updates\n\
                    Components: main contrib\nSigned-By: /keys/a.gpg\n";
        let archive = from_deb822(text, "bookworm").unwrap();
        assert_eq!(archive, Archive { uri: "mirror://two/debian".into(), signed_by: Some("/keys/a.gpg".into()) });
        assert_eq!(from_deb822(text, "trixie"), None);
        assert_eq!(from_deb822(&text.replace("Types: deb deb-src", "Enabled: no\nTypes: deb"), "bookworm"), None);
    }

    #[test]
    fn a_one_line_entry_with_and_without_options() {
        let plain = "# deb x://no bookworm main\ndeb-src x://src bookworm main\ndeb x://yes/debian bookworm main non-free\n";
        assert_eq!(from_one_line(plain, "bookworm"), Some(Archive { uri: "x://yes/debian".into(), signed_by: None }));
        let options = "deb [arch=amd64 signed-by=/k.gpg] x://a bookworm main";
        assert_eq!(from_one_line(options, "bookworm").unwrap().signed_by.as_deref(), Some("/k.gpg"));
        assert_eq!(from_one_line("deb cdrom:[x]/ bookworm main", "bookworm"), None);
        assert_eq!(from_one_line("deb x://a bookworm contrib", "bookworm"), None);
    }

    #[test]
    fn packages_are_read_from_a_simulated_installation() {
        let text = "Reading package lists...\nInst libc6 (2.41-12 suite:13 [amd64]) []\nInst old [1.0] (1:11.1+x~bpo1 b:13 [all])\n\
                    Conf libc6 (2.41-12 suite:13 [amd64])\n";
        let packages: Vec<String> = text.lines().filter_map(would_install).collect();
        assert_eq!(packages, ["libc6=2.41-12", "old=1:11.1+x~bpo1"]);
    }

    #[test]
    fn only_parts_of_the_kernel_are_followed() {
        let record = "Package: p\nDepends: kmod, linux-base (>= 4.3~), linux-image-7.3-amd64 (= 1), linux-modules-7.3 | x\n";
        assert_eq!(kernel_dependencies(record), ["linux-image-7.3-amd64", "linux-modules-7.3"]);
    }
}
