//! Who may use whom: every use between rooms is allowed by the table of rooms, and every allowed arrow is used. How rooms
//! and the table are written is told in [`super::rooms`].
//!
//! The root of a package whose modules are rooms (`lib.rs`, `main.rs`) is the wiring: it may use every room and no room may
//! use what it defines. Tests, examples, benches and build scripts are nobody's room: they may use everything, and so may
//! `#[cfg(test)]` code; test support behind a feature is a room like any other.

use super::modules::Modules;
use super::rooms::{PAGE, Table};
use super::tree::Tree;
use super::uses::Use;
use std::collections::{BTreeMap, BTreeSet};

/// What was found, and what was counted.
pub struct Outcome {
    pub findings: Vec<String>,
    pub rooms: usize,
    /// Arrows between rooms that the tree has.
    pub arrows: usize,
}

/// Where a module lives.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Home {
    /// A room of the table, by its row.
    Room(usize),
    /// A room that the table lacks, by its path.
    Unlisted(String),
    /// The root of a package that is divided into rooms, by its file.
    Root(String),
}

/// Every use between two homes, by user and used.
type Arrows<'a> = BTreeMap<(Home, Home), Vec<&'a Use>>;

/// Compares the table with the tree.
pub fn check(tree: &Tree, modules: &Modules, uses: &[Use]) -> Outcome {
    let page = tree.files.get(PAGE).and_then(|file| file.text.as_deref()).unwrap_or_default();
    let (table, mut findings) = Table::read(page);
    let (homes, mut unfit) = homes(tree, modules, &table);
    let arrows = arrows(&homes, uses);
    for ((from, to), places) in &arrows {
        findings.extend(forbidden(&table, from, to, places));
    }
    findings.append(&mut unfit);
    findings.extend(unused(&table, &homes, &arrows));
    let is_between_rooms = |(from, to): &&(Home, Home)| matches!((from, to), (Home::Room(_), Home::Room(_)));
    Outcome { findings, rooms: table.rooms.len(), arrows: arrows.keys().filter(is_between_rooms).count() }
}

/// The home of every module that is compiled without tests, and findings of rooms that only the tree or only the table has.
fn homes(tree: &Tree, modules: &Modules, table: &Table) -> (BTreeMap<usize, Home>, Vec<String>) {
    let mut homes = BTreeMap::new();
    let mut findings = BTreeSet::new();
    for (index, module) in modules.all.iter().enumerate().filter(|(_, module)| module.is_shipped()) {
        let package = &tree.packages[module.package].folder;
        let home = match table.room_of(&module.file, package) {
            Some(room) => Home::Room(room),
            None if modules.all[modules.target(index)].file == module.file => Home::Root(module.file.clone()),
            None => {
                let room = top_level(&module.file, package);
                findings.insert(format!("{room} is a room that {PAGE} does not list"));
                Home::Unlisted(room)
            }
        };
        homes.insert(index, home);
    }
    let is_empty = |room: &usize| !homes.values().any(|home| *home == Home::Room(*room));
    let empty = (0..table.rooms.len()).filter(is_empty);
    findings.extend(empty.map(|room| format!("{PAGE}:{}: no module is in {}", table.rooms[room].line, table.rooms[room].path)));
    (homes, findings.into_iter().collect())
}

/// `package/src/name` of a file in the top-level module `name`.
fn top_level(file: &str, package: &str) -> String {
    let inside = file.strip_prefix(package).unwrap_or(file);
    let end = inside.match_indices('/').nth(2).map_or(inside.len(), |(slash, _)| slash);
    let path = &file[..file.len() - inside.len() + end];
    path.strip_suffix(".rs").unwrap_or(path).to_owned()
}

fn arrows<'a>(homes: &BTreeMap<usize, Home>, uses: &'a [Use]) -> Arrows<'a> {
    let mut arrows = Arrows::new();
    for one in uses {
        let (Some(from), Some(to)) = (homes.get(&one.user), homes.get(&one.used)) else { continue };
        // The wiring may use all, and the name of a package alone is no use of its root.
        let is_wiring = matches!(from, Home::Root(_)) || (one.item.is_none() && matches!(to, Home::Root(_)));
        if from != to && !is_wiring {
            arrows.entry((from.clone(), to.clone())).or_default().push(one);
        }
    }
    arrows
}

