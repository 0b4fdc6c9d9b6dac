//! An extract of a kernel: a small tree of files from which the same plan follows, for tests and for a machine that is not here.
//!
//! Addresses are replaced by counted ones, so that an extract tells nothing about the memory of the machine that it is of.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use super::symbols::{Line, copied_from};
use super::{KernelError, tracepoint_of};
use crate::machine::btf::{Btf, Keep, reduce};
use crate::machine::command_line::{self, THREADED_IRQS};
use crate::machine::root::Root;

/// First address of an extract.
const FIRST_ADDRESS: u64 = 0xffff_ffff_c000_0000;
const BTF_FOLDER: &str = "sys/kernel/btf";
/// Small files that are copied as they are.
const COPIED: [&str; 3] = ["proc/sys/kernel/osrelease", command_line::PATH, "sys/kernel/security/lockdown"];

/// What an extract keeps.
pub struct Wanted<'a> {
    /// Whether a symbol is kept.
    pub is_symbol: &'a dyn Fn(&str) -> bool,
    /// Modules whose BTF is kept, with what to keep of it.
    pub modules: Vec<(&'static str, Keep)>,
    /// What to keep of the kernel's own BTF.
    pub vmlinux: Keep,
}

/// Writes the extract of the kernel below `root` to the folder `to`. Returns the bytes written.
///
/// # Errors
/// [`KernelError`] when symbols or BTF cannot be read, or the folder cannot be written.
pub fn extract(root: &Root, to: &Path, wanted: &Wanted<'_>) -> Result<u64, KernelError> {
    let mut bytes = put(to, "proc/kallsyms", symbols(root, wanted.is_symbol)?.as_bytes())?;
    let modules = root.text("proc/modules").unwrap_or_default();
    bytes += put(to, "proc/modules", names(&modules).as_bytes())?;
    for path in COPIED {
        if let Some(text) = root.text(path) {
            // One word of the command line matters: the others may name disks and hosts.
            let text = if path != command_line::PATH {
                text
            } else if command_line::has(root, THREADED_IRQS) {
                THREADED_IRQS.to_owned()
            } else {
                String::new()
            };
            bytes += put(to, path, format!("{text}\n").as_bytes())?;
        }
    }
    let Some(kernel) = load(root, "vmlinux", None)?.map(Arc::new) else { return Ok(bytes) };
    let damaged = |of: &str| {
        let of = of.to_owned();
        move |error| KernelError::Btf { of, error }
    };
    let small = reduce(&kernel, &wanted.vmlinux, None).map_err(damaged("vmlinux"))?;
    bytes += put(to, &format!("{BTF_FOLDER}/vmlinux"), &small)?;
    let small_kernel = Btf::parse(small, None).map_err(damaged("vmlinux"))?;
    for (module, keep) in &wanted.modules {
        if let Some(btf) = load(root, module, Some(kernel.clone()))? {
            let small = reduce(&btf, keep, Some(&small_kernel)).map_err(damaged(module))?;
            bytes += put(to, &format!("{BTF_FOLDER}/{module}"), &small)?;
        }
    }
    Ok(bytes)
}

/// The lines of the symbols that are kept, with counted addresses; hidden ones stay hidden.
fn symbols(root: &Root, is_wanted: &dyn Fn(&str) -> bool) -> Result<String, KernelError> {
    let path = root.path("proc/kallsyms");
    let unreadable = |error| KernelError::Read { path: path.clone(), error };
    let mut kept = String::new();
    let mut next = FIRST_ADDRESS;
    for line in BufReader::new(File::open(&path).map_err(unreadable)?).lines() {
        let line = line.map_err(unreadable)?;
        let Some(line) = Line::of(&line) else { continue };
        let stem = line.name.strip_prefix("__pfx_").unwrap_or(line.name);
        let is_kept = is_wanted(line.name)
            || is_wanted(stem)
            || tracepoint_of(line.name).is_some_and(is_wanted)
            || copied_from(line.name).is_some_and(is_wanted);
        if is_kept {
            let address = if line.address == 0 { 0 } else { next };
            next += 16;
            // Writing to a string cannot fail.
            let _ = write!(kept, "{address:016x} {} {}", line.kind, line.name);
            let _ = match line.module {
                Some(module) => writeln!(kept, "\t[{module}]"),
                None => writeln!(kept),
            };
        }
    }
    if kept.is_empty() { Err(KernelError::NoSymbols { path }) } else { Ok(kept) }
}

/// `/proc/modules` without sizes and addresses.
fn names(modules: &str) -> String {
    let names = modules.lines().filter_map(|line| line.split_whitespace().next());
    names.map(|name| format!("{name} 0 0 - Live 0x0000000000000000\n")).collect()
}

fn load(root: &Root, name: &str, base: Option<Arc<Btf>>) -> Result<Option<Btf>, KernelError> {
    let path = root.path(BTF_FOLDER).join(name);
    match fs::read(&path) {
        Ok(bytes) => Btf::parse(bytes, base).map(Some).map_err(|error| KernelError::Btf { of: name.to_owned(), error }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(KernelError::Read { path, error }),
    }
}

fn put(folder: &Path, name: &str, bytes: &[u8]) -> Result<u64, KernelError> {
    let path = folder.join(name);
    let folder = path.parent().unwrap_or(folder);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(&path, bytes));
    written.map(|()| bytes.len() as u64).map_err(|error| KernelError::Write { path, error })
}
