//! Facts about a running kernel: symbols, BTF, tracepoints, modules, identity of the boot.
//!
//! Nothing here decides: what follows from the facts is `probes::plan`'s matter. No decision is ever made from the version string.

mod extract;
pub mod faults;
mod sources;
mod symbols;

pub use extract::{Wanted, extract};
pub use sources::Sources;
pub use symbols::{Symbol, Symbols};

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::btf::{self, Btf};
use super::command_line::{self, THREADED_IRQS};
use super::host::boot_id;
use super::proc_text::chosen;
use super::root::Root;

/// Longest file that is read; symbols and BTF of today's kernels have some MiB.
const FILE_MAX_BYTES: u64 = 256 << 20;

/// Why facts could not be read.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// A file that every kernel has could not be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: std::io::Error,
    },
    /// A file that ought to hold the kernel's symbols.
    #[error("{path} holds no kernel symbol: it ought to be the text of /proc/kallsyms (`address type name [module]` in each line)")]
    NoSymbols {
        /// The file.
        path: PathBuf,
    },
    /// A file that ought to hold the loaded modules.
    #[error("{path}, line {line}: not a line of /proc/modules (`name size uses ...`)")]
    NotModules {
        /// The file.
        path: PathBuf,
        /// Number of the line.
        line: usize,
    },
    /// A file could not be written.
    #[error("cannot write {path}: {error}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: std::io::Error,
    },
    /// BTF data that this reader does not understand.
    #[error("BTF of {of}: {error}")]
    Btf {
        /// `vmlinux` or a module's name.
        of: String,
        /// What is wrong with it.
        #[source]
        error: btf::BtfError,
    },
}

/// What is known of a kernel.
#[derive(Debug, Default)]
pub struct Facts {
    /// `uname -r`; for the reader only, never for a decision.
    pub release: String,
    /// Identity of this boot: equal on two processes of the same kernel.
    pub boot_id: String,
    /// The lockdown mode in force (`none`, `integrity`, `confidentiality`); `None` where the kernel does not tell.
    pub lockdown: Option<String>,
    /// Functions by name, as far as asked for.
    pub symbols: Symbols,
    /// Modules that are loaded.
    pub modules: HashSet<String>,
    /// BTF of the kernel itself.
    pub vmlinux: Option<Arc<Btf>>,
    /// BTF of modules, by module name.
    pub module_btf: BTreeMap<String, Btf>,
    /// Why BTF that exists was not used, one sentence each.
    pub btf_problems: Vec<String>,
    /// True when the kernel was started with `threadirqs`.
    pub threadirqs: bool,
    /// Tracepoint names from `events/` of tracefs; empty when it is not mounted.
    pub tracefs_events: HashSet<String>,
}

/// Whether something exists, where the sources may not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is there.
    Present,
    /// It is not there.
    Absent,
    /// No source tells.
    Unknown,
}

impl Facts {
    /// Reads what the kernel below `root` tells (`/` for the running one): the symbols for which `wanted_symbols` holds and the
    /// BTF of `vmlinux` and of `wanted_modules`.
    ///
    /// # Errors
    /// [`KernelError::Read`] when `/proc/kallsyms` is not readable. BTF that is missing or not understood is a fact
    /// ([`Facts::btf_problems`]), not an error.
    pub fn read(root: &Root, wanted_symbols: impl Fn(&str) -> bool, wanted_modules: &[&str]) -> Result<Self, KernelError> {
        Self::from_sources(&Sources::tree(root), wanted_symbols, wanted_modules)
    }

