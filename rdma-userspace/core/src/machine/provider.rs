//! The user-space verbs: libibverbs, its version, and the provider (driver in user space) of a device.
use super::root::Root;
use serde::Serialize;
use std::path::Path;

/// A shared library on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Library {
    /// Its real file.
    pub path: String,
    /// Version of rdma-core, where the file's name tells it (`libibverbs.so.1.14.44.0` is of rdma-core 44.0).
    pub version: Option<String>,
}

/// The libibverbs that this process uses, or else the one that is installed.
pub fn libibverbs(root: &Root) -> Option<Library> {
    let used = root.text("/proc/self/maps").and_then(|maps| {
        let line = maps.lines().find(|line| line.contains("/libibverbs.so"))?;
        Some(line[line.find('/')?..].to_owned())
    });
    let installed = || folders(root).into_iter().map(|folder| format!("{folder}/libibverbs.so.1")).find(|file| root.exists(file));
    library(root, &used.or_else(installed)?)
}

/// The provider library `lib<name>-rdmav<N>.so` (such as `rxe` or `mlx5`); `None` when none is installed.
pub fn provider(root: &Root, name: &str) -> Option<Library> {
    let prefix = format!("lib{name}-rdmav");
    for folder in folders(root).iter().map(|folder| format!("{folder}/libibverbs")) {
        if let Some(file) = root.names(&folder).into_iter().find(|file| file.starts_with(&prefix) && file.ends_with(".so")) {
            return library(root, &format!("{folder}/{file}"));
        }
    }
    None
}

/// libibverbs loads a provider when a file of /etc/libibverbs.d names it.
pub fn is_configured(root: &Root, name: &str) -> bool {
    root.names("/etc/libibverbs.d").iter().any(|file| {
        let text = root.text(format!("/etc/libibverbs.d/{file}")).unwrap_or_default();
        text.lines().any(|line| {
            let mut words = line.split_whitespace();
            // The name may be a path to the library without its suffix.
            words.next() == Some("driver")
                && words.next().is_some_and(|driver| driver.rsplit('/').next().is_some_and(|last| last.trim_start_matches("lib") == name))
        })
    })
}

fn library(root: &Root, file: &str) -> Option<Library> {
    let real = root.real(file)?;
    Some(Library { version: version(&real), path: real.display().to_string() })
}

/// rdma-core names its libraries `NAME.so.ABI.MINOR.PACKAGE_MAJOR.PACKAGE_MINOR`.
fn version(file: &Path) -> Option<String> {
    let name = file.file_name()?.to_str()?;
    let (_, numbers) = name.split_once(".so.")?;
    let parts: Vec<&str> = numbers.split('.').collect();
    match parts[..] {
        [_, _, major, minor] if major.parse::<u32>().is_ok() => Some(format!("{major}.{minor}")),
        _ => None,
    }
}

/// Folders of shared libraries.
fn folders(root: &Root) -> Vec<String> {
    let mut folders = vec!["/usr/local/lib".to_owned(), "/usr/lib64".to_owned()];
    for parent in ["/usr/lib", "/lib"] {
        folders.extend(root.names(parent).into_iter().filter(|name| name.ends_with("-linux-gnu")).map(|name| format!("{parent}/{name}")));
        folders.push(parent.to_owned());
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fixture::Tree;

    fn debian() -> Tree {
        let lib = "usr/lib/x86_64-linux-gnu";
        Tree::new()
            .file(&format!("{lib}/libibverbs.so.1.14.44.0"), "")
            .link(&format!("{lib}/libibverbs.so.1"), "libibverbs.so.1.14.44.0")
            .file(&format!("{lib}/libmlx5.so.1.24.44.0"), "")
            .link(&format!("{lib}/libibverbs/libmlx5-rdmav34.so"), "../libmlx5.so.1.24.44.0")
            .file(&format!("{lib}/libibverbs/librxe-rdmav34.so"), "")
            .file("etc/libibverbs.d/rxe.driver", "driver rxe\n")
            .file("etc/libibverbs.d/own.driver", "driver /opt/lib/libown\n")
    }

    #[test]
    fn library_provider_and_versions() {
        let tree = debian();
        let root = tree.root();
        assert_eq!(libibverbs(&root).and_then(|library| library.version).as_deref(), Some("44.0"));
        assert_eq!(provider(&root, "mlx5").and_then(|library| library.version).as_deref(), Some("44.0"));
        let rxe = provider(&root, "rxe").expect("rxe");
        assert_eq!((rxe.path.as_str(), rxe.version), ("/usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav34.so", None));
        assert_eq!(provider(&root, "efa"), None);
    }

    #[test]
    fn drivers_that_are_configured() {
        let tree = debian();
        let root = tree.root();
        assert!(is_configured(&root, "rxe") && is_configured(&root, "own"));
        assert!(!is_configured(&root, "mlx5"));
    }

    #[test]
    fn a_library_in_use_comes_first_and_none_is_none() {
        let tree =
            debian().file("opt/libibverbs.so.1.15.60.2", "").file("proc/self/maps", "7f-80 r-xp 0 0 0   /opt/libibverbs.so.1.15.60.2\n");
        assert_eq!(libibverbs(&tree.root()).and_then(|library| library.version).as_deref(), Some("60.2"));
        assert_eq!(libibverbs(&Tree::new().root()), None);
    }
}
