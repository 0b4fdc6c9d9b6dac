//! The module trees of all targets: which files there are as modules, and what is below what.

use super::source::{self, Scope};
use super::tree::{Kind, Tree};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Every module of every target.
pub struct Modules {
    pub all: Vec<Module>,
    /// `mod` declarations without a file, and files that cannot be read as Rust.
    pub findings: Vec<String>,
}

/// A module: the root of a target, a file, or a block inside a file.
pub struct Module {
    /// Its name; the target's for a root.
    pub name: String,
    /// The file that holds it, relative to the root of the tree.
    pub file: String,
    pub parent: Option<usize>,
    pub children: BTreeMap<String, usize>,
    is_test: bool,
    pub kind: Kind,
    /// Its package, by its place in the tree's list.
    pub package: usize,
    /// What it says.
    pub scope: Arc<Scope>,
}

impl Module {
    /// Whether a library or a program has it without tests: what tests, examples, benches and build scripts use is nobody's
    /// arrow.
    pub fn is_shipped(&self) -> bool {
        !self.is_test && self.kind != Kind::Aside
    }
}

impl Modules {
    /// Reads the files of all targets, following their `mod` declarations.
    pub fn read(tree: &Tree) -> Self {
        let mut builder = Builder { parsed: parse_all(tree), modules: Self { all: Vec::new(), findings: Vec::new() } };
        for (index, package) in tree.packages.iter().enumerate() {
            for target in &package.targets {
                let place = Place { name: &target.name, package: index, kind: target.kind, parent: None, is_test: false };
                builder.file(&place, &target.file, true);
            }
        }
        builder.modules
    }

    /// The module and all that are above it, from the inside out.
    pub fn line(&self, module: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(module), |module| self.all[*module].parent)
    }

    /// The root of the target that a module belongs to.
    pub fn target(&self, module: usize) -> usize {
        self.line(module).last().unwrap_or(module)
    }
}

/// What reading a file gave: its content, or why there is none.
type Parsed = Result<Arc<Scope>, String>;

/// Reads every Rust file of the tree, on all CPUs.
fn parse_all(tree: &Tree) -> HashMap<String, Parsed> {
    let rust = tree.files.iter().filter(|(name, _)| name.ends_with(".rs"));
    let sources: Vec<(&String, &String)> = rust.filter_map(|(name, file)| Some((name, file.text.as_ref()?))).collect();
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let parse = |(name, text): (&String, &String)| {
        let parsed = source::read(text).map(Arc::new);
        (name.clone(), parsed.map_err(|error| format!("{name}:{}: not Rust: {error}", error.span().start().line)))
    };
    std::thread::scope(|scope| {
        let parts = (0..workers).map(|first| {
            let own: Vec<_> = sources.iter().copied().skip(first).step_by(workers).collect();
            scope.spawn(move || own.into_iter().map(parse).collect::<Vec<_>>())
        });
        let threads: Vec<_> = parts.collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    })
}

struct Builder {
    parsed: HashMap<String, Parsed>,
    modules: Modules,
}

/// What is known of a module before its file is read.
struct Place<'a> {
    name: &'a str,
    package: usize,
    kind: Kind,
    parent: Option<usize>,
    is_test: bool,
}

/// Where the files of a scope's modules are looked for.
struct Folders {
    /// The folder of `mod x;`.
    children: String,
    /// What `#[path = "…"]` is relative to.
    paths: String,
}

impl Builder {
    /// Adds a module in a file of its own and all below it. A file that names its folder (`mod.rs`, a target's root, the
    /// target of a `#[path]`) has its children beside it, any other in the folder of its name.
    fn file(&mut self, place: &Place, file: &str, names_its_folder: bool) -> Option<usize> {
        let scope = match self.parsed.get(file)? {
            Ok(scope) => scope.clone(),
            Err(error) => {
                self.modules.findings.push(error.clone());
                Arc::default()
            }
        };
        let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
        let children = if names_its_folder { folder } else { file.strip_suffix(".rs").unwrap_or(file) };
        let folders = Folders { children: children.to_owned(), paths: folder.to_owned() };
        Some(self.scope(place, file, scope, &folders))
    }

