//! What a BPF object is made of, as it is recorded beside it: the files that the compiler read, the locked packages whose code
//! is in it, and the flags. So a change that needs a new object is noticed without a compiler for the BPF target, and a change
//! of what only the host compiles asks for nothing.

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Not a source that the compiler names, but it decides features and dependencies.
const MANIFEST: &str = "ebpf-probes/Cargo.toml";

/// What a build read. A new source file needs an edit of one that is listed, and a new package one of the manifest or another
/// version of one that is listed: so nothing can come in that the lists do not show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sources {
    /// SHA-256 of each file of the workspace, by its path from the workspace's root.
    files: BTreeMap<String, String>,
    /// `name version` of each locked package that is linked in or whose macros wrote code; what build scripts need is not.
    packages: BTreeSet<String>,
    /// Flags of the compiler and settings of the profile.
    flags: Vec<String>,
}

impl Sources {
    /// The sources of a build under `root`: `dependencies` is the text of the dependency file that cargo left beside the
    /// object, `tree` what `cargo tree --edges normal --prefix none --format {p}` says of the package.
    ///
    /// # Errors
    /// When the texts name nothing, or a file cannot be read.
    pub fn of_build(root: &Path, dependencies: &str, tree: &str, flags: &[&str]) -> Result<Self> {
        let mut names = files_in(root, dependencies);
        ensure!(!names.is_empty(), "the compiler named no source file");
        names.insert(MANIFEST.to_owned());
        let hashed = names.into_iter().map(|name| hash_of(root, &name).map(|hash| (name, hash)));
        let packages = packages_in(tree);
        ensure!(!packages.is_empty(), "cargo named no package");
        Ok(Self { files: hashed.collect::<Result<_>>()?, packages, flags: flags.iter().map(|flag| (*flag).to_owned()).collect() })
    }

    /// Whether a build under `root` would read the same.
    ///
    /// # Errors
    /// The first difference, as the end of a sentence.
    pub fn are_unchanged(&self, root: &Path, flags: &[&str]) -> Result<()> {
        for (name, hash) in &self.files {
            match hash_of(root, name) {
                Ok(now) => ensure!(now == *hash, "{name} has changed"),
                Err(_) => bail!("{name} is gone"),
            }
        }
        let lock = root.join("Cargo.lock");
        let lock = fs::read_to_string(&lock).with_context(|| format!("reading {}", lock.display()))?;
        let locked = locked(&lock);
        if let Some(package) = self.packages.iter().find(|package| !locked.contains(*package)) {
            bail!("{package} is not what Cargo.lock has");
        }
        ensure!(self.flags == flags, "the flags have changed");
        Ok(())
    }
}

/// SHA-256 (hex) of some bytes.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hash_of(root: &Path, name: &str) -> Result<String> {
    let path = root.join(name);
    Ok(sha256(&fs::read(&path).with_context(|| format!("reading {}", path.display()))?))
}

/// The files below `root`, relative to it, that a dependency file (`TARGET: FILE FILE …`, spaces in names escaped) lists.
fn files_in(root: &Path, dependencies: &str) -> BTreeSet<String> {
    const SPACE: &str = "\u{1f}";
    let lists = dependencies.lines().filter_map(|line| line.split_once(": ")).map(|(_, list)| list.replace("\\ ", SPACE));
    let files = lists.flat_map(|list| list.split_whitespace().map(|file| file.replace(SPACE, " ")).collect::<Vec<_>>());
    files.filter_map(|file| Some(Path::new(&file).strip_prefix(root).ok()?.to_string_lossy().into_owned())).collect()
}

/// `name version` of every package from a registry in lines like `NAME vVERSION (proc-macro)`; the workspace's own have a path there.
fn packages_in(tree: &str) -> BTreeSet<String> {
    let from_registry = tree.lines().filter(|line| !line.contains("(/"));
    let named = from_registry.filter_map(|line| {
        let mut words = line.split_whitespace();
        Some(format!("{} {}", words.next()?, words.next()?.strip_prefix('v')?))
    });
    named.collect()
}

