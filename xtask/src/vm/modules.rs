//! The few kernel modules that a guest needs, with what they depend on, unpacked and with their own dependency lists, so
//! that `modprobe` in the guest finds them.

use super::kernel::Kernel;
use crate::{exit, process, sources};
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Modules without which a guest is of no use, in the order in which it loads them.
pub const NEEDED: [&str; 5] = ["virtio_pci", "virtio_blk", "virtio_net", "ib_uverbs", "rdma_rxe"];
/// Modules that are loaded where the kernel has them. `crc32_generic` comes before `rdma_rxe`, which asks for it by an
/// alias; `mlx5_ib` loads without a card, and then its functions can be probed.
pub const LOADED_IF_THERE: [&str; 5] = ["crc32_generic", "mlx5_ib", "rdma_cm", "rdma_ucm", "mlx4_ib"];
/// Modules that tests may load themselves: interfaces, what delays packets on the way out (`sch_netem`) and in (`ifb` with what
/// sends an interface's packets to it), and what perftest asks for.
pub const CARRIED_IF_THERE: [&str; 12] = [
    "dummy",
    "veth",
    "sch_netem",
    "sch_prio",
    "ifb",
    "sch_ingress",
    "cls_matchall",
    "cls_u32",
    "act_mirred",
    "siw",
    "ib_umad",
    "virtio_rng",
];
/// Drivers of RDMA cards, for a job that asks for them: they load without a card, and then their functions can be probed.
pub const DRIVERS_IF_THERE: [&str; 17] = [
    "bng_re",
    "bnxt_re",
    "efa",
    "erdma",
    "hfi1",
    "hns_roce_hw_v2",
    "i40iw",
    "ib_mthca",
    "ib_qib",
    "ionic_rdma",
    "irdma",
    "iw_cxgb4",
    "mana_ib",
    "ocrdma",
    "qedr",
    "rdmavt",
    "vmw_pvrdma",
];

/// What `modules.dep` and `modules.builtin` say: per module name its file and those of its dependencies.
#[derive(Debug, Default)]
pub struct Index {
    files: BTreeMap<String, Vec<String>>,
    builtin: BTreeSet<String>,
}

impl Index {
    /// Reads both lists; lines look like `kernel/a/x.ko.xz: kernel/b/y.ko.xz`.
    pub fn parse(dependencies: &str, builtin: &str) -> Self {
        let files = dependencies.lines().filter_map(|line| {
            let (file, needs) = line.split_once(':')?;
            let all = std::iter::once(file).chain(needs.split_whitespace()).map(str::to_owned).collect();
            Some((name_of(file), all))
        });
        Self { files: files.collect(), builtin: builtin.lines().map(name_of).collect() }
    }

    /// Whether the kernel has this module, built in or as a file.
    pub fn has(&self, name: &str) -> bool {
        self.builtin.contains(name) || self.files.contains_key(name)
    }

    /// The files of these modules and of everything they depend on.
    pub fn closure(&self, names: &[&str]) -> BTreeSet<String> {
        let mut files = BTreeSet::new();
        let mut open: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        while let Some(name) = open.pop() {
            for file in self.files.get(&name).into_iter().flatten() {
                if files.insert(file.clone()) {
                    open.push(name_of(file));
                }
            }
        }
        files
    }
}

/// `kernel/drivers/net/virtio_net.ko.xz` → `virtio_net`; the kernel treats `-` and `_` alike.
fn name_of(file: &str) -> String {
    let base = file.trim().rsplit('/').next().unwrap_or_default();
    base.split(".ko").next().unwrap_or_default().replace('-', "_")
}

/// The modules staged for one kernel.
#[derive(Debug)]
pub struct Staged {
    /// Folder to copy to the guest's `/`.
    pub root: PathBuf,
    /// Modules for the guest to load, in order.
    pub load: Vec<String>,
}

