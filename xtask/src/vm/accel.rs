//! How a guest's CPU is made: hardware virtualisation or emulation.

use serde::{Deserialize, Serialize};

/// How a guest's CPU is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accel {
    /// The host's CPU.
    Kvm,
    /// Emulation, one host thread per virtual CPU.
    Tcg,
    /// Emulation with virtual time that counts instructions; one virtual CPU.
    TcgIcount,
}

impl Accel {
    /// The machine's arguments for QEMU.
    pub fn args(self) -> &'static [&'static str] {
        match self {
            Self::Kvm => &["-accel", "kvm", "-cpu", "host"],
            Self::Tcg => &["-accel", "tcg,thread=multi", "-cpu", "max"],
            Self::TcgIcount => &["-accel", "tcg,thread=single", "-icount", "shift=1,sleep=off", "-rtc", "clock=vm", "-cpu", "max"],
        }
    }

    /// The name that the guest is told, for the manifest.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
            Self::TcgIcount => "tcg-icount",
        }
    }
}