    fn scope(&mut self, place: &Place, file: &str, scope: Arc<Scope>, folders: &Folders) -> usize {
        let index = self.modules.all.len();
        self.modules.all.push(Module {
            name: place.name.to_owned(),
            file: file.to_owned(),
            parent: place.parent,
            children: BTreeMap::new(),
            is_test: place.is_test,
            kind: place.kind,
            package: place.package,
            scope: scope.clone(),
        });
        for declared in &scope.modules {
            let place = Place {
                name: &declared.name,
                parent: Some(index),
                is_test: place.is_test || declared.is_test,
                package: place.package,
                kind: place.kind,
            };
            let inside = format!("{}/{}", folders.children, declared.name);
            let child = match (&declared.inline, &declared.path) {
                (Some(inline), folder) => {
                    let inside = folder.as_ref().map_or(inside, |folder| joined(&folders.paths, folder));
                    Some(self.scope(&place, file, inline.clone(), &Folders { children: inside.clone(), paths: inside }))
                }
                (None, Some(path)) => self.file(&place, &joined(&folders.paths, path), true),
                (None, None) => {
                    let alone = self.file(&place, &format!("{inside}.rs"), false);
                    alone.or_else(|| self.file(&place, &format!("{inside}/mod.rs"), true))
                }
            };
            match child {
                Some(child) => {
                    self.modules.all[index].children.insert(declared.name.clone(), child);
                }
                None => self.modules.findings.push(format!("{file}: no file for `mod {}`", declared.name)),
            }
        }
        index
    }
}

/// A relative path seen from a folder, without `..`.
pub fn joined(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::{manifest, planted};
    use std::collections::BTreeSet;

    #[test]
    fn files_of_modules_are_found_where_the_compiler_looks() {
        let files = [
            ("src/lib.rs", "mod a;\nmod inline { mod b; }\n#[path = \"elsewhere/c.rs\"]\nmod c;\n"),
            ("src/a.rs", "mod inner;\n#[path = \"a_tests.rs\"]\nmod tests;\n"),
            ("src/a/inner.rs", "mod block { mod deep; }\n"),
            ("src/a/inner/block/deep.rs", ""),
            ("src/a_tests.rs", "mod beside;\n"),
            ("src/beside.rs", ""),
            ("src/inline/b/mod.rs", ""),
            ("src/elsewhere/c.rs", "mod d;\n"),
            ("src/elsewhere/d.rs", ""),
            ("tests/vm/main.rs", "#[path = \"../support\"]\nmod support { mod s; }\n"),
            ("tests/support/s.rs", ""),
        ];
        let own = manifest("top", "");
        let package = [("Cargo.toml", own.as_str())];
        let files: Vec<_> = package.iter().chain(&files).map(|(name, text)| (*name, text.as_bytes())).collect();
        let modules = Modules::read(&planted(&files).tree);
        assert_eq!(modules.findings, Vec::<String>::new());
        let read: BTreeSet<&str> = modules.all.iter().map(|module| module.file.as_str()).collect();
        assert_eq!(read.len(), files.len() - 1);
    }

    #[test]
    fn what_cannot_be_read_is_found() {
        let planted =
            planted(&[("Cargo.toml", manifest("top", "").as_bytes()), ("src/lib.rs", b"mod a;\nmod gone;\n"), ("src/a.rs", b"fn f( {\n")]);
        let findings = Modules::read(&planted.tree).findings;
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(findings[0].starts_with("src/a.rs:1: not Rust: "), "{findings:?}");
        assert_eq!(findings[1], "src/lib.rs: no file for `mod gone`");
    }
}
