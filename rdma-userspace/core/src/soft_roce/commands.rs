//! Command lines of this program that the user can paste.

/// The running program; `sudo` does not search the user's PATH, so it is a full path.
pub(super) fn own_program() -> String {
    std::env::current_exe().map_or_else(|_| "rdmascope".to_owned(), |path| path.display().to_string())
}

/// The command line that makes a device.
pub fn up_command(netdev: &str, name: &str) -> String {
    format!("sudo {} soft-roce up {netdev} --name {name}", own_program())
}

/// The command line that removes a device (without `sudo`).
pub fn down_command(name: &str) -> String {
    format!("{} soft-roce down {name}", own_program())
}
