//! The sets of threads, processes and queue pairs that the programs record.

use aya::Ebpf;
use aya::maps::{HashMap, MapData, MapError};
use ebpf_probes::config::{TRACKED_IRQS_MAP, TRACKED_PIDS_MAP, TRACKED_QPNS_MAP, TRACKED_TGIDS_MAP, TRACKED_WAITER};

use super::ProbeError;

/// One set, shared with the programs.
pub(super) struct Set {
    name: &'static str,
    map: HashMap<MapData, u32, u32>,
}

impl Set {
    fn take(ebpf: &mut Ebpf, name: &'static str) -> Result<Self, ProbeError> {
        let map = ebpf.take_map(name).ok_or(ProbeError::NotInObject { what: "map", name })?;
        let map = HashMap::try_from(map).map_err(|error| ProbeError::from_map(name, error))?;
        Ok(Set { name, map })
    }

    /// Adds a number; one that is there already stays.
    pub(super) fn add(&mut self, number: u32) -> Result<(), ProbeError> {
        self.set(number, TRACKED_WAITER)
    }

    /// Adds a number with a value of its own.
    pub(super) fn set(&mut self, number: u32, value: u32) -> Result<(), ProbeError> {
        self.map.insert(number, value, 0).map_err(|error| ProbeError::from_map(self.name, error))
    }

    /// Takes a number out; one that is not there is no error.
    pub(super) fn remove(&mut self, number: u32) -> Result<(), ProbeError> {
        match self.map.remove(&number) {
            Ok(()) | Err(MapError::KeyNotFound) => Ok(()),
            Err(MapError::SyscallError(error)) if error.io_error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
            Err(error) => Err(ProbeError::from_map(self.name, error)),
        }
    }
}

/// The four sets.
pub(super) struct Tracked {
    pub(super) pids: Set,
    pub(super) tgids: Set,
    pub(super) qpns: Set,
    pub(super) irqs: Set,
}

impl Tracked {
    pub(super) fn take(ebpf: &mut Ebpf) -> Result<Self, ProbeError> {
        Ok(Tracked {
            pids: Set::take(ebpf, TRACKED_PIDS_MAP)?,
            tgids: Set::take(ebpf, TRACKED_TGIDS_MAP)?,
            qpns: Set::take(ebpf, TRACKED_QPNS_MAP)?,
            irqs: Set::take(ebpf, TRACKED_IRQS_MAP)?,
        })
    }
}
