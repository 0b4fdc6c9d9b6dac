//! The files of the tree and the packages in it: what the checks look at. Tests plant a tree of their own in a folder.

use crate::process;
use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The files that git lists, and the packages of the workspace.
#[derive(Debug)]
pub struct Tree {
    pub root: PathBuf,
    /// By name relative to the root, with `/` between folders.
    pub files: BTreeMap<String, File>,
    pub packages: Vec<Package>,
}

/// A file as it is in the working tree.
#[derive(Debug)]
pub struct File {
    /// Size in bytes.
    pub size: u64,
    /// The content, unless it is not UTF-8.
    pub text: Option<String>,
}

/// A package of the workspace.
#[derive(Debug)]
pub struct Package {
    pub name: String,
    /// Its folder, relative to the root.
    pub folder: String,
    pub targets: Vec<Target>,
    /// Packages of the workspace that it depends on, by the name that its code gives them.
    pub dependencies: BTreeMap<String, String>,
}

/// What cargo builds from a package.
#[derive(Debug)]
pub struct Target {
    pub name: String,
    pub kind: Kind,
    /// The root file, relative to the root of the tree.
    pub file: String,
}

/// What a target is, as far as the checks tell it apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Library,
    Binary,
    /// Tests, examples, benches and build scripts: no check asks what they use.
    Aside,
}

impl Tree {
    /// The files that git lists below a folder and the packages that cargo finds there.
    pub fn read(root: &Path) -> Result<Self> {
        let listed = process::output(
            process::command("git").args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root),
        )?;
        let mut files = BTreeMap::new();
        for name in listed.split('\0').filter(|name| !name.is_empty()) {
            // A file may be listed and deleted.
            let Ok(bytes) = fs::read(root.join(name)) else { continue };
            files.insert(name.to_owned(), File { size: bytes.len() as u64, text: String::from_utf8(bytes).ok() });
        }
        Ok(Self { root: root.to_path_buf(), files, packages: packages(root)? })
    }
}

/// What `cargo metadata` prints, as far as it is used.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<MetadataPackage>,
}

#[derive(Deserialize)]
struct MetadataPackage {
    name: String,
    manifest_path: PathBuf,
    targets: Vec<MetadataTarget>,
    dependencies: Vec<MetadataDependency>,
}

#[derive(Deserialize)]
struct MetadataTarget {
    name: String,
    kind: Vec<String>,
    src_path: PathBuf,
}

#[derive(Deserialize)]
struct MetadataDependency {
    name: String,
    rename: Option<String>,
    path: Option<PathBuf>,
}

/// The packages of the workspace; none where no `Cargo.toml` is.
fn packages(root: &Path) -> Result<Vec<Package>> {
    if !root.join("Cargo.toml").is_file() {
        return Ok(Vec::new());
    }
    let mut cargo = process::cargo();
    let text = process::output(cargo.args(["metadata", "--format-version", "1", "--no-deps", "--offline"]).current_dir(root))?;
    let metadata: Metadata = serde_json::from_str(&text).context("reading what cargo metadata printed")?;
    let relative = |path: &Path| path.strip_prefix(root).unwrap_or(path).display().to_string();
    let library = |package: &MetadataPackage| {
        let target = package.targets.iter().find(|target| kind(&target.kind) == Kind::Library);
        target.map(|target| target.name.replace('-', "_"))
    };
    let read = |package: &MetadataPackage| {
        let inside = package.dependencies.iter().filter_map(|dependency| {
            dependency.path.as_ref()?;
            let used = metadata.packages.iter().find(|other| other.name == dependency.name)?;
            let name = dependency.rename.as_ref().map(|name| name.replace('-', "_")).or_else(|| library(used))?;
            Some((name, used.name.clone()))
        });
        let own = library(package).map(|name| (name, package.name.clone()));
        let targets = package.targets.iter().map(|target| Target {
            name: target.name.clone(),
            kind: kind(&target.kind),
            file: relative(&target.src_path),
        });
        Package {
            name: package.name.clone(),
            folder: package.manifest_path.parent().map(relative).unwrap_or_default(),
            dependencies: inside.chain(own).collect(),
            targets: targets.collect(),
        }
    };
    Ok(metadata.packages.iter().map(read).collect())
}

fn kind(kinds: &[String]) -> Kind {
    match kinds.first().map(String::as_str) {
        Some("lib" | "rlib" | "proc-macro" | "dylib" | "cdylib" | "staticlib") => Kind::Library,
        Some("bin") => Kind::Binary,
        _ => Kind::Aside,
    }
}

/// A tree that a test plants, and the folder that holds it as long as this lives.
#[cfg(test)]
pub struct Planted {
    pub tree: Tree,
    _folder: tempfile::TempDir,
}

/// Writes the files into a new repository and reads it as `tidy` reads the project's.
#[cfg(test)]
pub fn planted(files: &[(&str, &[u8])]) -> Planted {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for (name, content) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    process::output(process::command("git").args(["init", "-q"]).current_dir(&root)).unwrap();
    Planted { tree: Tree::read(&root).unwrap(), _folder: folder }
}

/// The manifest of a planted package; `dependencies` are lines of that section.
#[cfg(test)]
pub fn manifest(name: &str, dependencies: &str) -> String {
    format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\n{dependencies}\n")
}
