//! The parts of a demo, each a job of guests: soft-RoCE for polling against waiting, the emulated card for the event path from its
//! interrupt on. What polling costs is no question for the card: the program that plays it takes a core.

use crate::runner::Compare;
use crate::vm::Device;
use std::path::{Path, PathBuf};

/// What the card measures unless told otherwise: one operation that the other end answers, and one that it does not.
const CARD_OPERATIONS: [&str; 2] = ["--op", "send,read"];

/// One part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Leg {
    /// Its RDMA device.
    pub(super) device: Device,
    /// One guest, or two on a wire.
    pub(super) guests: u8,
    /// What the guests leave.
    pub(super) out: PathBuf,
    /// What is measured.
    pub(super) compare: Compare,
}

impl Leg {
    /// What is done, for the user.
    pub(super) fn says(&self) -> String {
        let device = if self.device == Device::Rxe { "soft-RoCE" } else { "an emulated card" };
        format!("measuring {device} in {}", if self.guests == 2 { "two guests on a wire" } else { "one guest" })
    }
}

/// The parts for these devices, in their order. `guests` are those of soft-RoCE; the card always has both ends in one.
pub(super) fn of(devices: &[Device], guests: u8, out: &Path, compare: &Compare) -> Vec<Leg> {
    let folder = |device: Device| if devices.len() == 1 { out.to_owned() } else { out.join(device.name()) };
    let leg = |device: Device| {
        let (mut guests, mut compare) = (guests, compare.clone());
        if device == Device::Mlx5 {
            guests = 1;
            let is_told = compare.extra.iter().any(|word| word == "--op" || word.starts_with("--op="));
            compare.extra.extend(CARD_OPERATIONS.iter().filter(|_| !is_told).map(|word| (*word).to_owned()));
        }
        Leg { device, guests, out: folder(device), compare }
    };
    devices.iter().map(|device| leg(*device)).collect()
}

/// The folder with the captures of all parts, which gets the report: of two guests, the one that measured.
pub(super) fn captures(legs: &[Leg], out: &Path) -> PathBuf {
    match legs {
        [only] if only.guests == 2 => only.out.join("b"),
        _ => out.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_device_has_its_folder_and_the_card_its_operations() {
        let compare = Compare { samples: 10, extra: vec!["--size".to_owned(), "8".to_owned()] };
        let out = Path::new("/o");
        let both = of(&[Device::Rxe, Device::Mlx5], 2, out, &compare);
        let seen: Vec<(u8, &Path)> = both.iter().map(|leg| (leg.guests, leg.out.as_path())).collect();
        assert_eq!(seen, [(2, Path::new("/o/rxe")), (1, Path::new("/o/mlx5"))]);
        assert_eq!(both[0].compare.extra, ["--size", "8"]);
        assert_eq!(both[1].compare.extra, ["--size", "8", "--op", "send,read"]);
        assert_eq!(captures(&both, out), out);
        let told = Compare { samples: 10, extra: vec!["--op".to_owned(), "write".to_owned()] };
        assert_eq!(of(&[Device::Mlx5], 2, out, &told)[0].compare, told);
    }

    #[test]
    fn a_device_alone_fills_the_folder_itself() {
        let out = Path::new("/o");
        let alone = |device, guests| of(&[device], guests, out, &Compare::default());
        assert_eq!(captures(&alone(Device::Rxe, 1), out), out);
        assert_eq!(captures(&alone(Device::Rxe, 2), out), Path::new("/o/b"));
        assert_eq!(captures(&alone(Device::Mlx5, 2), out), out);
    }
}
