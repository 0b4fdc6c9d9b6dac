//! The user-space side of verbs: libibverbs and the provider of each device.
use super::Severity;
use super::context::Context;
use super::finding::Finding;
use crate::machine::RdmaDevice;
use crate::machine::provider::{is_configured, libibverbs, provider};
use crate::probes::drivers::provider_of;

pub(super) const CHECKS: &[fn(&Context<'_>) -> Vec<Finding>] = &[library, providers];

const VERSION_UNKNOWN: &str = "version not told by its file name";

fn library(context: &Context<'_>) -> Vec<Finding> {
    vec![match libibverbs(context.root) {
        Some(library) => {
            let version = library.version.map_or(VERSION_UNKNOWN.to_owned(), |version| format!("rdma-core {version}"));
            Finding::ok("verbs.library", format!("libibverbs: {version}, {}", library.path))
        }
        None => Finding::new("verbs.library", Severity::Problem, "libibverbs was not found")
            .effect("no program can use an RDMA device")
            .command("sudo apt-get install libibverbs1 ibverbs-providers"),
    }]
}

fn providers(context: &Context<'_>) -> Vec<Finding> {
    context.selected.iter().filter_map(|device| one(context, device)).collect()
}

fn one(context: &Context<'_>, device: &RdmaDevice) -> Option<Finding> {
    let name = provider_of(device.driver.as_deref()?)?;
    let device_name = &device.name;
    let Some(library) = provider(context.root, name) else {
        return Some(
            Finding::new("verbs.provider", context.blocking(), format!("{device_name}: no provider library for {name}"))
                .effect("libibverbs does not show the device to any program")
                .command("sudo apt-get install ibverbs-providers"),
        );
    };
    if !is_configured(context.root, name) {
        let found = format!("{device_name}: {} is there, but no file of /etc/libibverbs.d names `{name}`", library.path);
        return Some(
            Finding::warn("verbs.provider", found)
                .effect("libibverbs may not load it, and then shows no device")
                .command(format!("echo 'driver {name}' | sudo tee /etc/libibverbs.d/{name}.driver")),
        );
    }
    let version = library.version.map(|version| format!(", rdma-core {version}")).unwrap_or_default();
    Some(Finding::ok("verbs.provider", format!("{device_name}: provider {name}{version}, {}", library.path)))
}