/// What is wrong with an arrow of the tree.
fn forbidden(table: &Table, from: &Home, to: &Home, places: &[&Use]) -> Option<String> {
    // A room that the table lacks is a finding of its own.
    let Home::Room(from) = from else { return None };
    let first = places.first()?;
    let room = &table.rooms[*from];
    let at = at(places);
    match to {
        Home::Room(to) if room.may_use.iter().any(|allowed| allowed.rooms.contains(to)) => None,
        Home::Room(to) => {
            let allowed: Vec<&str> = room.may_use.iter().map(|allowed| allowed.text.as_str()).collect();
            let allowed = if allowed.is_empty() { "nothing".to_owned() } else { allowed.join(", ") };
            Some(format!("{at}: room {} may not use room {} (allowed: {allowed})", room.path, table.rooms[*to].path))
        }
        Home::Root(file) => {
            let item = first.item.as_deref().unwrap_or_default();
            Some(format!("{at}: room {} may not use {item} of {file}: the root of a package is for wiring", room.path))
        }
        Home::Unlisted(_) => None,
    }
}

/// The first place and how many more there are.
fn at(places: &[&Use]) -> String {
    match places {
        [] => String::new(),
        [only] => format!("{}:{}", only.file, only.line),
        [first, more @ ..] => format!("{}:{} and {} more", first.file, first.line, more.len()),
    }
}

/// Arrows that the table allows and the tree does not have.
fn unused(table: &Table, homes: &BTreeMap<usize, Home>, arrows: &Arrows) -> Vec<String> {
    let mut findings = Vec::new();
    // Of a room that is not there that alone is said.
    let is_there = |room: &usize| homes.values().any(|home| *home == Home::Room(*room));
    for (index, room) in table.rooms.iter().enumerate().filter(|(index, _)| is_there(index)) {
        for allowed in &room.may_use {
            let is_used = |to: &usize| arrows.contains_key(&(Home::Room(index), Home::Room(*to)));
            if !allowed.rooms.iter().any(is_used) {
                findings.push(format!("{PAGE}:{}: {} may use {}, and does not", room.line, room.path, allowed.text));
            }
        }
    }
    findings
}

