//! `cargo xtask tidy`: rules of the project that no compiler knows. Each rule looks at one file or at the whole tree and
//! returns what is wrong as `place: what`.

mod arrows;
mod blobs;
mod circles;
mod dead;
mod licences;
mod modules;
mod rooms;
mod source;
mod text;
mod tree;
mod uses;

use crate::{bpf, exit, paths};
use anyhow::Result;
use modules::Modules;
use tree::Tree;

/// Which check is asked for.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Check nothing; print who uses whom, as rows for docs/architecture.md, and every circle.
    #[arg(long)]
    arrows: bool,
}

/// Runs the subcommand.
pub fn command(args: &Args) -> Result<()> {
    if args.arrows { print_arrows() } else { run() }
}

/// Checks the working tree; the error lists every finding.
pub fn run() -> Result<()> {
    let tree = Tree::read(&paths::root())?;
    let (mut findings, counts) = check(&tree, &PROJECT);
    findings.extend(text::empty_places(tree.files.keys()));
    findings.extend(licences::check()?);
    findings.extend(bpf::prebuilt_is_fresh().err().map(|error| format!("ebpf-probes/prebuilt: {error:#}")));
    if findings.is_empty() {
        println!("{counts}: tidy");
        return Ok(());
    }
    for finding in &findings {
        println!("{finding}");
    }
    Err(exit::coded(1, format!("{} findings in {counts}", findings.len())))
}

fn print_arrows() -> Result<()> {
    let tree = Tree::read(&paths::root())?;
    let modules = Modules::read(&tree);
    let uses = uses::between(&tree, &modules);
    let circles = circles::check(&modules, &uses);
    println!("{}\n{} circles between sibling modules", arrows::shown(&tree, &modules, &uses), circles.len());
    circles.iter().chain(&modules.findings).for_each(|line| println!("{line}"));
    Ok(())
}

/// The lists that the checks of the whole tree go by.
struct Lists<'a> {
    big: &'a [blobs::Named],
    walked: &'a [dead::Walked],
}

const PROJECT: Lists = Lists { big: &blobs::NAMED, walked: &dead::WALKED };

/// Every rule that needs nothing but the tree; the second part says how much was looked at.
fn check(tree: &Tree, lists: &Lists) -> (Vec<String>, String) {
    let mut findings = Vec::new();
    let mut files = 0_usize;
    for (name, content) in tree.files.iter().filter_map(|(name, file)| Some((name, file.text.as_ref()?))) {
        files += 1;
        findings.extend(text::check(name, content));
        if name.ends_with(".md") {
            findings.extend(text::broken_links(&tree.root, name, content));
            findings.extend(text::broken_paths(&tree.root, name, content));
        }
    }
    if files == 0 {
        findings.push("git lists no file to check".to_owned());
    }
    let modules = Modules::read(tree);
    let uses = uses::between(tree, &modules);
    let arrows = arrows::check(tree, &modules, &uses);
    findings.extend(arrows.findings);
    findings.extend(circles::check(&modules, &uses));
    findings.extend(blobs::check(tree, lists.big));
    findings.extend(dead::check(tree, &modules, lists.walked));
    let count = modules.all.len();
    findings.extend(modules.findings);
    (findings, format!("{files} files, {count} modules, {} rooms with {} arrows", arrows.rooms, arrows.arrows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tree::{Planted, manifest, planted};

    const TABLE: &str = "//! Rooms.\n<!-- rooms: checked by cargo xtask tidy -->\n| room | may use |\n|---|---|\n\
        | `app/src/show/` | `numbers` |\n| `app/src/numbers.rs` | nothing |\n<!-- end of rooms -->\n";
    const LISTS: Lists = Lists { big: &[], walked: &[] };

    /// A small tree that is tidy, with some files more or other ones.
    fn tree(changed: &[(&str, &str)]) -> Planted {
        let manifest = manifest("app", "");
        let clean = [
            ("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"app\"]\n"),
            ("README.md", "[Where things are](docs/architecture.md)\n"),
            ("docs/architecture.md", TABLE),
            ("app/Cargo.toml", &manifest),
            ("app/src/lib.rs", "//! Wiring.\nmod numbers;\nmod show;\n"),
            ("app/src/numbers.rs", "//! Numbers.\npub fn one() {}\n"),
            ("app/src/show/mod.rs", "//! Shows.\nmod html;\nmod text;\n"),
            ("app/src/show/html.rs", "//! HTML.\nuse super::text;\nuse crate::numbers;\n"),
            ("app/src/show/text.rs", "//! Text.\n"),
        ];
        let kept = clean.iter().filter(|(name, _)| !changed.iter().any(|(other, _)| other == name));
        planted(&kept.chain(changed).map(|(name, text)| (*name, text.as_bytes())).collect::<Vec<_>>())
    }

    fn findings(changed: &[(&str, &str)]) -> Vec<String> {
        check(&tree(changed).tree, &LISTS).0
    }

    #[test]
    fn a_tidy_tree_has_no_findings() {
        let (findings, counts) = check(&tree(&[]).tree, &LISTS);
        assert_eq!(findings, Vec::<String>::new());
        assert_eq!(counts, "9 files, 5 modules, 2 rooms with 1 arrows");
    }

    #[test]
    fn a_planted_upward_arrow_is_found() {
        let found = findings(&[("app/src/numbers.rs", "//! Numbers.\npub fn one() { crate::show::print() }\n")]);
        assert_eq!(found[0], "app/src/numbers.rs:2: room app/src/numbers may not use room app/src/show (allowed: nothing)");
        // The two use each other now.
        assert!(found.len() == 2 && found[1].starts_with("circle: app::numbers → show "), "{found:?}");
    }

    #[test]
    fn a_planted_circle_is_found() {
        let found = findings(&[("app/src/show/text.rs", "//! Text.\nuse super::html;\n")]);
        let circle = "circle: app::show::html → text (app/src/show/html.rs:2) → html (app/src/show/text.rs:2)";
        assert!(found.len() == 1 && found[0].starts_with(circle), "{found:?}");
    }

    #[test]
    fn a_planted_big_blob_is_found() {
        let found = findings(&[("README.md", "[Where](docs/architecture.md) x.bin\n"), ("x.bin", &"x".repeat(300 * 1024))]);
        assert!(found.len() == 1 && found[0].starts_with("x.bin: 300 KiB, more than 256"), "{found:?}");
    }

    #[test]
    fn a_planted_dead_file_is_found() {
        let found = findings(&[("app/src/old.rs", "//! Old.\n")]);
        assert_eq!(found, ["app/src/old.rs: no `mod` of any target leads here"]);
    }
}
