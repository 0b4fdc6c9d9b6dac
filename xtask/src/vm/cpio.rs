//! The guest's root file system: a writer of the kernel's initramfs format ("newc" cpio, described in the kernel's
//! Documentation/driver-api/early-userspace/buffer-format.rst), which needs neither root nor device nodes on the host.

use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

/// What is at a path of the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// A folder.
    Folder,
    /// A copy of a file of the host; `true` makes it executable.
    Copy(PathBuf, bool),
    /// A file with this content; `true` makes it executable.
    Text(Vec<u8>, bool),
    /// A symbolic link to this path.
    Link(String),
    /// A character device, major and minor number.
    Device(u32, u32),
}

/// A file tree by absolute guest path; parent folders come by themselves.
#[derive(Debug, Default)]
pub struct Tree {
    nodes: BTreeMap<String, Node>,
}

impl Tree {
    /// Puts `node` at `path` (absolute); what was there is replaced.
    pub fn put(&mut self, path: &str, node: Node) {
        let path = path.trim_matches('/');
        let mut end = 0;
        while let Some(next) = path[end..].find('/') {
            self.nodes.entry(path[..end + next].to_owned()).or_insert(Node::Folder);
            end += next + 1;
        }
        self.nodes.insert(path.to_owned(), node);
    }

    /// Whether something is at `path`.
    pub fn has(&self, path: &str) -> bool {
        self.nodes.contains_key(path.trim_matches('/'))
    }

    /// Writes the archive. BTreeMap order puts every folder before what lies in it.
    pub fn write(&self, mut out: impl Write) -> Result<()> {
        for (number, (path, node)) in self.nodes.iter().enumerate() {
            let (mode, device, content) = match node {
                Node::Folder => (0o040_755, (0, 0), Vec::new()),
                Node::Copy(from, runs) => {
                    let content = std::fs::read(from).with_context(|| format!("reading {}", from.display()))?;
                    (file_mode(*runs), (0, 0), content)
                }
                Node::Text(content, runs) => (file_mode(*runs), (0, 0), content.clone()),
                Node::Link(to) => (0o120_777, (0, 0), to.clone().into_bytes()),
                Node::Device(major, minor) => (0o020_600, (*major, *minor), Vec::new()),
            };
            let inode = u32::try_from(number + 1).context("too many files for an initramfs")?;
            entry(&mut out, path, inode, mode, device, &content)?;
        }
        entry(&mut out, "TRAILER!!!", 0, 0, (0, 0), &[])
    }
}

fn file_mode(runs: bool) -> u32 {
    if runs { 0o100_755 } else { 0o100_644 }
}

/// One header of thirteen 8-digit hex fields, the name with its NUL, the content; both padded to four bytes.
fn entry(out: &mut impl Write, path: &str, inode: u32, mode: u32, device: (u32, u32), content: &[u8]) -> Result<()> {
    let size = u32::try_from(content.len()).with_context(|| format!("{path} is too large for an initramfs"))?;
    let name_size = u32::try_from(path.len() + 1).context("a path is too long")?;
    let fields = [inode, mode, 0, 0, 1, 0, size, 0, 0, device.0, device.1, name_size, 0];
    let mut header = String::from("070701");
    for field in fields {
        header.push_str(&format!("{field:08x}"));
    }
    out.write_all(header.as_bytes())?;
    out.write_all(path.as_bytes())?;
    out.write_all(&[0])?;
    pad(out, header.len() + path.len() + 1)?;
    out.write_all(content)?;
    pad(out, content.len())
}

fn pad(out: &mut impl Write, length: usize) -> Result<()> {
    Ok(out.write_all(&[0; 3][..length.next_multiple_of(4) - length])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(tree: &Tree) -> Vec<u8> {
        let mut bytes = Vec::new();
        tree.write(&mut bytes).unwrap();
        bytes
    }

    /// Reads an archive back: (name, mode, content).
    fn read(mut bytes: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut entries = Vec::new();
        loop {
            assert_eq!(&bytes[..6], b"070701");
            let field = |n: usize| u32::from_str_radix(std::str::from_utf8(&bytes[6 + 8 * n..14 + 8 * n]).unwrap(), 16).unwrap();
            let (mode, size, name_size) = (field(1), field(6) as usize, field(11) as usize);
            let name = String::from_utf8(bytes[110..110 + name_size - 1].to_vec()).unwrap();
            let start = (110 + name_size).next_multiple_of(4);
            let content = bytes[start..start + size].to_vec();
            bytes = &bytes[(start + size).next_multiple_of(4)..];
            if name == "TRAILER!!!" {
                assert!(bytes.is_empty());
                return entries;
            }
            entries.push((name, mode, content));
        }
    }

    #[test]
    fn files_links_and_parents_come_back() {
        let mut tree = Tree::default();
        tree.put("/a/b/run", Node::Text(b"12345".to_vec(), true));
        tree.put("/a/link", Node::Link("b/run".to_owned()));
        tree.put("/plain", Node::Text(Vec::new(), false));
        let entries = read(&archive(&tree));
        let expected = [
            ("a", 0o040_755, ""),
            ("a/b", 0o040_755, ""),
            ("a/b/run", 0o100_755, "12345"),
            ("a/link", 0o120_777, "b/run"),
            ("plain", 0o100_644, ""),
        ];
        let expected = expected.map(|(name, mode, text)| (name.to_owned(), mode, text.as_bytes().to_vec()));
        assert_eq!(entries, expected);
        assert!(tree.has("/a/b") && !tree.has("/a/c"));
    }

    #[test]
    fn a_folder_put_later_does_not_lose_its_files() {
        let mut tree = Tree::default();
        tree.put("/dev/console", Node::Device(5, 1));
        assert!(tree.has("dev") && tree.has("dev/console"));
    }

    #[test]
    fn a_missing_source_is_an_error_that_names_it() {
        let mut tree = Tree::default();
        tree.put("/x", Node::Copy(PathBuf::from("/no/such/file"), false));
        let error = tree.write(Vec::new()).unwrap_err();
        assert!(format!("{error:#}").contains("/no/such/file"));
    }
}
