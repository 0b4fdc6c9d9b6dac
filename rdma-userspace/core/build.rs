//! Copies the BPF object into the build: from where `RDMASCOPE_BPF_OBJECT` says, else what `cargo xtask bpf` built, else the
//! committed one, else an empty file. Never builds anything itself.

use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-env-changed=RDMASCOPE_BPF_OBJECT");
    // Asked when it runs: a target folder that was copied from another tree brings a compiled script that remembers that tree.
    let package = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let workspace = package.ancestors().nth(2).expect("the package lies in the workspace").to_owned();
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let built = target_dir(&workspace, &out).join("bpf/rdmascope-probes");
    let committed = workspace.join("ebpf-probes/prebuilt/rdmascope-probes");
    let object = match std::env::var_os("RDMASCOPE_BPF_OBJECT") {
        Some(path) => {
            let path = PathBuf::from(path);
            println!("cargo::rerun-if-changed={}", path.display());
            std::fs::read(&path).unwrap_or_else(|error| panic!("RDMASCOPE_BPF_OBJECT: cannot read {}: {error}", path.display()))
        }
        None => {
            // A path that does not exist yet makes cargo run this again on every build: the object may appear.
            for path in [&built, &committed] {
                println!("cargo::rerun-if-changed={}", path.display());
            }
            std::fs::read(&built).or_else(|_| std::fs::read(&committed)).unwrap_or_default()
        }
    };
    // Written anew, never into the old file: that one may be a hard link into another tree's target folder.
    let copy = out.join("rdmascope-probes");
    if copy.exists() {
        std::fs::remove_file(&copy).expect("OUT_DIR is writable");
    }
    std::fs::write(&copy, object).expect("OUT_DIR is writable");
}

/// The target directory of this build: `OUT_DIR` is `TARGET[/TRIPLE]/PROFILE/build/PACKAGE-HASH/out`.
fn target_dir(workspace: &Path, out: &Path) -> PathBuf {
    let above = out.ancestors().find(|path| path.join("CACHEDIR.TAG").is_file());
    above.map_or_else(|| workspace.join("target"), Path::to_owned)
}
