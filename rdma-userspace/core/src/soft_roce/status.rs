//! `soft-roce status`: the soft-RoCE devices, the other RDMA devices, and the interfaces that could carry one.
use super::commands::up_command;
use super::describe;
use super::netdev::{Netdev, netdevs};
use crate::machine::{RdmaDevice, Root, device};
use std::fmt;

/// What there is.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// Soft-RoCE devices.
    pub rxe: Vec<RdmaDevice>,
    /// All other RDMA devices.
    pub others: Vec<RdmaDevice>,
    /// Interfaces.
    pub netdevs: Vec<Netdev>,
    /// The module rdma_rxe is loaded.
    pub module_loaded: bool,
}

/// The state of this machine.
pub fn status() -> Status {
    status_at(&Root::live())
}

/// The state of the machine below `root`.
pub fn status_at(root: &Root) -> Status {
    let (rxe, others) = device::devices(root).into_iter().partition(|device| device.driver.as_deref() == Some("rdma_rxe"));
    Status { rxe, others, netdevs: netdevs(root), module_loaded: root.exists("/sys/module/rdma_rxe") }
}

/// One line about a device: its driver, its port and its best GID.
pub(super) fn device_line(device: &RdmaDevice) -> String {
    let mut line = format!("{}  {}", device.name, describe(device));
    for port in &device.ports {
        line += &format!("  port {} {} ({})", port.number, port.state, port.link_layer);
        match port.best_gid() {
            Some(best) => line += &format!("  GID {} {} {}", best.index, best.gid, best.kind),
            None if port.gids.is_empty() => line += "  no GID",
            None => line += "  no GID that a run takes by itself",
        }
    }
    line
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rxe.is_empty() {
            let module = if self.module_loaded { "rdma_rxe is loaded" } else { "rdma_rxe is not loaded" };
            writeln!(f, "No soft-RoCE device ({module}).")?;
        } else {
            writeln!(f, "Soft-RoCE devices:")?;
            self.rxe.iter().try_for_each(|device| writeln!(f, "  {}", device_line(device)))?;
        }
        if !self.others.is_empty() {
            writeln!(f, "Other RDMA devices:")?;
            self.others.iter().try_for_each(|device| writeln!(f, "  {}", device_line(device)))?;
        }
        let taken = |name: &str| self.rxe.iter().any(|device| device.netdev.as_deref() == Some(name));
        let free: Vec<&Netdev> = self.netdevs.iter().filter(|netdev| !taken(&netdev.name)).collect();
        if !free.is_empty() {
            writeln!(f, "Interfaces without one:")?;
            for netdev in &free {
                let state = match (netdev.up, netdev.carrier) {
                    (false, _) => "down",
                    (true, Some(false)) => "up, no carrier",
                    (true, _) => "up",
                };
                writeln!(f, "  {}  {state}", netdev.name)?;
            }
        }
        // The first interface that would work; the loopback is always there, but a real one is the better choice.
        let usable = |netdev: &&&Netdev| netdev.up && netdev.carrier != Some(false);
        let choice = free.iter().filter(usable).find(|netdev| netdev.name != "lo").or_else(|| free.iter().find(usable));
        if let (true, Some(netdev)) = (self.rxe.is_empty(), choice) {
            writeln!(f, "Make one: {}", up_command(&netdev.name, "rxe0"))?;
        }
        Ok(())
    }
}
