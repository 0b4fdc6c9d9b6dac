//! Rules about the text of a file.

use std::path::Path;

/// The longest source file that is allowed; the aim is 400.
const MAX_LINES: usize = 500;
/// How far above an `unsafe` its reason may stand.
const SAFETY_LINES: usize = 10;
/// Folders and files of the project that may hold `unsafe`.
const UNSAFE_PLACES: [&str; 4] = [
    "ebpf-probes/",
    "rdma-userspace/core/src/verbs/ffi/",
    "rdma-userspace/core/src/probes/",
    "rdma-userspace/tests/support/slow_reader.rs",
];

// Written in two parts, so that this file does not find itself.
const LEFT_OVER: [&str; 5] =
    [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("db", "g!("), concat!("to", "do!("), concat!("unimple", "mented!(")];
const MACHINE_PATHS: [&str; 4] = [concat!("/ho", "me/"), concat!("/Us", "ers/"), concat!("/wo", "rk/"), concat!("/root", "/.")];
const REGISTRY_HOSTS: [&str; 8] = [
    concat!("deb.", "debian.org"),
    concat!("security.", "debian.org"),
    concat!("archive.", "ubuntu.com"),
    concat!("index.crates", ".io"),
    concat!("static.crates", ".io"),
    concat!("gh", "cr.io"),
    concat!("docker", ".io"),
    concat!("static.", "rust-lang.org"),
];

/// What is wrong with one file; `name` is relative to the root.
pub fn check(name: &str, content: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let is_rust = name.ends_with(".rs");
    let is_code = is_rust || name.ends_with(".sh") || name.ends_with(".toml") || name.starts_with(".ci/");
    if is_rust {
        let count = content.lines().count();
        if count > MAX_LINES {
            findings.push(format!("{name}: {count} lines, more than {MAX_LINES}"));
        }
        if !content.starts_with("//!") {
            findings.push(format!("{name}: the first line does not say what the file is for (//!)"));
        }
        findings.extend(unsafe_findings(name, content));
    }
    // Few files have any of these: they are searched for in the whole before the lines are looked at.
    let present = |words: &'static [&'static str]| words.iter().filter(|word| content.contains(**word)).collect::<Vec<_>>();
    // The lock file names the registry that it locks.
    let is_lock = name == "Cargo.lock";
    let rules = [
        (present(if is_code { &LEFT_OVER } else { &[] }), "something left over"),
        (present(if is_lock { &[] } else { &MACHINE_PATHS }), "a path of some machine"),
        (present(if is_lock { &[] } else { &REGISTRY_HOSTS }), "the name of a registry's host"),
    ];
    for (words, what) in rules.iter().filter(|(words, _)| !words.is_empty()) {
        let lines = content.lines().enumerate().filter(|(_, line)| words.iter().any(|word| line.contains(**word)));
        findings.extend(lines.map(|(index, _)| format!("{name}:{}: {what}", index + 1)));
    }
    findings
}

/// Every `unsafe` block, function and implementation: in a place for it, and with its reason above.
fn unsafe_findings(name: &str, content: &str) -> Vec<String> {
    let lines: Vec<&str> = content.lines().collect();
    let mut findings = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        let forms = [concat!("unsafe", " {"), concat!("unsafe", " fn "), concat!("unsafe", " impl "), concat!("unsafe", " trait ")];
        if !forms.iter().any(|form| code.contains(form)) {
            continue;
        }
        if !UNSAFE_PLACES.iter().any(|place| name.starts_with(place)) {
            findings.push(format!("{name}:{}: unsafe outside of {}", index + 1, UNSAFE_PLACES.join(" and ")));
        }
        let above = &lines[index.saturating_sub(SAFETY_LINES)..=index];
        if !above.iter().any(|line| line.contains("SAFETY:") || line.contains("# Safety")) {
            findings.push(format!("{name}:{}: unsafe without a SAFETY comment", index + 1));
        }
    }
    findings
}

/// Places for `unsafe` that the tree has not or no longer.
pub fn empty_places<'a>(names: impl Iterator<Item = &'a String> + Clone) -> Vec<String> {
    let empty = UNSAFE_PLACES.iter().filter(|place| !names.clone().any(|name| name.starts_with(**place)));
    empty.map(|place| format!("{}: no file is in {place}", file!())).collect()
}

/// Folders of the root whose files a page may name.
const NAMED_FOLDERS: [&str; 6] = ["analysis/", "docs/", "ebpf-probes/", "rdma-userspace/", "third_party/", "xtask/"];

