//! The guest's root file system: shell, chosen programs with their shared libraries, the providers of soft-RoCE and of the card,
//! modules, the first process and the command.

use super::cpio::{Node, Tree};
use super::kernel::Kernel;
use super::modules;
use crate::{exit, process};
use anyhow::{Context, Result};
use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

const INIT: &[u8] = include_bytes!("guest/init");
/// Providers of soft-RoCE and of the emulated card.
const RXE: &str = "rxe";
const MLX5: &str = "mlx5";
/// Programs that every guest has, beside busybox.
const PROGRAMS: [&str; 5] = ["ip", "rdma", "ibv_devinfo", "ibv_rc_pingpong", "tc"];
/// Programs that every guest has where the host has them: what others measure with.
const PROGRAMS_IF_THERE: [&str; 2] = ["ib_send_lat", "ib_write_lat"];

/// busybox runs its own applets before anything on PATH, and its `ip` knows too little.
const COMMAND_HEAD: &str = "#!/bin/sh\nip() { /bin/ip \"$@\"; }\ntc() { /bin/tc \"$@\"; }\n";

/// What goes into one guest's image.
#[derive(Debug, Clone, Default)]
pub struct Contents {
    /// Programs of the host (a path, or a name on `PATH`); each lands in /bin with its libraries.
    pub programs: Vec<String>,
    /// Other files: host path, guest path.
    pub files: Vec<(PathBuf, String)>,
    /// Whether the drivers of cards are there for `modprobe`.
    pub with_drivers: bool,
    /// Whether the guest has an emulated card.
    pub with_card: bool,
    /// Shell text that is the guest's command.
    pub command: String,
    /// Lines `NAME=value` for the first process.
    pub settings: Vec<(String, String)>,
}

/// Writes the image of a guest to `to`.
pub fn write(kernel: &Kernel, contents: &Contents, to: &Path) -> Result<()> {
    let mut tree = Tree::default();
    let busybox = program_path("busybox")?;
    tree.put("/bin/busybox", Node::Copy(busybox, true));
    tree.put("/bin/sh", Node::Link("busybox".to_owned()));
    tree.put("/dev/console", Node::Device(5, 1));
    tree.put("/dev/null", Node::Device(1, 3));
    for (path, text) in [
        ("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"),
        ("/etc/group", "root:x:0:\nnogroup:x:65534:\n"),
        ("/etc/hosts", "127.0.0.1 localhost\n10.77.0.1 guest-a\n10.77.0.2 guest-b\n"),
        ("/etc/nsswitch.conf", "hosts: files\npasswd: files\n"),
    ] {
        tree.put(path, Node::Text(text.into(), false));
    }
    tree.put("/init", Node::Text(INIT.to_vec(), true));
    for program in PROGRAMS.iter().copied().chain(contents.programs.iter().map(String::as_str)) {
        add_program(&mut tree, &program_path(program)?)?;
    }
    for path in PROGRAMS_IF_THERE.iter().filter_map(|program| process::which(program)) {
        add_program(&mut tree, &path)?;
    }
    add_provider(&mut tree, RXE)?;
    if contents.with_card {
        add_provider(&mut tree, MLX5)?;
    }
    for (from, path) in &contents.files {
        let runs = is_executable(from);
        if runs {
            add_libraries(&mut tree, from)?;
        }
        tree.put(path, Node::Copy(from.clone(), runs));
    }
    let staged = modules::stage(kernel, contents.with_drivers)?;
    add_folder(&mut tree, &staged.root, "")?;
    let mut settings = format!("LOAD={}\n", process::quoted(&staged.load.join(" ")));
    for (name, value) in &contents.settings {
        settings.push_str(&format!("{name}={}\n", process::quoted(value)));
    }
    tree.put("/etc/guest.conf", Node::Text(settings.into_bytes(), false));
    let command = format!(
        "{COMMAND_HEAD}{}
",
        contents.command
    );
    tree.put("/cmd", Node::Text(command.into_bytes(), true));
    let file = fs::File::create(to).with_context(|| format!("creating {}", to.display()))?;
    let mut out = BufWriter::new(file);
    tree.write(&mut out)?;
    out.flush().with_context(|| format!("writing {}", to.display()))
}

