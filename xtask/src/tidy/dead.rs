//! Files that nothing uses. A Rust file must be reached by the `mod` declarations of some target, a page of the docs by
//! links from README.md; any other file must be named in a file of the tree, or be in a folder that code is known to walk,
//! or have a name that a tool looks for.

use super::modules::{Modules, joined};
use super::text;
use super::tree::Tree;
use std::collections::BTreeSet;

/// A folder whose files no code names one by one, and the file that reads them.
#[derive(Debug, Clone, Copy)]
pub struct Walked {
    pub folder: &'static str,
    pub by: &'static str,
    pub reads: Reads,
}

/// How a folder is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// Every file in it, by listing it.
    All,
    /// Those of its entries whose names the reading file has as texts (`"6.1"`), with all that is in them.
    Named,
}

/// The project's own.
pub const WALKED: [Walked; 2] = [
    Walked { folder: "analysis/tests/streams", by: "analysis/tests/host/streams.rs", reads: Reads::All },
    Walked { folder: "rdma-userspace/tests/fixtures/kernels", by: "rdma-userspace/tests/host/plans.rs", reads: Reads::Named },
];

/// Names that tools and people look for without being told.
const LOOKED_FOR: [&str; 6] = ["Cargo.toml", "Cargo.lock", ".gitignore", "rustfmt.toml", "LICENSE-APACHE", "LICENSE-MIT"];
/// The same, by their whole path.
const LOOKED_FOR_THERE: [&str; 4] = ["README.md", ".cargo/config.toml", ".ci/run", "analysis/assets/DejaVuSans-LICENSE.txt"];
/// What is said here about files is no use of them.
const TIDY: &str = "xtask/src/tidy/";

/// Every file without a use, and every walked folder that is not there or is not read any more.
pub fn check(tree: &Tree, modules: &Modules, walked: &[Walked]) -> Vec<String> {
    let reached: BTreeSet<&str> = modules.all.iter().map(|module| module.file.as_str()).collect();
    let linked = linked_pages(tree);
    let mut findings: Vec<String> = walked.iter().filter_map(|walked| outdated(tree, walked)).collect();
    for name in tree.files.keys().map(String::as_str) {
        let is_walked = || walked.iter().any(|walked| reads(tree, walked, name));
        if name.ends_with(".rs") {
            if !reached.contains(name) {
                findings.push(format!("{name}: no `mod` of any target leads here"));
            }
        } else if is_looked_for(name) || is_walked() {
        } else if name.ends_with(".md") {
            if !linked.contains(name) {
                findings.push(format!("{name}: no link leads here from README.md or the pages that it links"));
            }
        } else if !is_named(tree, name) {
            findings.push(format!("{name}: no file names it"));
        }
    }
    findings
}

fn is_looked_for(name: &str) -> bool {
    LOOKED_FOR.contains(&file_name(name)) || LOOKED_FOR_THERE.contains(&name)
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether the code that walks the folder reads this file.
fn reads(tree: &Tree, walked: &Walked, name: &str) -> bool {
    let Some(inside) = name.strip_prefix(walked.folder).and_then(|rest| rest.strip_prefix('/')) else { return false };
    let entry = inside.split('/').next().unwrap_or(inside);
    walked.reads == Reads::All || content(tree, walked.by).contains(&format!("\"{entry}\""))
}

/// What is wrong with an entry of the list itself.
fn outdated(tree: &Tree, walked: &Walked) -> Option<String> {
    let Walked { folder, by, .. } = walked;
    let is_there = tree.files.keys().any(|name| name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')));
    if !is_there {
        return Some(format!("{}: no file is in {folder}", file!()));
    }
    if !content(tree, by).contains(file_name(folder)) {
        return Some(format!("{}: {by} does not name {folder}", file!()));
    }
    None
}

fn content<'a>(tree: &'a Tree, name: &str) -> &'a str {
    tree.files.get(name).and_then(|file| file.text.as_deref()).unwrap_or_default()
}

/// Whether another file has the name of this one, as a word of its own.
fn is_named(tree: &Tree, name: &str) -> bool {
    let wanted = file_name(name);
    let others = tree.files.keys().filter(|other| *other != name && !other.starts_with(TIDY));
    others.into_iter().any(|other| has_word(content(tree, other), wanted))
}

