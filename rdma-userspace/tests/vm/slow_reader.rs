//! A stand-in for the library's `ibv_get_cq_event` in this test program: it calls the real one, and now and then uses its CPU for a while
//! before it returns. The runner under test is unchanged: the linker takes this function for it.
use super::injector::{Injection, Log, spin_until};
use rdma_userspace::probes::monotonic_ns;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

type GetCqEvent = unsafe extern "C" fn(*mut c_void, *mut *mut c_void, *mut *mut c_void) -> c_int;

/// Length of a spin; 0: none.
static SPIN_NS: AtomicU64 = AtomicU64::new(0);
static GAP_NS: AtomicU64 = AtomicU64::new(0);
static NEXT_NS: AtomicU64 = AtomicU64::new(0);
static LOG: Mutex<Log> = Mutex::new(Log(Vec::new()));

/// From now on the first read that returns after each gap is followed by a spin.
pub fn start(spin_ns: u64, gap_ns: u64) {
    LOG.lock().expect("no reader panics").0.reserve(10_000);
    GAP_NS.store(gap_ns, Ordering::Relaxed);
    SPIN_NS.store(spin_ns, Ordering::Release);
}

/// Ends it and gives the log.
pub fn stop() -> Vec<Injection> {
    SPIN_NS.store(0, Ordering::Release);
    std::mem::take(&mut LOG.lock().expect("no reader panics").0)
}

fn real() -> GetCqEvent {
    static REAL: OnceLock<GetCqEvent> = OnceLock::new();
    *REAL.get_or_init(|| {
        // SAFETY: a valid name; the handle asks for the next object that has it, which is libibverbs.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, c"ibv_get_cq_event".as_ptr()) };
        assert!(!found.is_null(), "libibverbs has ibv_get_cq_event");
        // SAFETY: the function of that name in libibverbs has this signature (`infiniband/verbs.h`), all pointers.
        unsafe { std::mem::transmute::<*mut c_void, GetCqEvent>(found) }
    })
}

/// Blocks until an event is there, as the real one, and sometimes takes its time to return.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_get_cq_event(channel: *mut c_void, cq: *mut *mut c_void, context: *mut *mut c_void) -> c_int {
    // SAFETY: the caller's arguments are handed on as they are.
    let result = unsafe { real()(channel, cq, context) };
    let spin_ns = SPIN_NS.load(Ordering::Acquire);
    let begin_ns = monotonic_ns();
    if result == 0 && spin_ns > 0 && begin_ns >= NEXT_NS.load(Ordering::Relaxed) {
        spin_until(begin_ns + spin_ns);
        let end_ns = monotonic_ns();
        NEXT_NS.store(end_ns + GAP_NS.load(Ordering::Relaxed), Ordering::Relaxed);
        LOG.lock().expect("no reader panics").injected(begin_ns, end_ns);
    }
    result
}