/// The file of a program given as a path or as a name on `PATH`.
fn program_path(program: &str) -> Result<PathBuf> {
    let path = Path::new(program);
    let found = if program.contains('/') { path.is_file().then(|| path.to_path_buf()) } else { process::which(program) };
    found.ok_or_else(|| exit::infrastructure(format!("{program} is not on this machine (`cargo xtask setup` installs it)")))
}

fn add_program(tree: &mut Tree, path: &Path) -> Result<()> {
    let name = path.file_name().context("a program has a name")?.to_string_lossy();
    tree.put(&format!("/bin/{name}"), Node::Copy(path.to_path_buf(), true));
    add_libraries(tree, path)
}

/// A provider is loaded by name at run time, so that no library list mentions it.
fn add_provider(tree: &mut Tree, name: &str) -> Result<()> {
    let file = format!("lib{name}-rdmav34.so");
    let folders = ["/usr/lib/x86_64-linux-gnu/libibverbs", "/usr/lib64/libibverbs", "/usr/lib/libibverbs"];
    let found = folders.iter().map(|folder| Path::new(folder).join(&file)).find(|path| path.is_file());
    let path = found.ok_or_else(|| exit::infrastructure(format!("{file} (package ibverbs-providers) is missing")))?;
    tree.put(&path.to_string_lossy(), Node::Copy(path.clone(), true));
    tree.put(&format!("/etc/libibverbs.d/{name}.driver"), Node::Text(format!("driver {name}\n").into_bytes(), false));
    add_libraries(tree, &path)
}

/// Adds the shared libraries of a program, each under the path where the loader looks for it.
fn add_libraries(tree: &mut Tree, program: &Path) -> Result<()> {
    let mut ldd = process::command("ldd");
    ldd.arg(program).env("LC_ALL", "C");
    let output = ldd.output().context("starting ldd")?;
    let text = String::from_utf8_lossy(&output.stdout);
    for library in libraries(&text)
        .map_err(|missing| exit::infrastructure(format!("{} needs {missing}, which is not on this machine", program.display())))?
    {
        if !tree.has(&library) {
            tree.put(&library, Node::Copy(PathBuf::from(&library), true));
        }
    }
    Ok(())
}

/// The paths in what `ldd` printed; the error is the name of a library that was not found. A static program has none.
fn libraries(text: &str) -> Result<Vec<String>, String> {
    let mut paths = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        let (name, target) = line.split_once(" => ").unwrap_or((line, line));
        if target.starts_with("not found") {
            return Err(name.to_owned());
        }
        if target.starts_with('/') {
            paths.extend(target.split(" (").next().map(str::to_owned));
        }
    }
    Ok(paths)
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o111 != 0)
}

/// Adds every file below `folder` under `prefix`.
fn add_folder(tree: &mut Tree, folder: &Path, prefix: &str) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().context("an entry has a name")?.to_string_lossy().into_owned();
        let guest = format!("{prefix}/{name}");
        if path.is_dir() {
            add_folder(tree, &path, &guest)?;
        } else {
            tree.put(&guest, Node::Copy(path, false));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read_from_what_ldd_prints() {
        let text = "\tlinux-vdso.so.1 (0x00007ffc)\n\tlibibverbs.so.1 => /lib/x/libibverbs.so.1 (0x00007f)\n\
                    \tlibc.so.6 => /lib/x/libc.so.6 (0x00007f)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let expected = ["/lib/x/libibverbs.so.1", "/lib/x/libc.so.6", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(libraries(text).unwrap(), expected);
        assert!(libraries("\tstatically linked\n").unwrap().is_empty());
        assert_eq!(libraries("\tlibx.so => not found\n").unwrap_err(), "libx.so");
    }

    #[test]
    fn a_missing_program_is_infrastructure() {
        let error = program_path("no-such-program-here").unwrap_err();
        assert_eq!(exit::code_of(&error), 69);
    }
}
