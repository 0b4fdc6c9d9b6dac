//! `/proc/kallsyms`: which function exists, in which module, once or several times.

use std::collections::HashMap;
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
pub struct Symbols(HashMap<String, Vec<Symbol>>);

impl Symbols {
    /// Reads the lines of `/proc/kallsyms`, keeping functions (and tracepoint objects) whose name is wanted.
    ///
    /// # Errors
    /// What the reader said. A line that is not a symbol is left out.
    pub fn read(lines: impl BufRead, is_wanted: impl Fn(&str) -> bool) -> std::io::Result<Self> {
        let mut by_name: HashMap<String, Vec<Symbol>> = HashMap::new();
        let mut lines = lines;
        let mut line = String::new();
        while {
            line.clear();
            lines.read_line(&mut line)? != 0
        } {
            let mut fields = line.split_whitespace();
            let (Some(address), Some(kind), Some(name)) = (fields.next(), fields.next(), fields.next()) else { continue };
            let is_function = matches!(kind, "t" | "T" | "w" | "W");
            if !(is_function || name.starts_with("__tracepoint_")) || !is_wanted(name) {
                continue;
            }
            let address = u64::from_str_radix(address, 16).ok().filter(|address| *address != 0);
            let module = fields.next().map(|module| module.trim_matches(['[', ']']).to_owned());
            by_name.entry(name.to_owned()).or_default().push(Symbol { address, module });
        }
        Ok(Symbols(by_name))
    }

    /// Whether the name exists anywhere.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Every function of that name in `module`, or in the kernel image (a driver that is built in).
    pub fn of(&self, name: &str, module: Option<&str>) -> Vec<&Symbol> {
        let all = self.0.get(name).map(Vec::as_slice).unwrap_or_default();
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
    }
}
