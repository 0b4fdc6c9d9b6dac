//! Where facts about a kernel come from: a tree of files such as `/`, or files one by one, of a machine that is not here.

use super::super::root::Root;
use std::path::PathBuf;

/// The files of one kernel.
#[derive(Clone, Debug)]
pub struct Sources {
    pub(super) kallsyms: PathBuf,
    /// `None`: the modules that the symbols name.
    pub(super) modules: Option<PathBuf>,
    pub(super) vmlinux: Option<PathBuf>,
    pub(super) module_btf: Vec<(String, PathBuf)>,
    /// Where everything else lies, if it is known.
    pub(super) root: Option<Root>,
    /// True: a file that is damaged is an error, not a fact.
    pub(super) is_strict: bool,
}

impl Sources {
    /// A tree with `/proc` and `/sys`; `/` is the running kernel. Only `/proc/kallsyms` must be there.
    pub fn tree(root: impl Into<Root>) -> Self {
        let root = root.into();
        Sources {
            kallsyms: root.path("proc/kallsyms"),
            modules: None,
            vmlinux: Some(root.path("sys/kernel/btf/vmlinux")),
            module_btf: Vec::new(),
            root: Some(root),
            is_strict: false,
        }
    }

    /// Single files: the text of `/proc/kallsyms`, and what there is of `/sys/kernel/btf/vmlinux`, the modules' BTF and `/proc/modules`.
    /// Each that is named must be readable and whole.
    pub fn files(kallsyms: PathBuf, vmlinux: Option<PathBuf>, module_btf: Vec<(String, PathBuf)>, modules: Option<PathBuf>) -> Self {
        Sources { kallsyms, modules, vmlinux, module_btf, root: None, is_strict: true }
    }

    /// The same; what is damaged is an error.
    pub fn strict(self) -> Self {
        Sources { is_strict: true, ..self }
    }
}
