//! The RDMA device that a session or a server uses, and what a server says of itself.
use super::SessionError;
use super::placement::allowed_cpus;
use crate::control::message::ServerFacts;
use crate::machine::{Root, TOOL_VERSION, host};
use crate::verbs::{Device, PortState, VerbsError, gid_table};

/// Opens the device that was asked for, or the only one with an active port.
///
/// # Errors
/// [`SessionError::NoDevice`] with what is there and what to do.
pub fn open_device(name: Option<&str>, port: u8) -> Result<Device, SessionError> {
    let names = Device::list().or_else(none_without_the_module)?;
    let chosen = match (name, names.as_slice()) {
        (_, []) => {
            return Err(SessionError::NoDevice(
                "this host has no RDMA device. `rdmascope soft-roce up INTERFACE` makes a software one; `rdmascope doctor` tells more"
                    .to_owned(),
            ));
        }
        (Some(name), names) if names.iter().any(|it| it == name) => name.to_owned(),
        (Some(name), names) => {
            return Err(SessionError::NoDevice(format!("there is no RDMA device {name}; this host has {}", names.join(", "))));
        }
        (None, [only]) => only.clone(),
        (None, names) => {
            let is_active = |name: &&String| {
                Device::open(Some(name)).and_then(|device| device.port(port)).is_ok_and(|port| port.state == PortState::Active)
            };
            let active: Vec<&String> = names.iter().filter(is_active).collect();
            match active.as_slice() {
                [only] => (*only).clone(),
                [] => {
                    return Err(SessionError::NoDevice(format!(
                        "port {port} is active on none of {}; see `rdmascope doctor`",
                        names.join(", ")
                    )));
                }
                several => {
                    let several: Vec<&str> = several.iter().map(|it| it.as_str()).collect();
                    return Err(SessionError::NoDevice(format!(
                        "several RDMA devices are active: choose one with --device ({})",
                        several.join(", ")
                    )));
                }
            }
        }
    };
    Ok(Device::open(Some(&chosen))?)
}

/// What a server on this device says of itself.
///
/// # Errors
/// When the GID table cannot be read.
pub fn server_facts(device: &Device, port: u8) -> Result<ServerFacts, SessionError> {
    Ok(ServerFacts {
        tool_version: TOOL_VERSION.to_owned(),
        boot_id: host::host().boot_id,
        tgid: std::process::id(),
        device: device.name().to_owned(),
        port,
        gids: gid_table(device, port)?,
        cpus: allowed_cpus(&Root::live()),
    })
}

/// A kernel without ib_uverbs has no list of devices: that is a machine without a device, not a failure of the call.
fn none_without_the_module(error: VerbsError) -> Result<Vec<String>, SessionError> {
    match error {
        VerbsError::ListDevices(source) if matches!(source.raw_os_error(), Some(libc::ENOSYS | libc::ENOENT)) => Ok(Vec::new()),
        other => Err(other.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_the_module_has_no_device_and_other_errors_are_told() {
        let list = |code| none_without_the_module(VerbsError::ListDevices(std::io::Error::from_raw_os_error(code)));
        assert_eq!(list(libc::ENOSYS).ok(), Some(Vec::new()));
        let denied = list(libc::EACCES).expect_err("told");
        assert!(matches!(denied, SessionError::Verbs(VerbsError::ListDevices(_))), "{denied}");
    }
}