/// Paths in code marks of a Markdown file that are not there. What stands for several files (`*`, `{…}`, `NAME`) is no path.
pub fn broken_paths(root: &Path, name: &str, content: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for (number, line) in content.lines().enumerate() {
        let marked = line.split('`').skip(1).step_by(2);
        let is_path = |text: &&str| NAMED_FOLDERS.iter().any(|folder| text.starts_with(folder));
        let stands_for_several = |text: &str| text.chars().any(|c| c.is_ascii_uppercase() || "*{<…".contains(c) || c.is_whitespace());
        for path in marked.filter(is_path).filter(|path| !stands_for_several(path)) {
            let file = path.split(':').next().unwrap_or(path);
            if !root.join(file).exists() {
                findings.push(format!("{name}:{}: {path} does not exist", number + 1));
            }
        }
    }
    findings
}

/// Links of a Markdown file to files that are not there.
pub fn broken_links(root: &Path, name: &str, content: &str) -> Vec<String> {
    let folder = root.join(name).parent().map(Path::to_path_buf).unwrap_or_default();
    let mut findings = Vec::new();
    for (number, line) in content.lines().enumerate() {
        for target in link_targets(line) {
            let path = target.split('#').next().unwrap_or_default();
            let is_elsewhere = target.contains("://") || target.starts_with("mailto:") || path.is_empty();
            if !is_elsewhere && !folder.join(path).exists() {
                findings.push(format!("{name}:{}: {target} does not exist", number + 1));
            }
        }
    }
    findings
}

/// The targets of `[text](target)` and `![text](target "title")` in a line.
pub fn link_targets(line: &str) -> Vec<&str> {
    let parts = line.split("](").skip(1);
    parts.filter_map(|part| part.split(')').next()?.split_whitespace().next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_file_has_no_findings() {
        assert_eq!(check("a/src/x.rs", "//! What it is for.\nfn x() {}\n"), Vec::<String>::new());
    }

    #[test]
    fn long_files_and_missing_heads_are_found() {
        let long = "//! Long.\n".to_owned() + &"x\n".repeat(MAX_LINES);
        assert_eq!(check("x.rs", &long), [format!("x.rs: {} lines, more than {MAX_LINES}", MAX_LINES + 1)]);
        assert_eq!(check("x.rs", "fn x() {}").len(), 1);
        assert!(check("notes.txt", &long).is_empty());
    }

    #[test]
    fn a_page_that_names_a_file_that_is_gone_is_found() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("xtask/src")).unwrap();
        let page = "see `xtask/src/` and `xtask/src/gone.rs`\n`xtask/src/*.rs`, `docs/NAME.md`, `other/gone.rs`, `a b`\n";
        assert_eq!(broken_paths(root.path(), "docs/x.md", page), ["docs/x.md:1: xtask/src/gone.rs does not exist"]);
    }

    #[test]
    fn left_overs_paths_and_hosts_are_found_with_their_line() {
        for bad in LEFT_OVER.iter().chain(&MACHINE_PATHS).chain(&REGISTRY_HOSTS) {
            let findings = check("x.rs", &format!("//! x\nlet a = \"{bad}\";\n"));
            assert_eq!(findings.len(), 1, "{bad}");
            assert!(findings[0].starts_with("x.rs:2: "), "{}", findings[0]);
        }
        assert!(check("Cargo.lock", REGISTRY_HOSTS[3]).is_empty());
    }

    #[test]
    fn unsafe_needs_its_place_and_its_reason() {
        let block = concat!("    let x = unsafe", " { y() };\n");
        let bare = format!("//! x\n{block}");
        let reasoned = format!("//! x\n// SAFETY: y wants nothing.\n{block}");
        assert_eq!(check("rdma-userspace/core/src/verbs/ffi/mod.rs", &reasoned), Vec::<String>::new());
        assert_eq!(check("rdma-userspace/core/src/verbs/ffi/mod.rs", &bare).len(), 1);
        assert_eq!(check("analysis/src/lib.rs", &bare).len(), 2);
        assert!(check("x.rs", concat!("//! x\n// unsafe", " { is only mentioned\n")).is_empty());
    }

    #[test]
    fn a_place_for_unsafe_is_there() {
        let names = [UNSAFE_PLACES[0], UNSAFE_PLACES[2], UNSAFE_PLACES[3]].map(|place| format!("{place}x.rs"));
        assert_eq!(empty_places(names.iter()), [format!("{}: no file is in {}", file!(), UNSAFE_PLACES[1])]);
    }

    #[test]
    fn links_to_missing_files_are_found() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("there.md"), "").unwrap();
        let text = "[a](there.md#part) [b](missing.md) ![c](https://x/y) [d](#here)\n";
        assert_eq!(broken_links(folder.path(), "README.md", text), ["README.md:1: missing.md does not exist"]);
    }
}
