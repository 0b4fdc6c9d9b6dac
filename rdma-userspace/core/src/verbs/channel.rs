//! Completion channel: where an armed completion queue says that it has something.
use super::device::Device;
use super::error::VerbsError;
use super::ffi::RawChannel;

/// A completion channel. It is given to exactly one completion queue, so that an event never has to be attributed.
pub struct Channel(pub(super) RawChannel);

impl Channel {
    /// Creates a blocking channel.
    pub fn create(device: &Device) -> Result<Self, VerbsError> {
        let created = RawChannel::create(device.raw());
        created.map(Self).map_err(|source| VerbsError::CreateChannel { device: device.name().into(), source })
    }

    /// Its descriptor.
    pub fn fd(&self) -> i32 {
        self.0.fd()
    }
}
