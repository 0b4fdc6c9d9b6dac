//! Selection processes are traced: those named, those that have a device open, those that come later.

use rdmascope_core::probes::AutoTrack;

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    /// How processes are chosen.
    pub selection: Selection,
    /// Wait for the first process where none is there.
    pub wait: bool,
}

/// How processes are chosen.
#[derive(Clone, Debug)]
pub enum Selection {
    /// These processes.
    Pids(Vec<u32>),
    /// Every process of this name, also those that come later.
    Name(String),
    /// Every process that has this RDMA device open, also those that come later.
    Device(String),
    /// A command that is started under the tracer.
    Command(Vec<String>),
}

impl Default for Selection {
    fn default() -> Self {
        Selection::Pids(Vec::new())
    }
}

impl Targets {
    /// What was asked for, as flags.
    pub fn description(&self) -> String {
        match &self.selection {
            Selection::Pids(pids) => pids.iter().map(|pid| format!("--pid {pid}")).collect::<Vec<_>>().join(" "),
            Selection::Name(name) => format!("--name {name}"),
            Selection::Device(device) => format!("--device {device}"),
            Selection::Command(command) => format!("-- {}", command.join(" ")),
        }
    }

    /// Creators of CQs that the kernel side is to track by itself.
    pub(super) fn auto_track(&self) -> AutoTrack {
        match &self.selection {
            Selection::Pids(_) | Selection::Command(_) => AutoTrack::Off,
            Selection::Name(name) => AutoTrack::Named(name.clone()),
            Selection::Device(_) => AutoTrack::All,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_cut_as_the_kernel_cuts_it() {
        let targets = Targets { selection: Selection::Name("ib_send_lat".into()), wait: true };
        assert_eq!((targets.description().as_str(), targets.auto_track()), ("--name ib_send_lat", AutoTrack::Named("ib_send_lat".into())));
    }
}
