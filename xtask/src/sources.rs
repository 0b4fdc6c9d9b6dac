//! The fingerprint of what the BPF object is made of: the package's files, the locked versions of what it depends on, and
//! the flags. The committed object carries it, so that a change without a rebuild is noticed.

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// SHA-256 (hex) over the probes' package under `root`, its part of the lock file and `flags`.
pub fn fingerprint(root: &Path, flags: &[&str]) -> Result<String> {
    let package = root.join("ebpf-probes");
    let mut files = files_under(&package.join("src"))?;
    files.push(package.join("Cargo.toml"));
    files.sort();
    let mut hash = Sha256::new();
    for file in files {
        let content = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
        let name = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().into_owned();
        add(&mut hash, name.as_bytes());
        add(&mut hash, &content);
    }
    let lock = root.join("Cargo.lock");
    let lock = fs::read_to_string(&lock).with_context(|| format!("reading {}", lock.display()))?;
    for package in locked_closure(&lock, "ebpf-probes") {
        add(&mut hash, package.as_bytes());
    }
    for flag in flags {
        add(&mut hash, flag.as_bytes());
    }
    Ok(hex(&hash.finalize()))
}

/// SHA-256 (hex) of some bytes.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Adds one part with its length, so that no two lists of parts hash alike.
fn add(hash: &mut Sha256, part: &[u8]) {
    hash.update((part.len() as u64).to_le_bytes());
    hash.update(part);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Every file below `folder`.
pub fn files_under(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(files_under(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}

/// `name version` of every package that `start` depends on according to a lock file, without `start` itself.
fn locked_closure(lock: &str, start: &str) -> BTreeSet<String> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut dependencies: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for block in lock.split("[[package]]").skip(1) {
        let value = |key: &str| block.lines().find_map(|line| line.strip_prefix(key)).map(|value| value.trim_matches('"'));
        let (Some(name), Some(version)) = (value("name = "), value("version = ")) else {
            continue;
        };
        versions.entry(name).or_default().insert(version);
        let listed = block.lines().skip_while(|line| *line != "dependencies = [").skip(1);
        let listed = listed.take_while(|line| *line != "]").filter_map(|line| line.trim_matches([' ', ',', '"']).split(' ').next());
        dependencies.entry(name).or_default().extend(listed);
    }
    let mut seen = BTreeSet::new();
    let mut open = vec![start];
    while let Some(name) = open.pop() {
        if seen.insert(name) {
            open.extend(dependencies.get(name).into_iter().flatten());
        }
    }
    seen.remove(start);
    let named = |name: &&str| versions.get(*name).cloned().unwrap_or_default();
    seen.iter().flat_map(|name| named(name).into_iter().map(move |version| format!("{name} {version}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = "version = 4\n\n[[package]]\nname = \"ebpf-probes\"\nversion = \"0.1.0\"\ndependencies = [\n \"a\",\n \"b 2.0.0\",\n]\n\n\
        [[package]]\nname = \"a\"\nversion = \"1.2.3\"\ndependencies = [\n \"c\",\n]\n\n[[package]]\nname = \"b\"\nversion = \"2.0.0\"\n\n\
        [[package]]\nname = \"c\"\nversion = \"3.0.0\"\n\n[[package]]\nname = \"other\"\nversion = \"9.9.9\"\n";

    #[test]
    fn the_closure_follows_dependencies_and_leaves_out_the_rest() {
        let closure: Vec<String> = locked_closure(LOCK, "ebpf-probes").into_iter().collect();
        assert_eq!(closure, ["a 1.2.3", "b 2.0.0", "c 3.0.0"]);
    }

    #[test]
    fn the_fingerprint_changes_with_source_lock_and_flags() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("ebpf-probes/src");
        fs::create_dir_all(&source).unwrap();
        fs::write(source.join("main.rs"), "one").unwrap();
        fs::write(folder.path().join("ebpf-probes/Cargo.toml"), "").unwrap();
        fs::write(folder.path().join("Cargo.lock"), LOCK).unwrap();
        let take = |flags: &[&str]| fingerprint(folder.path(), flags).unwrap();
        let first = take(&[]);
        assert_eq!(first, take(&[]));
        assert_ne!(first, take(&["-O"]));
        fs::write(folder.path().join("Cargo.lock"), LOCK.replace("9.9.9", "9.9.8")).unwrap();
        assert_eq!(first, take(&[]), "a package that the probes do not use");
        fs::write(folder.path().join("Cargo.lock"), LOCK.replace("3.0.0", "3.0.1")).unwrap();
        assert_ne!(first, take(&[]));
        fs::write(folder.path().join("Cargo.lock"), LOCK).unwrap();
        fs::write(source.join("main.rs"), "two").unwrap();
        assert_ne!(first, take(&[]));
    }
}