    /// As [`Facts::read`], from any sources.
    ///
    /// # Errors
    /// [`KernelError`] when the symbols cannot be read, or, from strict sources, when any file is missing or damaged.
    pub fn from_sources(sources: &Sources, wanted_symbols: impl Fn(&str) -> bool, wanted_modules: &[&str]) -> Result<Self, KernelError> {
        let kallsyms = &sources.kallsyms;
        let unreadable = |error| KernelError::Read { path: kallsyms.clone(), error };
        let file = open(kallsyms).map_err(unreadable)?;
        let is_wanted = |name: &str| wanted_symbols(name) || tracepoint_of(name).is_some_and(&wanted_symbols);
        let symbols = Symbols::read(std::io::BufReader::new(file), is_wanted).map_err(unreadable)?;
        if sources.is_strict && symbols.is_empty() {
            return Err(KernelError::NoSymbols { path: kallsyms.clone() });
        }
        let root = sources.root.as_ref();
        let text = |path: &str| root.and_then(|root| root.text(path));
        let modules = match (&sources.modules, root) {
            (Some(file), _) => modules_of_file(file)?,
            (None, Some(root)) => modules(root),
            (None, None) => symbols.modules().clone(),
        };
        let mut facts = Facts {
            release: text("proc/sys/kernel/osrelease").unwrap_or_default(),
            boot_id: root.and_then(boot_id).unwrap_or_default(),
            lockdown: text("sys/kernel/security/lockdown").and_then(|text| chosen(&text).map(str::to_owned)),
            threadirqs: root.is_some_and(|root| command_line::has(root, THREADED_IRQS)),
            symbols,
            modules,
            tracefs_events: root.map(tracefs_events).unwrap_or_default(),
            ..Facts::default()
        };
        facts.read_btf(sources, wanted_modules)?;
        Ok(facts)
    }

    fn read_btf(&mut self, sources: &Sources, wanted_modules: &[&str]) -> Result<(), KernelError> {
        // A file that was named by itself must be there; a tree may lack any.
        let is_named = sources.root.is_none();
        if let Some(path) = &sources.vmlinux {
            self.vmlinux = self.one_btf("vmlinux", path, sources.is_strict, is_named, None)?.map(Arc::new);
        }
        let in_tree = sources.root.iter().flat_map(|root| {
            let directory = root.path("sys/kernel/btf");
            wanted_modules.iter().map(move |module| ((*module).to_owned(), directory.join(module)))
        });
        for (module, path) in in_tree.chain(sources.module_btf.iter().cloned()) {
            let base = self.vmlinux.clone();
            if let Some(btf) = self.one_btf(&module, &path, sources.is_strict, is_named, base)? {
                self.module_btf.insert(module, btf);
            }
        }
        Ok(())
    }

