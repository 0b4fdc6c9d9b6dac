//! What each module uses of others.
//!
//! A use goes to the module in which the used thing is found. The path is followed as it is written; a name that one of
//! the user's own parents, or the root of a crate, only imports or exports again is followed to where that import leads,
//! so that a parent cannot hide what its children take from each other. A name that any other module exports again is
//! that module's own. What has no path is not seen: a method call on a value, a field of a type that is never named.

use super::modules::Modules;
use super::source::Import;
use super::tree::{Kind, Package, Tree};
use std::collections::HashMap;

/// A place where one module names something of another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Use {
    pub file: String,
    pub line: usize,
    pub user: usize,
    pub used: usize,
    /// The name that is used in that module; `None` when the module itself is meant.
    pub item: Option<String>,
}

/// The uses between modules that are compiled without tests, a module's uses of itself left out.
pub fn between(tree: &Tree, modules: &Modules) -> Vec<Use> {
    let resolver = Resolver::new(modules, &tree.packages);
    let mut uses = Vec::new();
    for (user, module) in modules.all.iter().enumerate().filter(|(_, module)| module.is_shipped()) {
        let mut add = |found: Option<Found>, line: usize| {
            if let Some(found) = found.filter(|found| found.module != user) {
                uses.push(Use { file: module.file.clone(), line, user, used: found.module, item: found.item });
            }
        };
        for import in &module.scope.imports {
            add(resolver.path(user, user, &import.path, Some(import), 0), import.line);
        }
        for used in &module.scope.paths {
            add(resolver.path(user, user, &used.path, None, 0), used.line);
        }
    }
    uses.sort();
    uses.dedup();
    uses
}

/// Where a path ends.
struct Found {
    module: usize,
    /// The name of an item in the module, when the path goes beyond the module.
    item: Option<String>,
}

/// How many imports of imports are followed.
const MAX_STEPS: usize = 16;

/// Finds what paths mean.
struct Resolver<'a> {
    modules: &'a Modules,
    packages: &'a [Package],
    /// The root module of each package's library, by the package's name.
    libraries: HashMap<&'a str, usize>,
}

impl<'a> Resolver<'a> {
    fn new(modules: &'a Modules, packages: &'a [Package]) -> Self {
        let roots = modules.all.iter().enumerate().filter(|(_, module)| module.parent.is_none() && module.kind == Kind::Library);
        let libraries = roots.map(|(index, module)| (packages[module.package].name.as_str(), index)).collect();
        Self { modules, packages, libraries }
    }

    /// Where a path leads that is written in `at`, for the benefit of `user`. `own` is the import that the path is of.
    fn path(&self, user: usize, at: usize, path: &[String], own: Option<&Import>, steps: usize) -> Option<Found> {
        let (first, mut rest) = path.split_first()?;
        let mut found = Found { module: at, item: None };
        match first.as_str() {
            "" => {
                let (name, after) = rest.split_first()?;
                found.module = self.library(at, name)?;
                rest = after;
            }
            "crate" => found.module = self.modules.target(at),
            "self" => {}
            "super" => found.module = self.modules.all[at].parent?,
            name => match self.named(user, at, name, own, steps) {
                Some(named) => found = named,
                None if rest.is_empty() && own.is_none() => return None,
                None => found.module = self.library(at, name)?,
            },
        }
        for segment in rest {
            if found.item.is_some() {
                break;
            }
            if segment == "super" {
                found.module = self.modules.all[found.module].parent?;
            } else if segment != "self" {
                found = self.member(user, found.module, segment, steps)?;
            }
        }
        Some(found)
    }

    /// What a name after `::` means. Something that cannot be found is taken as an item of the module.
    fn member(&self, user: usize, module: usize, name: &str, steps: usize) -> Option<Found> {
        let is_open = self.modules.all[module].parent.is_none() || self.modules.line(user).any(|above| above == module);
        if is_open {
            let imported = self.modules.all[module].scope.imports.iter().any(|import| import.name.as_deref() == Some(name));
            let named = self.named(user, module, name, None, steps);
            // An import of something outside of the workspace.
            if named.is_none() && imported {
                return None;
            }
            return Some(named.unwrap_or(Found { module, item: Some(name.to_owned()) }));
        }
        match self.modules.all[module].children.get(name) {
            Some(child) => Some(Found { module: *child, item: None }),
            None => Some(Found { module, item: Some(name.to_owned()) }),
        }
    }

