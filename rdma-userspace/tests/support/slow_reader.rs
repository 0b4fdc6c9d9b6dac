//! A stand-in for the library's `ibv_get_cq_event` in this test program: it calls the real one, and now and then does something else before
//! it returns. The runner under test is unchanged: the linker takes this function for it. Where nothing was started, as in every module but
//! the one that asks for it, it costs a call and one look at a flag.
use super::injector::{Injection, Log};
use rdmascope_core::probes::monotonic_ns;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

type GetCqEvent = unsafe extern "C" fn(*mut c_void, *mut *mut c_void, *mut *mut c_void) -> c_int;

/// What is done, and when next.
struct Slowness {
    gap_ns: u64,
    next_ns: u64,
    act: Box<dyn FnMut(&mut Log) + Send>,
    log: Log,
}

static SLOWNESS: Mutex<Option<Slowness>> = Mutex::new(None);
static IS_STARTED: AtomicBool = AtomicBool::new(false);

/// From now on the first read that returns after each gap does this, and logs it. Gaps begin when it is done.
pub fn start(gap_ns: u64, act: impl FnMut(&mut Log) + Send + 'static) {
    let log = Log(Vec::with_capacity(10_000));
    *SLOWNESS.lock().expect("no reader panics") = Some(Slowness { gap_ns, next_ns: 0, act: Box::new(act), log });
    IS_STARTED.store(true, Ordering::Release);
}

/// Ends it and gives the log.
pub fn stop() -> Vec<Injection> {
    IS_STARTED.store(false, Ordering::Release);
    SLOWNESS.lock().expect("no reader panics").take().map_or_else(Vec::new, |it| it.log.0)
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
    if result == 0
        && IS_STARTED.load(Ordering::Acquire)
        && let Some(it) = SLOWNESS.lock().expect("no reader panics").as_mut()
        && monotonic_ns() >= it.next_ns
    {
        (it.act)(&mut it.log);
        it.next_ns = monotonic_ns() + it.gap_ns;
    }
    result
}