fn has_word(text: &str, word: &str) -> bool {
    let belongs = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    text.match_indices(word).any(|(start, _)| !text[..start].ends_with(belongs) && !text[start + word.len()..].starts_with(belongs))
}

/// The pages that can be reached from README.md by links.
fn linked_pages(tree: &Tree) -> BTreeSet<String> {
    let mut linked = BTreeSet::new();
    let mut next = vec!["README.md".to_owned()];
    while let Some(page) = next.pop() {
        let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
        let targets = content(tree, &page).lines().flat_map(text::link_targets);
        let files = targets.filter_map(|target| target.split('#').next());
        next.extend(files.map(|file| joined(folder, file)).filter(|file| file.ends_with(".md") && !linked.contains(file)));
        linked.insert(page);
    }
    linked
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::planted;

    const LIST: [Walked; 2] = [
        Walked { folder: "a/tests/streams", by: "a/tests/all.rs", reads: Reads::All },
        Walked { folder: "a/tests/kernels", by: "a/tests/all.rs", reads: Reads::Named },
    ];
    const CLEAN: [(&str, &str); 12] = [
        ("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"a\"]\n"),
        ("README.md", "[a](docs/a.md)\n"),
        ("docs/a.md", "[b](b.md#part) ![picture](images/p.svg)\n"),
        ("docs/b.md", "[back](../README.md)\n"),
        ("docs/images/p.svg", ""),
        ("a/Cargo.toml", "[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2024\"\n"),
        ("a/src/lib.rs", "mod inner;\nconst STYLE: &str = include_str!(\"style.css\");\n"),
        ("a/src/inner.rs", "#[cfg(test)]\n#[path = \"inner_tests.rs\"]\nmod tests;\n"),
        ("a/src/inner_tests.rs", ""),
        ("a/src/style.css", ""),
        ("a/tests/all.rs", "const KERNELS: [&str; 1] = [\"6.1\"]; // tests/streams, tests/kernels\n"),
        ("a/tests/streams/one.stream", ""),
    ];

    fn found(more: &[(&str, &str)]) -> Vec<String> {
        let kernel = [("a/tests/kernels/6.1/proc/modules", "")];
        let files: Vec<(&str, &[u8])> = CLEAN.iter().chain(&kernel).chain(more).map(|(name, text)| (*name, text.as_bytes())).collect();
        let planted = planted(&files);
        let modules = Modules::read(&planted.tree);
        assert_eq!(modules.findings, Vec::<String>::new());
        check(&planted.tree, &modules, &LIST)
    }

    #[test]
    fn a_tree_in_use_has_no_findings() {
        assert_eq!(found(&[]), Vec::<String>::new());
    }

    #[test]
    fn a_source_file_without_mod_is_found() {
        // A comment that names it is no use.
        let findings = found(&[("a/src/old.rs", "// See old.rs.\n"), ("a/src/inner/deep.rs", "")]);
        assert_eq!(findings, ["a/src/inner/deep.rs: no `mod` of any target leads here", "a/src/old.rs: no `mod` of any target leads here"]);
    }

    #[test]
    fn a_page_without_link_is_found() {
        // Two pages that link each other are still not linked.
        let findings = found(&[("docs/c.md", "[d](d.md)"), ("docs/d.md", "[c](c.md)")]);
        let lost = "no link leads here from README.md or the pages that it links";
        assert_eq!(findings, [format!("docs/c.md: {lost}"), format!("docs/d.md: {lost}")]);
    }

    #[test]
    fn other_files_need_to_be_named_or_walked() {
        let findings = found(&[
            ("a/src/e.css", ""),
            ("a/tests/kernels/6.2/proc/modules", ""),
            ("a/tests/streams/two.stream", ""),
            ("docs/images/q.svg", "the name q.svg in the file itself"),
        ]);
        assert_eq!(
            findings,
            ["a/src/e.css: no file names it", "a/tests/kernels/6.2/proc/modules: no file names it", "docs/images/q.svg: no file names it"]
        );
    }

    #[test]
    fn a_walked_folder_is_there_and_read() {
        let planted = planted(&[("a/tests/streams/x", b""), ("a/tests/all.rs", b"// nothing")]);
        let findings: Vec<_> = LIST.iter().filter_map(|walked| outdated(&planted.tree, walked)).collect();
        assert_eq!(
            findings,
            [format!("{}: a/tests/all.rs does not name a/tests/streams", file!()), format!("{}: no file is in a/tests/kernels", file!())]
        );
    }
}
