//! Where things are: the workspace root and the folders under `target/` that xtask fills.

use std::path::{Path, PathBuf};

/// Root of the workspace that this xtask was started in.
pub fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let manifest = manifest.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
    manifest.parent().map(Path::to_path_buf).unwrap_or(manifest)
}

/// `target/` of the workspace; always this one, whatever `CARGO_TARGET_DIR` says, so that paths in the docs are true.
pub fn target() -> PathBuf {
    root().join("target")
}

/// The folder of the built BPF object.
pub fn bpf_folder() -> PathBuf {
    target().join("bpf")
}

/// Programs that set-up installs for this workspace alone.
pub fn tools() -> PathBuf {
    target().join("tools")
}

/// A path as it is shown to the user: relative to the workspace where it lies inside.
pub fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}
