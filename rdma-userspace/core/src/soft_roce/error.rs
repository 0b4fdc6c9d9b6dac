//! What can go wrong with a soft-RoCE device, each with what to do about it.
use std::io;
use thiserror::Error;

/// Why `soft-roce` did not do what was asked.
#[derive(Debug, Error)]
pub enum SoftRoceError {
    /// The interface does not exist.
    #[error("there is no network interface `{netdev}`; this machine has: {}", list(.available))]
    NoNetdev {
        /// What was asked for.
        netdev: String,
        /// What there is.
        available: Vec<String>,
    },
    /// The kernel takes no such name.
    #[error("`{name}` is no name for an RDMA device: it takes letters, digits, `_` and `-`, at most 63 of them")]
    BadName {
        /// What was asked for.
        name: String,
    },
    /// The name is taken.
    #[error("there is already an RDMA device `{name}`: {what}")]
    NameTaken {
        /// The name.
        name: String,
        /// What it is.
        what: String,
    },
    /// The kernel allows one rxe device per interface.
    #[error(
        "the interface `{netdev}` already carries the soft-RoCE device `{name}`, and the kernel allows one; use that one, or remove it first: {command}"
    )]
    NetdevTaken {
        /// The interface.
        netdev: String,
        /// Its device.
        name: String,
        /// The command that removes it.
        command: String,
    },
    /// The interface is down: the port would stay DOWN.
    #[error("the interface `{netdev}` is {what}, so a device on it would stay DOWN; {advice}")]
    NetdevDown {
        /// The interface.
        netdev: String,
        /// In which way.
        what: &'static str,
        /// What to do.
        advice: String,
    },
    /// Not allowed to administrate the network.
    #[error("this needs root (the capability CAP_NET_ADMIN); run: {command}")]
    NotPermitted {
        /// The command with sudo.
        command: String,
    },
    /// A tool is not installed.
    #[error("the tool `{tool}` is not installed; on Debian and Ubuntu: sudo apt-get install {package}")]
    NoTool {
        /// The tool.
        tool: &'static str,
        /// Its package.
        package: &'static str,
    },
    /// A tool could not be run to its end.
    #[error("`{command}` could not be run: {source}")]
    ToolFailed {
        /// The command.
        command: String,
        /// Why.
        source: io::Error,
    },
    /// A module is not there or does not load.
    #[error("the kernel module `{module}` does not load on kernel {kernel} ({said}); {advice}")]
    NoModule {
        /// The module.
        module: &'static str,
        /// `uname -r`.
        kernel: String,
        /// What modprobe said.
        said: String,
        /// What to do.
        advice: String,
    },
    /// `rdma link add` or `delete` failed.
    #[error("`{command}` failed: {said}{advice}")]
    LinkFailed {
        /// The command.
        command: String,
        /// What it said.
        said: String,
        /// What to do; empty or with its separator.
        advice: String,
    },
    /// The device did not become usable in time; it was removed again.
    #[error("`{name}` was made but is not usable after {seconds} s: {missing}; {cleanup}")]
    NotReady {
        /// The device.
        name: String,
        /// How long was waited.
        seconds: u64,
        /// What is missing.
        missing: String,
        /// What became of the device.
        cleanup: String,
    },
    /// There is no such device.
    #[error("there is no RDMA device `{name}`; soft-RoCE devices here: {}", list(.available))]
    NoDevice {
        /// What was asked for.
        name: String,
        /// Soft-RoCE devices that there are.
        available: Vec<String>,
    },
    /// The device is not made of software: it is not ours to remove.
    #[error("`{name}` is no soft-RoCE device ({what}); only rxe devices are removed")]
    NotRxe {
        /// The device.
        name: String,
        /// What it is.
        what: String,
    },
    /// The device is still there after its removal.
    #[error("`{name}` is still there {seconds} s after `rdma link delete`")]
    StillThere {
        /// The device.
        name: String,
        /// How long was waited.
        seconds: u64,
    },
}

impl SoftRoceError {
    /// Exit code of the program: 2 for a wrong argument, 69 when a package or module is missing, else 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NoNetdev { .. }
            | Self::BadName { .. }
            | Self::NameTaken { .. }
            | Self::NetdevTaken { .. }
            | Self::NoDevice { .. }
            | Self::NotRxe { .. } => 2,
            Self::NoTool { .. } | Self::NoModule { .. } => 69,
            Self::NetdevDown { .. }
            | Self::NotPermitted { .. }
            | Self::ToolFailed { .. }
            | Self::LinkFailed { .. }
            | Self::NotReady { .. }
            | Self::StillThere { .. } => 1,
        }
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
