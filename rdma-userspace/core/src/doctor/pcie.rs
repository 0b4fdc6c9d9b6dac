//! The PCI Express link under a device.
use super::context::Context;
use super::finding::Finding;
use crate::machine::RdmaDevice;
use crate::machine::pcie::PciFunction;

pub(super) const CHECKS: &[fn(&Context<'_>) -> Vec<Finding>] = &[links, sizes, power, errors];

fn functions<'c>(context: &'c Context<'_>) -> impl Iterator<Item = (&'c RdmaDevice, &'c PciFunction)> {
    context.selected.iter().filter_map(|device| Some((device, device.pci.as_ref()?)))
}

fn links(context: &Context<'_>) -> Vec<Finding> {
    functions(context).map(|(device, pci)| link(device, pci)).collect()
}

fn link(device: &RdmaDevice, pci: &PciFunction) -> Finding {
    let or_unknown = |text: &Option<String>| text.clone().unwrap_or_else(|| "speed not told".to_owned());
    let lanes = |width: Option<u32>| width.map_or("width not told".to_owned(), |width| format!("x{width}"));
    let id = pci.id.as_deref().unwrap_or("id not told");
    if pci.is_express == Some(false) {
        return Finding::note("pcie.link", format!("{}: {} ({id}), a conventional PCI function: it has no link", device.name, pci.address))
            .effect("such are the functions that an emulator or a hypervisor makes; nothing is told of the way to the device");
    }
    let found = format!("{}: {} ({id}), {} {}", device.name, pci.address, or_unknown(&pci.speed), lanes(pci.width));
    if pci.is_virtual_function {
        return Finding::note("pcie.link", format!("{found}, a virtual function"))
            .effect("speed and width are those of the card; other functions share it");
    }
    let slower = pci
        .speed
        .as_deref()
        .and_then(gigatransfers)
        .zip(pci.max_speed.as_deref().and_then(gigatransfers))
        .is_some_and(|(now, max)| now < max);
    let narrower = pci.width.zip(pci.max_width).is_some_and(|(now, max)| now < max);
    let rate = device.ports.iter().filter(|port| port.is_active()).filter_map(|port| port.rate_gbps).reduce(f64::max);
    let bandwidth = bandwidth_gbps(pci);
    if let Some((rate, bandwidth)) = rate.zip(bandwidth).filter(|(rate, bandwidth)| bandwidth < rate) {
        return Finding::warn("pcie.link", format!("{found}: {bandwidth:.0} Gb/s, less than the port's {rate:.0} Gb/s"))
            .effect("the slot, not the network, bounds the bandwidth")
            .command(format!("sudo lspci -vvs {} | grep -E 'LnkCap|LnkSta'", pci.address));
    }
    if slower || narrower {
        return Finding::note("pcie.link", format!("{found}, of {} {}", or_unknown(&pci.max_speed), lanes(pci.max_width)))
            .effect("every doorbell and every completion crosses a slower link than the card could have")
            .command(format!("sudo lspci -vvs {} | grep -E 'LnkCap|LnkSta'", pci.address));
    }
    if pci.speed.is_none() || pci.width.is_none() {
        return Finding::note("pcie.link", found).effect("whether the link bounds the bandwidth is not known");
    }
    Finding::ok("pcie.link", found)
}

fn gigatransfers(speed: &str) -> Option<f64> {
    speed.split_whitespace().next()?.parse().ok()
}

/// Bits per second of the link after its line code (8b/10b up to 5 GT/s, 128b/130b above; flits from 64 GT/s are taken as the latter).
fn bandwidth_gbps(pci: &PciFunction) -> Option<f64> {
    let speed = gigatransfers(pci.speed.as_deref()?)?;
    let code = if speed <= 5.0 { 0.8 } else { 128.0 / 130.0 };
    Some(speed * code * f64::from(pci.width?))
}

fn sizes(context: &Context<'_>) -> Vec<Finding> {
    let each = |(device, pci): (&RdmaDevice, &PciFunction)| match (pci.max_payload_bytes, pci.max_read_request_bytes) {
        (Some(payload), Some(request)) => {
            let found = format!("{}: max payload {payload} bytes, max read request {request} bytes", device.name);
            if request >= 512 {
                return Finding::ok("pcie.sizes", found);
            }
            Finding::note("pcie.sizes", found).effect("large sends are fetched from memory in more and smaller requests")
        }
        _ => Finding::note("pcie.sizes", format!("{}: payload and read request sizes cannot be read without root", device.name))
            .command(format!("sudo lspci -vvs {} | grep -E 'MaxPayload|MaxReadReq'", pci.address)),
    };
    functions(context).filter(|(_, pci)| pci.is_express != Some(false)).map(each).collect()
}

fn power(context: &Context<'_>) -> Vec<Finding> {
    let policy = context.choice("/sys/module/pcie_aspm/parameters/policy");
    let each = |(device, pci): (&RdmaDevice, &PciFunction)| {
        let policy = policy.as_deref().map(|policy| format!(", policy {policy}")).unwrap_or_default();
        Some(match pci.aspm? {
            0 => Finding::ok("pcie.aspm", format!("{}: link power saving (ASPM) is off{policy}", device.name)),
            states => {
                let names = [(1, "L0s"), (2, "L1")].iter().filter(|(bit, _)| states & bit != 0).map(|(_, name)| *name).collect::<Vec<_>>();
                Finding::warn("pcie.aspm", format!("{}: link power saving (ASPM) {} is on{policy}", device.name, names.join(" and ")))
                    .effect(
                        "after a pause the first doorbell or interrupt waits microseconds for the link: it shows as a slow post or wait",
                    )
                    .command("echo performance | sudo tee /sys/module/pcie_aspm/parameters/policy")
            }
        })
    };
    functions(context).filter_map(each).collect()
}

fn errors(context: &Context<'_>) -> Vec<Finding> {
    let each = |(device, pci): (&RdmaDevice, &PciFunction)| {
        let counters = [("corrected", pci.corrected_errors), ("non-fatal", pci.nonfatal_errors), ("fatal", pci.fatal_errors)];
        let told: Vec<(&str, u64)> = counters.into_iter().filter_map(|(name, count)| Some((name, count?))).collect();
        if told.is_empty() {
            return Finding::note("pcie.errors", format!("{}: the kernel keeps no PCIe error counters (AER) for it", device.name));
        }
        let list = told.iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ");
        let found = format!("{}: PCIe errors since boot: {list}", device.name);
        if told.iter().all(|(_, count)| *count == 0) {
            return Finding::ok("pcie.errors", found);
        }
        Finding::warn("pcie.errors", found)
            .effect("a corrected error costs a replay on the link, so single slow samples; a growing count means a bad slot or cable")
            .command(format!("grep -v ' 0$' /sys/bus/pci/devices/{}/aer_dev_*", pci.address))
    };
    functions(context).map(each).collect()
}
