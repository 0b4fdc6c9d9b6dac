//! `/proc/kallsyms`: which function exists, in which module, once or several times.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::BufRead;

/// One function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its address; `None` when the kernel hides addresses from this user.
    pub address: Option<u64>,
    /// Its module; `None` for the kernel image.
    pub module: Option<String>,
}

/// Functions by name.
#[derive(Debug, Default)]
pub struct Symbols {
    by_name: HashMap<String, Vec<Symbol>>,
    /// Names of copies that the compiler made (`name.constprop.0`), by the name that is wanted.
    copies: HashMap<String, BTreeSet<String>>,
    modules: HashSet<String>,
    is_empty: bool,
}

/// The parts of a line of `/proc/kallsyms`.
pub(super) struct Line<'l> {
    pub(super) address: u64,
    pub(super) kind: &'l str,
    pub(super) name: &'l str,
    pub(super) module: Option<&'l str>,
}

impl<'l> Line<'l> {
    /// `None` for what is not a symbol.
    pub(super) fn of(line: &'l str) -> Option<Self> {
        let mut fields = line.split_whitespace();
        let (address, kind, name) = (fields.next()?, fields.next()?, fields.next()?);
        let address = u64::from_str_radix(address, 16).ok().filter(|_| kind.len() == 1)?;
        Some(Line { address, kind, name, module: fields.next().map(|module| module.trim_matches(['[', ']'])) })
    }

    /// A function, or a tracepoint's object.
    fn counts(&self) -> bool {
        matches!(self.kind, "t" | "T" | "w" | "W") || self.name.starts_with("__tracepoint_")
    }
}

/// `name.constprop.0` → `name`.
pub(super) fn copied_from(name: &str) -> Option<&str> {
    let (stem, rest) = name.split_once('.')?;
    ["constprop", "isra", "part"].iter().any(|word| rest.starts_with(word)).then_some(stem)
}

impl Symbols {
    /// Reads the lines of `/proc/kallsyms`, keeping functions (and tracepoint objects) whose name is wanted.
    ///
    /// # Errors
    /// What the reader said. A line that is not a symbol is left out.
    pub fn read(lines: impl BufRead, is_wanted: impl Fn(&str) -> bool) -> std::io::Result<Self> {
        let mut symbols = Symbols { is_empty: true, ..Symbols::default() };
        let mut lines = lines;
        let mut text = String::new();
        while {
            text.clear();
            lines.read_line(&mut text)? != 0
        } {
            let Some(line) = Line::of(&text) else { continue };
            symbols.is_empty = false;
            if let Some(module) = line.module.filter(|module| !symbols.modules.contains(*module)) {
                symbols.modules.insert(module.to_owned());
            }
            if !line.counts() {
                continue;
            }
            if is_wanted(line.name) {
                let address = Some(line.address).filter(|address| *address != 0);
                let symbol = Symbol { address, module: line.module.map(str::to_owned) };
                symbols.by_name.entry(line.name.to_owned()).or_default().push(symbol);
            } else if let Some(stem) = copied_from(line.name).filter(|stem| is_wanted(stem)) {
                symbols.copies.entry(stem.to_owned()).or_default().insert(line.name.to_owned());
            }
        }
        Ok(symbols)
    }

    /// True when no line was a symbol.
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Every module that has a symbol.
    pub fn modules(&self) -> &HashSet<String> {
        &self.modules
    }

    /// A copy of that function that the compiler made; it is not the function.
    pub fn copy_of(&self, name: &str) -> Option<&str> {
        self.copies.get(name)?.first().map(String::as_str)
    }

    /// Whether the name exists anywhere.
    pub fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Every function of that name in `module`, or in the kernel image (a driver that is built in).
    pub fn of(&self, name: &str, module: Option<&str>) -> Vec<&Symbol> {
        let all = self.by_name.get(name).map(Vec::as_slice).unwrap_or_default();
        all.iter().filter(|symbol| symbol.module.is_none() || symbol.module.as_deref() == module).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
ffffffffc0a01000 t do_work\t[rdma_rxe]
ffffffffc0b01000 t do_work\t[other]
ffffffffc0a02000 t do_complete\t[rdma_rxe]
ffffffffc0a03000 t do_complete\t[rdma_rxe]
ffffffff81000000 T plain
ffffffff81000001 d data
not a line
0000000000000000 T hidden
";

    #[test]
    fn a_function_is_found_by_module() {
        let symbols = Symbols::read(TEXT.as_bytes(), |_| true).expect("reads");
        assert_eq!(symbols.of("do_work", Some("rdma_rxe")).len(), 1);
        assert_eq!(symbols.of("do_work", Some("rdma_rxe"))[0].address, Some(0xffff_ffff_c0a0_1000));
        assert_eq!(symbols.of("do_complete", Some("rdma_rxe")).len(), 2, "two of one name are not one");
        assert_eq!(symbols.of("plain", Some("rdma_rxe")).len(), 1, "a built-in driver");
        assert!(!symbols.has("data") && symbols.of("do_work", None).is_empty());
        assert_eq!(symbols.of("hidden", None)[0].address, None);
        assert!(symbols.modules().contains("other") && !symbols.is_empty());
    }

    #[test]
    fn a_compilers_copy_is_not_the_function_and_a_padding_twin_is_nothing() {
        let text = "ffffffffc0a01000 t read_it.constprop.0\t[m]\nffffffffc0a01010 t __pfx_post\t[m]\nffffffffc0a01020 t post.cold\t[m]\n";
        let symbols = Symbols::read(text.as_bytes(), |name| matches!(name, "read_it" | "post")).expect("reads");
        assert!(!symbols.has("read_it") && !symbols.has("post"));
        assert_eq!((symbols.copy_of("read_it"), symbols.copy_of("post")), (Some("read_it.constprop.0"), None));
        assert!(Symbols::read("no symbol here\n".as_bytes(), |_| true).expect("reads").is_empty());
    }
}