/// `name version` of every package of a lock file.
fn locked(lock: &str) -> BTreeSet<String> {
    let packages = lock.split("[[package]]").skip(1).filter_map(|block| {
        let value = |key: &str| block.lines().find_map(|line| line.strip_prefix(key)).map(|value| value.trim_matches('"'));
        Some(format!("{} {}", value("name = ")?, value("version = ")?))
    });
    packages.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = "version = 4\n\n[[package]]\nname = \"ebpf-probes\"\nversion = \"0.1.0\"\ndependencies = [\n \"a\",\n \"b 2.0.0\",\n]\n\n\
        [[package]]\nname = \"a\"\nversion = \"1.2.3\"\ndependencies = [\n \"c\",\n]\n\n[[package]]\nname = \"b\"\nversion = \"2.0.0\"\n\n\
        [[package]]\nname = \"b\"\nversion = \"1.9.0\"\n\n[[package]]\nname = \"other\"\nversion = \"9.9.9\"\n";
    const TREE: &str = "ebpf-probes v0.1.0 (/somewhere/ebpf-probes)\na v1.2.3\nb v2.0.0 (proc-macro)\nb v2.0.0 (proc-macro) (*)\n";
    const FLAGS: [&str; 1] = ["-O"];

    /// A workspace with two files for the BPF target and one for the host, and what a build of it reads.
    struct Made {
        folder: tempfile::TempDir,
        sources: Sources,
    }

    impl Made {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path();
            fs::create_dir_all(root.join("ebpf-probes/src/of bpf")).unwrap();
            let files =
                [(MANIFEST, ""), ("ebpf-probes/src/main.rs", ""), ("ebpf-probes/src/of bpf/a.rs", ""), ("ebpf-probes/src/decode.rs", "")];
            for (name, text) in files.into_iter().chain([("Cargo.lock", LOCK)]) {
                fs::write(root.join(name), text).unwrap();
            }
            let at = root.display();
            let dependencies = format!("{at}/out/probes: {at}/ebpf-probes/src/main.rs {at}/ebpf-probes/src/of\\ bpf/a.rs /rust/core.rs\n");
            let sources = Sources::of_build(root, &dependencies, TREE, &FLAGS).unwrap();
            Self { folder, sources }
        }

        /// What changed after `name` got this text; the old text is put back.
        fn after(&self, name: &str, text: &str) -> Option<String> {
            let path = self.folder.path().join(name);
            let before = fs::read(&path).ok();
            fs::write(&path, text).unwrap();
            let outcome = self.sources.are_unchanged(self.folder.path(), &FLAGS);
            match before {
                Some(before) => fs::write(&path, before).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }
            outcome.err().map(|error| error.to_string())
        }
    }

    #[test]
    fn the_closure_follows_dependencies_and_leaves_out_the_rest() {
        let made = Made::new();
        assert_eq!(made.sources.packages.iter().collect::<Vec<_>>(), ["a 1.2.3", "b 2.0.0"]);
        assert_eq!(made.sources.files.keys().collect::<Vec<_>>(), [MANIFEST, "ebpf-probes/src/main.rs", "ebpf-probes/src/of bpf/a.rs"]);
    }

    #[test]
    fn the_fingerprint_changes_with_source_lock_and_flags() {
        let made = Made::new();
        let root = made.folder.path();
        assert!(made.sources.are_unchanged(root, &FLAGS).is_ok());
        assert!(made.sources.are_unchanged(root, &["-O", "-g"]).is_err());
        for name in [MANIFEST, "ebpf-probes/src/main.rs", "ebpf-probes/src/of bpf/a.rs"] {
            assert_eq!(made.after(name, "// two").unwrap(), format!("{name} has changed"));
        }
        for (from, to, package) in [("1.2.3", "1.2.4", "a 1.2.3"), ("2.0.0", "2.0.1", "b 2.0.0")] {
            assert_eq!(made.after("Cargo.lock", &LOCK.replace(from, to)).unwrap(), format!("{package} is not what Cargo.lock has"));
        }
        fs::remove_file(root.join("ebpf-probes/src/main.rs")).unwrap();
        assert_eq!(made.sources.are_unchanged(root, &FLAGS).unwrap_err().to_string(), "ebpf-probes/src/main.rs is gone");
    }

    #[test]
    fn what_only_the_host_compiles_asks_for_no_new_object() {
        let made = Made::new();
        assert_eq!(made.after("ebpf-probes/src/decode.rs", "// a comment"), None);
        assert_eq!(made.after("ebpf-probes/src/new_tests.rs", "#[test] fn it() {}"), None);
    }

    #[test]
    fn packages_that_are_not_in_the_object_may_change() {
        let made = Made::new();
        assert_eq!(made.after("Cargo.lock", &LOCK.replace("9.9.9", "9.9.8")), None, "of the host");
        assert_eq!(made.after("Cargo.lock", &LOCK.replace("1.9.0", "1.9.1")), None, "another version of the same name");
    }

    #[test]
    fn a_build_that_names_nothing_is_refused() {
        let made = Made::new();
        assert!(Sources::of_build(made.folder.path(), "", TREE, &FLAGS).is_err());
        let dependencies = format!("x: {}/ebpf-probes/src/main.rs\n", made.folder.path().display());
        assert!(Sources::of_build(made.folder.path(), &dependencies, "", &FLAGS).is_err());
    }
}
