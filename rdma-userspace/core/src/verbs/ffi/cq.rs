//! Completion channel and completion queue.
use super::{RawContext, check, report_leak, sys};
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A completion channel: its descriptor gives one event per armed completion queue that got a completion.
pub(in crate::verbs) struct RawChannel {
    ptr: NonNull<sys::ibv_comp_channel>,
    context: Arc<RawContext>,
}

// SAFETY: the channel is a descriptor; libibverbs allows its use from any thread.
unsafe impl Send for RawChannel {}
// SAFETY: as above.
unsafe impl Sync for RawChannel {}

impl RawChannel {
    pub fn create(context: &Arc<RawContext>) -> io::Result<Self> {
        // SAFETY: the context is open.
        let ptr = unsafe { sys::ibv_create_comp_channel(context.as_ptr()) };
        let ptr = NonNull::new(ptr).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { ptr, context: Arc::clone(context) })
    }

    pub fn fd(&self) -> i32 {
        // SAFETY: the channel exists; the field is set once.
        unsafe { (*self.ptr.as_ptr()).fd }
    }
}

impl Drop for RawChannel {
    fn drop(&mut self) {
        // SAFETY: created by us, destroyed once; the queues that use it hold an `Arc` and are gone.
        report_leak("completion channel", check(unsafe { sys::ibv_destroy_comp_channel(self.ptr.as_ptr()) }));
    }
}

/// A completion queue, with a channel of its own or none. One channel never serves two queues here.
pub(in crate::verbs) struct RawCq {
    ptr: NonNull<sys::ibv_cq>,
    /// Events read and not yet acknowledged.
    unacked: AtomicU32,
    channel: Option<RawChannel>,
    context: Arc<RawContext>,
}

// SAFETY: libibverbs allows poll, arm and event calls from any thread.
unsafe impl Send for RawCq {}
// SAFETY: as above; the library locks the queue.
unsafe impl Sync for RawCq {}

/// Room for the completions of one poll.
pub(in crate::verbs) struct WcArray<const N: usize>([sys::ibv_wc; N]);

impl<const N: usize> WcArray<N> {
    pub fn zeroed() -> Self {
        // SAFETY: a work completion holds integers and a union of integers; all zeroes is a valid value.
        Self(unsafe { std::mem::zeroed() })
    }

    pub fn get(&self, index: usize) -> Option<&sys::ibv_wc> {
        self.0.get(index)
    }
}

impl RawCq {
    pub fn create(context: &Arc<RawContext>, channel: Option<RawChannel>, depth: i32, comp_vector: i32) -> io::Result<Self> {
        if channel.as_ref().is_some_and(|channel| !Arc::ptr_eq(&channel.context, context)) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let channel_ptr = channel.as_ref().map_or(std::ptr::null_mut(), |channel| channel.ptr.as_ptr());
        // SAFETY: the context is open and the channel, if any, belongs to it; both are kept alive by the queue.
        let ptr = unsafe { sys::ibv_create_cq(context.as_ptr(), depth, std::ptr::null_mut(), channel_ptr, comp_vector) };
        let ptr = NonNull::new(ptr).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { ptr, unacked: AtomicU32::new(0), channel, context: Arc::clone(context) })
    }

    pub fn as_ptr(&self) -> *mut sys::ibv_cq {
        self.ptr.as_ptr()
    }

    pub fn depth(&self) -> u32 {
        // SAFETY: the queue exists; the field is only changed by a resize, which is never called.
        u32::try_from(unsafe { (*self.ptr.as_ptr()).cqe }).unwrap_or(0)
    }

    pub fn channel(&self) -> Option<&RawChannel> {
        self.channel.as_ref()
    }

    pub fn context(&self) -> &Arc<RawContext> {
        &self.context
    }

    /// Takes up to `N` completions; a call that gives fewer than `N` found the queue empty after them.
    #[inline]
    pub fn poll<const N: usize>(&self, array: &mut WcArray<N>) -> io::Result<usize> {
        // SAFETY: the queue exists and the array has room for `N` completions.
        let count = unsafe { sys::ibv_poll_cq(self.ptr.as_ptr(), N as i32, array.0.as_mut_ptr()) };
        usize::try_from(count).map_err(|_| io::Error::from_raw_os_error(count.saturating_neg()))
    }

    /// Arms the queue: the next completion raises one event on the channel.
    #[inline]
    pub fn arm(&self) -> io::Result<()> {
        // SAFETY: the queue exists.
        check(unsafe { sys::ibv_req_notify_cq(self.ptr.as_ptr(), 0) })
    }

    /// Blocks until one event of this queue is read. `Interrupted` when a signal came first.
    #[inline]
    pub fn read_event(&self) -> io::Result<()> {
        let Some(channel) = &self.channel else {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        };
        let mut cq = std::ptr::null_mut();
        let mut cq_context = std::ptr::null_mut();
        // SAFETY: the channel exists and serves only this queue, so that the handle of the event is this living queue.
        let ret = unsafe { sys::ibv_get_cq_event(channel.ptr.as_ptr(), &mut cq, &mut cq_context) };
        if ret != 0 {
            return Err(io::Error::last_os_error());
        }
        self.unacked.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// True when an event is there to be read: the next `read_event` does not block.
    pub fn has_event(&self) -> io::Result<bool> {
        let Some(channel) = &self.channel else {
            return Ok(false);
        };
        let mut fd = libc::pollfd { fd: channel.fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid structure, and a timeout of 0: the call never blocks.
        let ready = unsafe { libc::poll(&mut fd, 1, 0) };
        if ready < 0 { Err(io::Error::last_os_error()) } else { Ok(fd.revents & libc::POLLIN != 0) }
    }

    /// Acknowledges every event read so far: one call and one lock for all.
    pub fn acknowledge(&self) {
        let events = self.unacked.swap(0, Ordering::Relaxed);
        if events > 0 {
            // SAFETY: the queue exists and exactly these events were read from it.
            unsafe { sys::ibv_ack_cq_events(self.ptr.as_ptr(), events) };
        }
    }
}

impl Drop for RawCq {
    fn drop(&mut self) {
        // A queue with unacknowledged events would block its own destruction for ever.
        self.acknowledge();
        // SAFETY: created by us, destroyed once; QPs hold an `Arc` of the queue and are gone.
        report_leak("completion queue", check(unsafe { sys::ibv_destroy_cq(self.ptr.as_ptr()) }));
    }
}