/// Stages the modules of `kernel`, with the cards' drivers where they are wanted; done once per kernel and list.
pub fn stage(kernel: &Kernel, with_drivers: bool) -> Result<Staged> {
    let folder = kernel.modules();
    let read = |name: &str| {
        let path = folder.join(name);
        fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
    };
    let index = Index::parse(&read("modules.dep")?, &read("modules.builtin")?);
    if let Some(missing) = NEEDED.iter().find(|name| !index.has(name)) {
        return Err(exit::infrastructure(format!("kernel {} has no module {missing}", kernel.release)));
    }
    let there = |names: &[&'static str]| -> Vec<&'static str> { names.iter().copied().filter(|name| index.has(name)).collect() };
    let (optional, mut carried) = (there(&LOADED_IF_THERE), there(&CARRIED_IF_THERE));
    if with_drivers {
        carried.extend(there(&DRIVERS_IF_THERE));
    }
    let is_early = |name: &&str| *name == "crc32_generic";
    let early = optional.iter().copied().filter(is_early);
    let late = optional.iter().copied().filter(|name| !is_early(name));
    let load: Vec<&str> = early.chain(NEEDED).chain(late).collect();
    let all: Vec<&str> = load.iter().chain(&carried).copied().collect();
    let load = load.iter().map(|name| (*name).to_owned()).collect();
    let key = sources::sha256(format!("{} {} {}", kernel.release, kernel.packages.join(" "), all.join(" ")).as_bytes());
    let root = kernel.cache().join(format!("modules-{}", &key[..12]));
    if !root.join("done").is_file() {
        fill(kernel, &root, &index.closure(&all))?;
        fs::write(root.join("done"), "")?;
    }
    Ok(Staged { root: root.join("root"), load })
}

fn fill(kernel: &Kernel, root: &Path, files: &BTreeSet<String>) -> Result<()> {
    if root.exists() {
        fs::remove_dir_all(root)?;
    }
    let base = root.join("root");
    let to = base.join("lib/modules").join(&kernel.release);
    for file in files {
        let from = kernel.modules().join(file);
        let plain = to.join(file.split_once(".ko").map_or(file.as_str(), |(stem, _)| stem)).with_extension("ko");
        fs::create_dir_all(plain.parent().context("a module lies in a folder")?)?;
        unpack(&from, &plain)?;
    }
    for list in ["modules.builtin", "modules.builtin.modinfo", "modules.order"] {
        let from = kernel.modules().join(list);
        if from.is_file() {
            fs::copy(&from, to.join(list))?;
        }
    }
    let depmod = process::which("depmod").context("depmod (package kmod) is missing")?;
    process::output(process::command(depmod).arg("-b").arg(&base).arg(&kernel.release))?;
    Ok(())
}

/// Unpacks `x.ko`, `x.ko.xz`, `x.ko.zst` or `x.ko.gz`.
fn unpack(from: &Path, to: &Path) -> Result<()> {
    let extension = from.extension().unwrap_or_default().to_string_lossy().into_owned();
    let program = match extension.as_str() {
        "ko" => {
            fs::copy(from, to).with_context(|| format!("copying {}", from.display()))?;
            return Ok(());
        }
        "xz" => "xz",
        "zst" => "zstd",
        "gz" => "gzip",
        other => bail!("{}: unknown compression {other}", from.display()),
    };
    let mut command = process::command(program);
    command.args(["-dc"]).arg(from).stdin(Stdio::null()).stdout(fs::File::create(to)?);
    let status = command.status().with_context(|| format!("starting {program}"))?;
    if !status.success() {
        bail!("unpacking {} ended with {status}", from.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPENDENCIES: &str = "kernel/a/rdma_rxe.ko.xz: kernel/b/ib-uverbs.ko.xz kernel/b/ib_core.ko.xz\n\
        kernel/b/ib-uverbs.ko.xz: kernel/b/ib_core.ko.xz\nkernel/b/ib_core.ko.xz:\nkernel/c/other.ko.xz:\n";

    #[test]
    fn the_closure_holds_dependencies_and_nothing_else() {
        let index = Index::parse(DEPENDENCIES, "kernel/d/virtio_pci.ko\n");
        let files: Vec<String> = index.closure(&["rdma_rxe", "virtio_pci"]).into_iter().collect();
        assert_eq!(files, ["kernel/a/rdma_rxe.ko.xz", "kernel/b/ib-uverbs.ko.xz", "kernel/b/ib_core.ko.xz"]);
    }

    #[test]
    fn built_in_and_dashed_names_count() {
        let index = Index::parse(DEPENDENCIES, "kernel/d/virtio_pci.ko\n");
        assert!(index.has("virtio_pci") && index.has("ib_uverbs") && !index.has("mlx5_ib"));
    }

    #[test]
    fn a_plain_module_is_copied_and_an_unknown_packing_refused() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("x.ko");
        fs::write(&from, "module").unwrap();
        unpack(&from, &folder.path().join("y.ko")).unwrap();
        assert_eq!(fs::read(folder.path().join("y.ko")).unwrap(), b"module");
        assert!(unpack(&folder.path().join("x.ko.lz9"), &folder.path().join("z.ko")).is_err());
    }
}