    fn one_btf(
        &mut self,
        name: &str,
        path: &Path,
        is_strict: bool,
        is_named: bool,
        base: Option<Arc<Btf>>,
    ) -> Result<Option<Btf>, KernelError> {
        let read = match bytes_of(path) {
            Ok(bytes) => Btf::parse(bytes, base).map(Some).map_err(|error| KernelError::Btf { of: name.to_owned(), error }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !is_named => Ok(None),
            Err(error) => Err(KernelError::Read { path: path.to_owned(), error }),
        };
        match read {
            Err(error) if !is_strict => {
                self.btf_problems.push(error.to_string());
                Ok(None)
            }
            read => read,
        }
    }

    /// The BTF that describes `module`, or the kernel's own where the module has none.
    pub fn btf_of(&self, module: Option<&str>) -> Option<&Btf> {
        module.and_then(|module| self.module_btf.get(module)).or(self.vmlinux.as_deref())
    }

    /// Whether the kernel has the tracepoint: from BTF, else from its symbols, else from tracefs.
    pub fn tracepoint(&self, name: &str) -> Presence {
        if self.symbols.has(&format!("__traceiter_{name}"))
            || self.symbols.has(&format!("__tracepoint_{name}"))
            || self.tracefs_events.contains(name)
        {
            return Presence::Present;
        }
        let Some(btf) = &self.vmlinux else {
            // A kernel that shows one iterator of a tracepoint shows all (since 5.10).
            let is_told = !self.tracefs_events.is_empty() || self.symbols.has("__traceiter_sched_switch");
            return if is_told { Presence::Absent } else { Presence::Unknown };
        };
        if btf.has_typedef(&format!("btf_trace_{name}")) { Presence::Present } else { Presence::Absent }
    }
}

/// `__traceiter_NAME` and `__tracepoint_NAME` → `NAME`.
fn tracepoint_of(symbol: &str) -> Option<&str> {
    symbol.strip_prefix("__traceiter_").or_else(|| symbol.strip_prefix("__tracepoint_"))
}

fn modules(root: &Root) -> HashSet<String> {
    let Some(text) = root.text("proc/modules") else { return HashSet::new() };
    text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Opens a file about a kernel, for at most [`FILE_MAX_BYTES`]. A pipe would block for ever and a device may never end: both are refused.
fn open(path: &Path) -> std::io::Result<impl std::io::Read> {
    use std::io::Read;
    let refused = |why: String| std::io::Error::new(std::io::ErrorKind::InvalidInput, why);
    let file = std::fs::metadata(path)?;
    if !file.is_file() {
        return Err(refused("it is not a regular file".to_owned()));
    }
    if file.len() > FILE_MAX_BYTES {
        return Err(refused(format!("it is longer than {} MiB, which no kernel's is", FILE_MAX_BYTES >> 20)));
    }
    Ok(std::fs::File::open(path)?.take(FILE_MAX_BYTES))
}

fn bytes_of(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut open(path)?, &mut bytes)?;
    Ok(bytes)
}

fn modules_of_file(path: &Path) -> Result<HashSet<String>, KernelError> {
    let unreadable = |error| KernelError::Read { path: path.to_owned(), error };
    let text =
        String::from_utf8(bytes_of(path).map_err(unreadable)?).map_err(|_| KernelError::NotModules { path: path.to_owned(), line: 1 })?;
    let name = |(index, line): (usize, &str)| {
        let mut words = line.split_whitespace();
        let (name, size) = (words.next(), words.next());
        let is_size = size.is_some_and(|size| size.parse::<u64>().is_ok());
        name.filter(|_| is_size).map(str::to_owned).ok_or_else(|| KernelError::NotModules { path: path.to_owned(), line: index + 1 })
    };
    text.lines().enumerate().map(name).collect()
}

fn tracefs_events(root: &Root) -> HashSet<String> {
    let names = |directory: PathBuf| {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let tracefs = ["sys/kernel/tracing/events", "sys/kernel/debug/tracing/events"];
    let categories = tracefs.iter().map(|path| names(root.path(path))).find(|categories| !categories.is_empty()).unwrap_or_default();
    let events = categories.into_iter().flat_map(names);
    events.filter_map(|path| path.file_name().map(|name| name.to_string_lossy().into_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fixture::Tree;

    #[test]
    fn facts_are_read_below_a_root() {
        let tree = Tree::new();
        let write = |path: &str, text: &str| tree.write(path, text);
        write(
            "proc/kallsyms",
            "ffffffff81000000 T __traceiter_sched_waking\nffffffffc0001000 t rxe_cq_post\t[rdma_rxe]\nffffffff81000010 T other\n",
        );
        write("proc/modules", "rdma_rxe 1 0 - Live 0x0\nib_uverbs 1 0 - Live 0x0\n");
        write("proc/sys/kernel/random/boot_id", "b0\n");
        write("proc/cmdline", "quiet threadirqs nothreadirqs=1\n");
        write("sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
        write("sys/kernel/tracing/events/irq/tasklet_entry/id", "1\n");
        let facts = Facts::read(&tree.root(), |name| name == "rxe_cq_post" || name == "sched_waking", &["rdma_rxe"]).expect("facts");
        assert_eq!((facts.boot_id.as_str(), facts.lockdown.as_deref()), ("b0", Some("integrity")));
        assert!(facts.modules.contains("rdma_rxe") && facts.symbols.has("rxe_cq_post") && !facts.symbols.has("other"));
        assert!(facts.threadirqs);
        assert_eq!(facts.tracepoint("sched_waking"), Presence::Present);
        assert_eq!(facts.tracepoint("tasklet_entry"), Presence::Present);
        assert_eq!(facts.tracepoint("napi_poll"), Presence::Absent);
        assert!(facts.vmlinux.is_none());
    }

    #[test]
    fn a_missing_kallsyms_is_an_error() {
        assert!(matches!(Facts::read(&Tree::new().root(), |_| true, &[]), Err(KernelError::Read { .. })));
    }
}
