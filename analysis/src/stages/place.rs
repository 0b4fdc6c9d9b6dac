//! Where stages exist.

/// Where a stage exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Every device.
    All,
    /// Devices that complete without the kernel.
    Hardware,
    /// soft-RoCE.
    Rxe,
    /// Polling (and event mode where the CQE was polled without an event).
    Poll,
    /// Event mode.
    Event,
    /// Event mode on hardware.
    EventHardware,
}

impl Place {
    /// As printed in docs.
    pub const fn name(self) -> &'static str {
        match self {
            Place::All => "all",
            Place::Hardware => "hardware",
            Place::Rxe => "rxe",
            Place::Poll => "poll",
            Place::Event => "event",
            Place::EventHardware => "event, hardware",
        }
    }
}
