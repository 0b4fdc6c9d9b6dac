//! `soft-roce down`: removes a soft-RoCE device, and nothing else.
use super::commands::down_command;
use super::error::SoftRoceError;
use super::status::status_at;
use super::tools::{SystemTools, Tools, delete_link};
use super::{describe, may_administrate};
use crate::machine::{Root, device};
use std::fmt;
use std::time::{Duration, Instant};

/// How long the kernel may take to let go of the device.
const DEADLINE: Duration = Duration::from_secs(10);

/// A device was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Down {
    /// The device that is gone.
    pub name: String,
    /// The interface that carried it.
    pub netdev: Option<String>,
}

impl fmt::Display for Down {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = self.netdev.as_ref().map(|netdev| format!(" from {netdev}")).unwrap_or_default();
        writeln!(f, "Removed {}{on}. The module rdma_rxe stays loaded.", self.name)
    }
}

/// Removes the soft-RoCE device `name` of this machine.
///
/// # Errors
/// See [`SoftRoceError`]; a device that is not rxe is refused.
pub fn down(name: &str) -> Result<Down, SoftRoceError> {
    down_with(&Root::live(), &mut SystemTools, name)
}

/// [`down`] on the machine below `root`, by `tools`.
///
/// # Errors
/// As [`down`].
pub fn down_with(root: &Root, tools: &mut dyn Tools, name: &str) -> Result<Down, SoftRoceError> {
    let Some(found) = device::device(root, name) else {
        let available = status_at(root).rxe.into_iter().map(|device| device.name).collect();
        return Err(SoftRoceError::NoDevice { name: name.to_owned(), available });
    };
    if found.driver.as_deref() != Some("rdma_rxe") {
        return Err(SoftRoceError::NotRxe { name: name.to_owned(), what: describe(&found) });
    }
    if !may_administrate(root) {
        return Err(SoftRoceError::NotPermitted { command: format!("sudo {}", down_command(name)) });
    }
    if !tools.has("rdma") {
        return Err(SoftRoceError::NoTool { tool: "rdma", package: "iproute2" });
    }
    delete_link(tools, name)?;
    let end = Instant::now() + DEADLINE;
    while device::device(root, name).is_some() {
        if Instant::now() >= end {
            return Err(SoftRoceError::StillThere { name: name.to_owned(), seconds: DEADLINE.as_secs() });
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(Down { name: name.to_owned(), netdev: found.netdev })
}
