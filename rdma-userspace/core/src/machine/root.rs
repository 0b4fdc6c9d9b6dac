//! The directory that /proc, /sys and the rest are read below: `/` on a machine, a temporary tree in tests.
use std::fs;
use std::path::{Path, PathBuf};

/// Where the kernel lists RDMA devices.
pub const RDMA_CLASS: &str = "/sys/class/infiniband";

/// A file system root to read facts from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root(PathBuf);

impl Default for Root {
    fn default() -> Self {
        Self::live()
    }
}

impl<P: AsRef<Path> + ?Sized> From<&P> for Root {
    fn from(path: &P) -> Self {
        Self::at(path.as_ref())
    }
}

impl From<&Root> for Root {
    fn from(root: &Root) -> Self {
        root.clone()
    }
}

impl Root {
    /// This machine.
    pub fn live() -> Self {
        Self(PathBuf::from("/"))
    }

    /// A tree of files that stands for a machine.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// True for this machine: facts that no file tells (CPUID) may be asked.
    pub fn is_live(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// Where `path` (absolute or relative) is below this root.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The text of a file without white space at its ends; `None` when it cannot be read or is empty.
    ///
    /// Attributes of sysfs that do not apply answer with an error (an unused GID's type gives `EINVAL`): that is `None` too.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let bytes = fs::read(self.path(path)).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// A file that holds one number.
    pub fn number<T: std::str::FromStr>(&self, path: impl AsRef<Path>) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// The bytes of a file.
    pub fn bytes(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        fs::read(self.path(path)).ok()
    }

    /// Names in a directory, sorted with numbers by value (`port2` before `port10`); empty when there is none.
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(path)) else { return Vec::new() };
        let mut names: Vec<String> = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort_by(|a, b| natural(a).cmp(&natural(b)));
        names
    }

    /// Does the path exist? (Links are followed.)
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.path(path).exists()
    }

    /// Last component of a link's target: `…/drivers/mlx5_core` gives `mlx5_core`.
    pub fn link_name(&self, path: impl AsRef<Path>) -> Option<String> {
        let target = fs::read_link(self.path(path)).ok()?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    }

    /// The real path behind links, as seen from inside this root (it starts with `/`).
    pub fn real(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
        let root = fs::canonicalize(&self.0).ok()?;
        let real = fs::canonicalize(self.path(path)).ok()?;
        Some(Path::new("/").join(real.strip_prefix(root).ok()?))
    }
}

/// Sort key: the text before a trailing number, then that number.
fn natural(name: &str) -> (&str, u64, &str) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (stem, name[stem.len()..].parse().unwrap_or(0), name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fixture::Tree;

    #[test]
    fn text_is_trimmed_and_an_empty_file_is_absent() {
        let tree = Tree::new().file("sys/a", "tsc\n").file("sys/empty", "\n").file("sys/n", " 42\n");
        let root = tree.root();
        assert_eq!(root.text("/sys/a").as_deref(), Some("tsc"));
        assert_eq!(root.text("/sys/empty"), None);
        assert_eq!(root.text("/sys/none"), None);
        assert_eq!(root.number::<u32>("/sys/n"), Some(42));
        assert_eq!(root.number::<u32>("/sys/a"), None);
    }

    #[test]
    fn names_sort_by_number_and_links_stay_inside() {
        let tree = Tree::new().file("sys/d/10", "").file("sys/d/9", "").file("sys/real/x", "1").link("sys/l", "real");
        let root = tree.root();
        assert_eq!(root.names("/sys/d"), ["9", "10"]);
        assert_eq!(root.link_name("/sys/l").as_deref(), Some("real"));
        assert_eq!(root.real("/sys/l").as_deref(), Some(Path::new("/sys/real")));
    }
}