/// The arrows of the tree as rows of the table, with the places of those that the table does not allow.
pub fn shown(tree: &Tree, modules: &Modules, uses: &[Use]) -> String {
    let page = tree.files.get(PAGE).and_then(|file| file.text.as_deref()).unwrap_or_default();
    let (table, _) = Table::read(page);
    let (homes, _) = homes(tree, modules, &table);
    let arrows = arrows(&homes, uses);
    let name = |home: &Home| match home {
        Home::Room(room) => table.short(*room).to_owned(),
        Home::Unlisted(path) | Home::Root(path) => path.clone(),
    };
    let mut rows = String::new();
    for home in homes.values().filter(|home| !matches!(home, Home::Root(_))).collect::<BTreeSet<_>>() {
        let path = match home {
            Home::Room(room) => &table.rooms[*room].path,
            Home::Unlisted(path) | Home::Root(path) => path,
        };
        let used: Vec<_> = arrows.iter().filter(|((from, _), _)| from == home).collect();
        let names: Vec<String> = used.iter().map(|((_, to), _)| format!("`{}`", name(to))).collect();
        let names = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
        rows += &format!("| `{path}` | {names} |\n");
        for ((from, to), places) in used {
            if forbidden(&table, from, to, places).is_some() || !matches!((from, to), (Home::Room(_), Home::Room(_))) {
                rows += &format!("    {}: {}\n", name(to), at(places));
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::{manifest, planted};
    use crate::tidy::uses;

    const ROWS: [&str; 5] = [
        "| `app/src/show/` | the pages | `numbers`, `format` |",
        "| `app/src/numbers/` | the numbers | `low/*` |",
        "| `app/format/` | the format | nothing |",
        "| `low/src/kind.rs` | kinds | nothing |",
        "| `low/src/shape.rs` | shapes | nothing |",
    ];
    const FILES: [(&str, &str); 10] = [
        ("app/src/lib.rs", "mod numbers;\nmod show;\npub use show::Page;\npub fn run() { numbers::count() }\n"),
        ("app/src/main.rs", "fn main() { app::run() }\n"),
        ("app/src/show/mod.rs", "use crate::numbers::count;\nuse format::Format;\npub struct Page;\n"),
        ("app/src/numbers/mod.rs", "use low::Kind;\npub fn count() {}\n#[cfg(test)]\nmod tests { use crate::show; }\n"),
        ("app/tests/all.rs", "use low::Kind;\nuse format::Format;\n"),
        ("app/format/src/lib.rs", "mod inner;\npub use inner::Format;\n"),
        ("app/format/src/inner.rs", "pub struct Format;\n"),
        ("low/src/lib.rs", "mod kind;\npub mod shape;\npub use kind::Kind;\n"),
        ("low/src/kind.rs", "pub struct Kind;\n"),
        ("low/src/shape.rs", "\n"),
    ];

    fn page(rows: &[&str]) -> String {
        let head = "<!-- rooms: checked by cargo xtask tidy -->\n| room | what is in it | may use |\n|---|---|---|\n";
        format!("{head}{}\n<!-- end of rooms -->\n", rows.join("\n"))
    }

    /// What is found when these files and rows stand for the ones of the same name and room.
    fn outcome(files: &[(&str, &str)], rows: &[&str]) -> Outcome {
        let page = page(rows);
        let app = manifest("app", "format = { path = \"format\" }\nlow = { path = \"../low\" }");
        let format = manifest("format", "low = { path = \"../../low\" }");
        let low = manifest("low", "");
        let own = [
            ("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"app\", \"app/format\", \"low\"]\n"),
            (PAGE, page.as_str()),
            ("app/Cargo.toml", app.as_str()),
            ("app/format/Cargo.toml", format.as_str()),
            ("low/Cargo.toml", low.as_str()),
        ];
        let kept = FILES.iter().filter(|(name, _)| !files.iter().any(|(other, _)| other == name));
        let all: Vec<(&str, &[u8])> = own.iter().chain(kept).chain(files).map(|(name, text)| (*name, text.as_bytes())).collect();
        let planted = planted(&all);
        let modules = Modules::read(&planted.tree);
        assert_eq!(modules.findings, Vec::<String>::new());
        check(&planted.tree, &modules, &uses::between(&planted.tree, &modules))
    }

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        outcome(files, &ROWS).findings
    }

    #[test]
    fn a_tree_as_its_table_says_has_no_findings() {
        let outcome = outcome(&[], &ROWS);
        assert_eq!(outcome.findings, Vec::<String>::new());
        assert_eq!((outcome.rooms, outcome.arrows), (5, 3));
    }

    #[test]
    fn an_arrow_that_is_not_allowed_is_found_with_its_first_place() {
        let upward = [("app/src/numbers/mod.rs", "use low::Kind;\npub fn count() -> crate::show::Page {\n    crate::show::f()\n}\n")];
        let room = "room app/src/numbers may not use room app/src/show (allowed: low/*)";
        assert_eq!(found(&upward), [format!("app/src/numbers/mod.rs:2 and 1 more: {room}")]);
        // Over what the root exports.
        let hidden = [("app/src/numbers/mod.rs", "use low::Kind;\nuse crate::{Page, count as c};\n")];
        assert_eq!(found(&hidden)[0], format!("app/src/numbers/mod.rs:2: {room}"));
        // Between packages.
        let other = [("app/format/src/inner.rs", "pub struct Format(low::Kind);\n")];
        assert_eq!(found(&other), ["app/format/src/inner.rs:1: room app/format may not use room low/src/kind (allowed: nothing)"]);
    }

    #[test]
    fn the_root_of_a_package_is_for_wiring() {
        let upward = [("app/src/numbers/mod.rs", "use low::Kind;\npub fn count() { crate::run() }\n")];
        let finding =
            "app/src/numbers/mod.rs:2: room app/src/numbers may not use run of app/src/lib.rs: the root of a package is for wiring";
        assert_eq!(found(&upward), [finding]);
    }

    #[test]
    fn rooms_of_the_tree_and_of_the_table_are_the_same() {
        let new = [
            ("app/src/lib.rs", "mod new;\nmod numbers;\nmod show;\n"),
            ("app/src/new/mod.rs", "mod a;\nuse low::Kind;\n"),
            ("app/src/new/a.rs", ""),
        ];
        assert_eq!(found(&new), [format!("app/src/new is a room that {PAGE} does not list")]);
        let mut rows = ROWS.to_vec();
        rows.insert(3, "| `low/src/gone.rs` | | `kind` |");
        assert_eq!(outcome(&[], &rows).findings, [format!("{PAGE}:7: no module is in low/src/gone")]);
    }

    #[test]
    fn an_allowed_arrow_is_used() {
        let mut rows = ROWS;
        rows[0] = "| `app/src/show/` | the pages | `numbers`, `format`, `shape` |";
        assert_eq!(outcome(&[], &rows).findings, [format!("{PAGE}:4: app/src/show may use shape, and does not")]);
    }

    #[test]
    fn the_tree_is_shown_as_rows() {
        let page = page(&ROWS[1..]);
        let app = manifest("app", "");
        let planted = planted(&[
            ("Cargo.toml", b"[workspace]\nresolver = \"3\"\nmembers = [\"app\"]\n"),
            (PAGE, page.as_bytes()),
            ("app/Cargo.toml", app.as_bytes()),
            ("app/src/lib.rs", b"mod numbers;\nmod show;\n"),
            ("app/src/numbers.rs", b"\n"),
            ("app/src/show.rs", b"use crate::numbers;\n"),
        ]);
        let modules = Modules::read(&planted.tree);
        let shown = shown(&planted.tree, &modules, &uses::between(&planted.tree, &modules));
        assert_eq!(shown, "| `app/src/numbers` | nothing |\n| `app/src/show` | `numbers` |\n    numbers: app/src/show.rs:1\n");
    }
}