    /// What a name means that is in scope in `at`: a child, something defined there, an import, something of a glob.
    fn named(&self, user: usize, at: usize, name: &str, own: Option<&Import>, steps: usize) -> Option<Found> {
        let module = &self.modules.all[at];
        if let Some(child) = module.children.get(name) {
            return Some(Found { module: *child, item: None });
        }
        if module.scope.items.contains(name) {
            return Some(Found { module: at, item: Some(name.to_owned()) });
        }
        if steps == MAX_STEPS {
            return None;
        }
        let is_own = |import: &Import| own.is_some_and(|own| std::ptr::eq(own, import));
        let others = || module.scope.imports.iter().filter(|import| !is_own(import));
        if let Some(import) = others().find(|import| import.name.as_deref() == Some(name)) {
            return self.path(user, at, &import.path, Some(import), steps + 1);
        }
        // The prelude's names and other crates' are searched for in vain.
        others().filter(|import| import.name.is_none()).find_map(|glob| {
            let from = self.path(user, at, &glob.path, Some(glob), steps + 1)?;
            let is_elsewhere = from.item.is_none() && from.module != at;
            if is_elsewhere { self.named(user, from.module, name, None, steps + 1) } else { None }
        })
    }

    /// The library of the workspace that a package knows by this name.
    fn library(&self, at: usize, name: &str) -> Option<usize> {
        let package = &self.packages[self.modules.all[at].package];
        package.dependencies.get(name).and_then(|package| self.libraries.get(package.as_str())).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::{manifest, planted};

    /// The uses of a planted tree, as `user → used::item`. `top` depends on `low-level`.
    fn uses(files: &[(&str, &str)]) -> Vec<String> {
        let workspace = [
            ("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"top\", \"low\"]\n".to_owned()),
            (
                "top/Cargo.toml",
                manifest("top", "low-level = { path = \"../low\" }\nrenamed = { package = \"low-level\", path = \"../low\" }"),
            ),
            ("low/Cargo.toml", manifest("low-level", "")),
        ];
        let written = workspace.iter().map(|(name, text)| (*name, text.as_bytes()));
        let planted = planted(&written.chain(files.iter().map(|(name, text)| (*name, text.as_bytes()))).collect::<Vec<_>>());
        let modules = Modules::read(&planted.tree);
        assert_eq!(modules.findings, Vec::<String>::new());
        let mut shown: Vec<String> = Vec::new();
        for one in between(&planted.tree, &modules) {
            let item = one.item.map(|item| format!("::{item}")).unwrap_or_default();
            let (user, used) = (&modules.all[one.user].file, &modules.all[one.used].file);
            shown.push(format!("{user}:{} → {used}{item}", one.line));
        }
        shown
    }

    const LOW: [(&str, &str); 3] = [
        ("low/src/lib.rs", "pub mod kind;\nmod shape;\npub use kind::Kind;\npub use shape::*;\n"),
        ("low/src/kind.rs", "pub enum Kind { A }\n"),
        ("low/src/shape.rs", "pub struct Shape;\n"),
    ];

    fn uses_of_top(files: &[(&str, &str)]) -> Vec<String> {
        let all: Vec<_> = LOW.iter().chain(files).copied().collect();
        uses(&all).into_iter().filter(|shown| !shown.starts_with("low/src/lib.rs")).collect()
    }

    #[test]
    fn paths_are_seen_wherever_they_are_written() {
        let a = "//! `crate::b` in a comment is no use.\n\
            fn f(x: crate::b::Type) -> u8 {\n\
            crate::b::g(1);\n\
            println!(\"{}\", crate::b::h(2));\n\
            match 3 { crate::b::LIMIT => 1, _ => 2 }\n\
            }\n\
            #[serde(with = \"crate::b::text\")]\n\
            struct S;\n\
            fn local() { use super::b as other; other::i(); }\n\
            impl crate::b::Trait for S {}\n";
        let found = uses_of_top(&[("top/src/lib.rs", "mod a;\nmod b;\n"), ("top/src/a.rs", a), ("top/src/b.rs", "")]);
        assert_eq!(
            found,
            [
                "top/src/a.rs:2 → top/src/b.rs::Type",
                "top/src/a.rs:3 → top/src/b.rs::g",
                "top/src/a.rs:4 → top/src/b.rs::h",
                "top/src/a.rs:5 → top/src/b.rs::LIMIT",
                "top/src/a.rs:7 → top/src/b.rs::text",
                "top/src/a.rs:9 → top/src/b.rs",
                "top/src/a.rs:9 → top/src/b.rs::i",
                "top/src/a.rs:10 → top/src/b.rs::Trait",
            ]
        );
    }

    #[test]
    fn use_trees_are_taken_apart() {
        let a = "use crate::{\n    b::{self, c::{One, Two as Three}},\n    d::*,\n};\nuse self::inner::x;\nmod inner { pub fn x() { super::super::d::y() } }\n";
        let found = uses_of_top(&[
            ("top/src/lib.rs", "mod a;\nmod b;\nmod d;\n"),
            ("top/src/a.rs", a),
            ("top/src/b.rs", "pub mod c;\n"),
            ("top/src/b/c.rs", ""),
            ("top/src/d/mod.rs", ""),
        ]);
        assert_eq!(
            found,
            [
                "top/src/a.rs:2 → top/src/b.rs",
                "top/src/a.rs:2 → top/src/b/c.rs::One",
                "top/src/a.rs:2 → top/src/b/c.rs::Two",
                "top/src/a.rs:3 → top/src/d/mod.rs",
                "top/src/a.rs:5 → top/src/a.rs::x",
                "top/src/a.rs:6 → top/src/d/mod.rs::y",
            ]
        );
    }

    #[test]
    fn libraries_have_the_names_of_the_manifest() {
        let a = "use low_level::Kind;\nfn f() -> renamed::Shape { ::low_level::kind::g() }\nfn g() { std::low_level::x(); libc::y() }\n";
        let found = uses_of_top(&[("top/src/lib.rs", "mod a;\n"), ("top/src/a.rs", a), ("top/src/main.rs", "use top::f;\n")]);
        // What a root exports again is found where it is.
        assert_eq!(
            found,
            [
                "top/src/a.rs:1 → low/src/kind.rs::Kind",
                "top/src/a.rs:2 → low/src/kind.rs::g",
                "top/src/a.rs:2 → low/src/shape.rs::Shape",
                "top/src/main.rs:1 → top/src/lib.rs::f",
            ]
        );
    }

    #[test]
    fn a_parent_hides_nothing_and_a_neighbour_owns_what_it_exports() {
        let files = [
            ("top/src/lib.rs", "mod a;\nmod b;\nuse a::one::One;\n"),
            ("top/src/a/mod.rs", "mod one;\nmod two;\npub use one::One;\nuse crate::b;\nstruct Own;\n"),
            ("top/src/a/one.rs", "pub struct One;\n"),
            // Over the parent's export, over its glob, over its import; its own item.
            ("top/src/a/two.rs", "use super::One;\nuse super::*;\nfn f(_: Own) { b::g(); small(); let small = 1; }\n"),
            ("top/src/b.rs", "use crate::a::One;\nuse crate::One as Again;\n"),
        ];
        let found: Vec<String> = uses_of_top(&files)
            .into_iter()
            .filter(|shown| !shown.starts_with("top/src/lib.rs") && !shown.starts_with("top/src/a/mod.rs"))
            .collect();
        assert_eq!(
            found,
            [
                "top/src/a/two.rs:1 → top/src/a/one.rs::One",
                "top/src/a/two.rs:2 → top/src/a/mod.rs",
                "top/src/a/two.rs:3 → top/src/a/mod.rs::Own",
                "top/src/a/two.rs:3 → top/src/b.rs::g",
                "top/src/b.rs:1 → top/src/a/mod.rs::One",
                "top/src/b.rs:2 → top/src/a/one.rs::One",
            ]
        );
    }

    #[test]
    fn tests_use_what_they_like() {
        let a = "#[cfg(test)]\nuse crate::b;\n#[cfg(all(test, unix))]\nmod tests { use crate::b::x; }\n#[cfg(test)]\nmod more;\n\
            #[cfg(any(test, feature = \"x\"))]\nfn f() { crate::b::y() }\n#[test]\nfn g() { crate::b::z() }\n\
            impl S { #[cfg(test)] fn h() { crate::b::z() } }\n";
        let found = uses_of_top(&[
            ("top/src/lib.rs", "mod a;\nmod b;\n"),
            ("top/src/a.rs", a),
            ("top/src/a/more.rs", "use crate::b::x;\n"),
            ("top/src/b.rs", ""),
            ("top/tests/all.rs", "use top::b;\nuse low_level::Kind;\n"),
            ("top/build.rs", "use low_level::Kind;\n"),
        ]);
        assert_eq!(found, ["top/src/a.rs:8 → top/src/b.rs::y"]);
    }
}
