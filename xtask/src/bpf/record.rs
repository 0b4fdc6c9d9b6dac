//! A BPF object with its record: which sources it is made from, and by what.

use super::flags;
use crate::paths;
use crate::sources::{self, Sources};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

const RECORD: &str = "record.json";

/// What an object was made of.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Compiler, LLVM and linker.
    pub toolchain: String,
    /// SHA-256 of the object.
    pub object_sha256: String,
    #[serde(flatten)]
    sources: Sources,
}

impl Record {
    /// The record of an object with this hash.
    pub fn new(sources: Sources, object_sha256: String, toolchain: String) -> Self {
        Self { toolchain, object_sha256, sources }
    }
}

/// A folder that holds an object and its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    folder: PathBuf,
    /// What the object there is called in a sentence.
    name: &'static str,
}

impl Place {
    /// Where the repository keeps one, for machines that have no compiler for the BPF target.
    pub fn committed() -> Self {
        Self { folder: paths::root().join("ebpf-probes").join("prebuilt"), name: "the committed object" }
    }

    /// Where the one lies that the next build of `rdmascope` carries.
    pub fn built() -> Self {
        Self { folder: paths::bpf_folder(), name: "the built object" }
    }

    /// The object's file.
    pub fn object(&self) -> PathBuf {
        self.folder.join(super::PROGRAM)
    }

    /// The record of the object.
    pub fn record(&self) -> Result<Record> {
        let path = self.folder.join(RECORD);
        let text = fs::read(&path).with_context(|| format!("there is no {}", paths::shown(&path)))?;
        serde_json::from_slice(&text).with_context(|| format!("reading {}", paths::shown(&path)))
    }

    /// The object, where it is made from the present sources.
    ///
    /// # Errors
    /// Why it is not, with the object's name.
    pub fn fresh(&self) -> Result<Vec<u8>> {
        self.fresh_in(&paths::root(), &flags::recorded()).map_err(|why| why.context(format!("{} is not of the present sources", self.name)))
    }

    fn fresh_in(&self, root: &Path, flags: &[&str]) -> Result<Vec<u8>> {
        let record = self.record()?;
        record.sources.are_unchanged(root, flags)?;
        let object = fs::read(self.object()).with_context(|| format!("reading {}", paths::shown(&self.object())))?;
        if record.object_sha256 != sources::sha256(&object) {
            bail!("it is not the one that its record describes");
        }
        Ok(object)
    }

    /// Puts an object and its record here.
    pub fn put(&self, object: &[u8], record: &Record) -> Result<()> {
        replace(&self.object(), object)?;
        replace(&self.folder.join(RECORD), format!("{}\n", serde_json::to_string_pretty(record)?).as_bytes())
    }

    /// Puts the object of another place here.
    pub fn take(&self, from: &Place) -> Result<()> {
        self.put(&from.fresh()?, &from.record()?)
    }
}

/// Writes the file only when it differs, so that what depends on it is not built again for nothing.
fn replace(path: &Path, content: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    let folder = path.parent().context("a file lies in a folder")?;
    fs::create_dir_all(folder)?;
    let unfinished = path.with_extension("new");
    fs::write(&unfinished, content)?;
    fs::rename(&unfinished, path).with_context(|| format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_taken_only_as_its_record_describes_it() {
        let root = tempfile::tempdir().unwrap();
        let source = root.path().join("ebpf-probes/main.rs");
        fs::create_dir_all(source.parent().unwrap()).unwrap();
        for (file, text) in [("ebpf-probes/Cargo.toml", ""), ("ebpf-probes/main.rs", ""), ("Cargo.lock", LOCK)] {
            fs::write(root.path().join(file), text).unwrap();
        }
        let sources = || Sources::of_build(root.path(), &format!("object: {}\n", source.display()), "a v1.0.0\n", &["-O"]).unwrap();
        let place = Place { folder: root.path().join("out"), name: "it" };
        let why = |place: &Place, flags| format!("{:#}", place.fresh_in(root.path(), flags).unwrap_err());
        assert!(why(&place, &["-O"]).contains("there is no"));
        place.put(b"object", &Record::new(sources(), sources::sha256(b"object"), "rustc".to_owned())).unwrap();
        assert_eq!(place.fresh_in(root.path(), &["-O"]).unwrap(), b"object");
        assert!(why(&place, &["-g"]).contains("flags"));
        place.put(b"another", &place.record().unwrap()).unwrap();
        assert!(why(&place, &["-O"]).contains("record describes"));
        place.put(b"object", &place.record().unwrap()).unwrap();
        fs::write(&source, "// changed").unwrap();
        assert!(why(&place, &["-O"]).contains("ebpf-probes/main.rs has changed"));
    }

    const LOCK: &str = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n";

    #[test]
    fn the_committed_record_lists_what_the_bpf_target_reads_and_nothing_of_the_host() {
        let text = fs::read(Place::committed().folder.join(RECORD)).unwrap();
        let record: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let (files, packages) = (record["files"].as_object().unwrap(), record["packages"].as_array().unwrap());
        for read in ["ebpf-probes/Cargo.toml", "ebpf-probes/src/main.rs", "ebpf-probes/src/records.rs", "ebpf-probes/src/bpf/mod.rs"] {
            assert!(files.contains_key(read), "{read}");
        }
        assert!(!files.contains_key("ebpf-probes/src/decode.rs"));
        let has = |start: &str| packages.iter().any(|package| package.as_str().unwrap().starts_with(start));
        assert!(has("aya-ebpf ") && has("aya-log-ebpf ") && !has("zerocopy ") && !has("anyhow "));
    }
}
