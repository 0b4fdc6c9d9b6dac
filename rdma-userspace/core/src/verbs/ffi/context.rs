//! Device list, open device, and what device and port tell about themselves.
use super::{check, report_leak, sys};
use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// An open device.
pub(in crate::verbs) struct RawContext {
    ptr: NonNull<sys::ibv_context>,
}

// SAFETY: libibverbs allows every verb on a context from any thread; the pointer is only freed by drop.
unsafe impl Send for RawContext {}
// SAFETY: as above; the library locks what it shares.
unsafe impl Sync for RawContext {}

/// The list that `ibv_get_device_list` gives, freed on drop.
struct DeviceList {
    first: NonNull<*mut sys::ibv_device>,
    len: usize,
}

impl DeviceList {
    fn get() -> io::Result<Self> {
        let mut len = 0;
        // SAFETY: `len` is a valid place for the count.
        let first = unsafe { sys::ibv_get_device_list(&mut len) };
        let first = NonNull::new(first).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { first, len: usize::try_from(len).unwrap_or(0) })
    }

    fn devices(&self) -> impl Iterator<Item = (*mut sys::ibv_device, String)> + '_ {
        (0..self.len).map(|i| {
            // SAFETY: the list has `len` entries and lives as long as `self`.
            let device = unsafe { *self.first.as_ptr().add(i) };
            // SAFETY: the entry is a device of the living list; its name is a C string inside it.
            let name = unsafe { CStr::from_ptr(sys::ibv_get_device_name(device)) };
            (device, name.to_string_lossy().into_owned())
        })
    }
}

impl Drop for DeviceList {
    fn drop(&mut self) {
        // SAFETY: the list came from `ibv_get_device_list` and is freed once; open contexts keep their own reference to a device.
        unsafe { sys::ibv_free_device_list(self.first.as_ptr()) };
    }
}

impl RawContext {
    /// Names of all devices that a provider of libibverbs serves.
    pub fn names() -> io::Result<Vec<String>> {
        Ok(DeviceList::get()?.devices().map(|(_, name)| name).collect())
    }

    /// Opens the device of this name; `None` when there is none.
    pub fn open(name: &str) -> io::Result<Option<Self>> {
        let list = DeviceList::get()?;
        let Some((device, _)) = list.devices().find(|(_, found)| found == name) else {
            return Ok(None);
        };
        // SAFETY: `device` belongs to the living list.
        let ptr = unsafe { sys::ibv_open_device(device) };
        NonNull::new(ptr).map(|ptr| Some(Self { ptr })).ok_or_else(io::Error::last_os_error)
    }

    pub fn as_ptr(&self) -> *mut sys::ibv_context {
        self.ptr.as_ptr()
    }

    pub fn comp_vectors(&self) -> u32 {
        // SAFETY: the context is open; the field is set once by open.
        let vectors = unsafe { (*self.ptr.as_ptr()).num_comp_vectors };
        u32::try_from(vectors).unwrap_or(0)
    }

    pub fn query_device(&self) -> io::Result<sys::ibv_device_attr> {
        let mut attr = MaybeUninit::<sys::ibv_device_attr>::zeroed();
        // SAFETY: the context is open and `attr` is a valid place of the type that this symbol fills.
        check(unsafe { sys::ibv_query_device(self.as_ptr(), attr.as_mut_ptr()) })?;
        // SAFETY: zeroed before and filled by the call; every bit pattern of its integers is valid.
        Ok(unsafe { attr.assume_init() })
    }

    pub fn query_port(&self, port: u8) -> io::Result<sys::ibv_port_attr> {
        let mut attr = MaybeUninit::<sys::ibv_port_attr>::zeroed();
        // SAFETY: the context is open and `attr` is a valid, zeroed place.
        check(unsafe { sys::___ibv_query_port(self.as_ptr(), port, attr.as_mut_ptr()) })?;
        // SAFETY: zeroed before and filled by the call; every bit pattern of its integers is valid.
        Ok(unsafe { attr.assume_init() })
    }
}

impl Drop for RawContext {
    fn drop(&mut self) {
        // SAFETY: opened by us, closed once; every child holds an `Arc` of this context and is gone by now.
        report_leak("device context", check(unsafe { sys::ibv_close_device(self.ptr.as_ptr()) }));
    }
}
