//! The watchdog of a measured thread: ends rounds that are aborted or make no progress.
//!
//! It wakes ten times a second, sets the flag of the [`Monitor`], and signals the thread until the round is over: a signal may come between
//! the look at the flag and the blocking read, so that one alone would not do.
use super::error::RunnerError;
use super::monitor::{Monitor, StopReason};
use crate::verbs::ffi::os;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(100);
const SIGNAL_EVERY: Duration = Duration::from_millis(10);

/// The round that the measured thread is in.
struct RunningRound {
    tid: u32,
    abort: Arc<AtomicBool>,
    no_progress: Duration,
    /// Progress last seen, and when it last moved.
    seen: (u64, Instant),
}

#[derive(Default)]
struct State {
    running: Option<RunningRound>,
    quit: bool,
}

struct Shared {
    monitor: Monitor,
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The watchdog of one worker; its thread ends with it.
pub(crate) struct Watchdog {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// The measured thread's hold on it: says when a round begins and ends.
#[derive(Clone)]
pub(crate) struct WatchdogHandle(Arc<Shared>);

impl Watchdog {
    /// Starts the thread; it never takes `measured_cpu`, where there is another CPU for it.
    pub fn spawn(measured_cpu: Option<u32>) -> Result<(Self, WatchdogHandle), RunnerError> {
        os::install_wake_signal().map_err(|source| RunnerError::Thread { what: "the wake-up signal", source })?;
        let shared = Arc::new(Shared { monitor: Monitor::default(), state: Mutex::default(), changed: Condvar::new() });
        let for_thread = Arc::clone(&shared);
        let body = move || {
            if let Some(cpu) = measured_cpu {
                stay_off(cpu);
            }
            run(&for_thread);
        };
        let thread = std::thread::Builder::new().name("rs-watchdog".into()).spawn(body);
        let thread = thread.map_err(|source| RunnerError::Thread { what: "the watchdog thread", source })?;
        Ok((Self { shared: Arc::clone(&shared), thread: Some(thread) }, WatchdogHandle(shared)))
    }

    /// Stops a running round; the watchdog ends once no round runs.
    pub fn quit(&self) {
        self.shared.lock().quit = true;
        self.shared.changed.notify_all();
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.quit();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            eprintln!("rdmascope: a watchdog thread panicked");
        }
    }
}

impl WatchdogHandle {
    pub fn monitor(&self) -> &Monitor {
        &self.0.monitor
    }

    /// The calling thread begins a round; false when the watchdog has been told to quit, and nobody would end the round.
    #[must_use]
    pub fn begin(&self, abort: &Arc<AtomicBool>, no_progress: Duration) -> bool {
        let mut state = self.0.lock();
        if state.quit {
            return false;
        }
        self.0.monitor.reset();
        state.running = Some(RunningRound { tid: os::thread_id(), abort: Arc::clone(abort), no_progress, seen: (0, Instant::now()) });
        self.0.changed.notify_all();
        true
    }

    /// The round is over: no more signals after this returns.
    pub fn end(&self) {
        self.0.lock().running = None;
        self.0.changed.notify_all();
    }
}

/// Takes a CPU from those of the calling thread, unless it is the only one. A watchdog that may not stay off still guards, and what it
/// takes from the measured thread is told as our own.
fn stay_off(cpu: u32) {
    let Ok(mut cpus) = sched_getaffinity(None) else { return };
    if cpu as usize >= CpuSet::MAX_CPU {
        return;
    }
    cpus.unset(cpu as usize);
    if cpus.count() > 0 {
        let _ = sched_setaffinity(None, &cpus);
    }
}

/// The watchdog's thread.
fn run(shared: &Shared) {
    let monitor = &shared.monitor;
    let mut state = shared.lock();
    loop {
        let quit = state.quit;
        let Some(running) = &mut state.running else {
            if quit {
                return;
            }
            state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let done = monitor.done();
        if done != running.seen.0 {
            running.seen = (done, Instant::now());
        } else if running.seen.1.elapsed() >= running.no_progress {
            monitor.stop(StopReason::NoProgress);
        }
        if quit || running.abort.load(Ordering::Relaxed) {
            monitor.stop(StopReason::Abort);
        }
        let pause = if monitor.stopped() {
            os::wake_thread(running.tid);
            SIGNAL_EVERY
        } else {
            TICK.min(running.no_progress / 4).max(Duration::from_millis(1))
        };
        state = shared.changed.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner).0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watchdog_stays_off_the_measured_cpu() {
        let cpus_without = |cpu: u32| {
            let body = move || {
                stay_off(cpu);
                os::allowed_cpus().unwrap()
            };
            std::thread::spawn(body).join().unwrap()
        };
        let all = os::allowed_cpus().unwrap();
        let last = *all.last().unwrap();
        let others: Vec<u32> = all.iter().copied().filter(|cpu| *cpu != last).collect();
        assert_eq!(cpus_without(last), if others.is_empty() { all } else { others });
        // The only CPU is kept.
        let only = move || {
            os::pin_to_cpu(last).unwrap();
            stay_off(last);
            os::allowed_cpus().unwrap()
        };
        assert_eq!(std::thread::spawn(only).join().unwrap(), [last]);
    }

    #[test]
    fn no_progress_and_abort_are_told_apart() {
        let (watchdog, handle) = Watchdog::spawn(None).unwrap();
        let abort = Arc::new(AtomicBool::new(false));
        let spin = |reason| {
            let begin = Instant::now();
            while !handle.monitor().stopped() {
                assert!(begin.elapsed() < Duration::from_secs(20), "the watchdog never stopped the round");
                std::thread::yield_now();
            }
            assert_eq!(handle.monitor().reason(), Some(reason));
            handle.end();
        };
        assert!(handle.begin(&abort, Duration::from_millis(50)));
        spin(StopReason::NoProgress);
        assert!(handle.begin(&abort, Duration::from_secs(60)));
        assert_eq!(handle.monitor().reason(), None);
        abort.store(true, Ordering::Relaxed);
        spin(StopReason::Abort);
        // Quitting stops a running round too.
        abort.store(false, Ordering::Relaxed);
        assert!(handle.begin(&abort, Duration::from_secs(60)));
        watchdog.quit();
        spin(StopReason::Abort);
        assert!(!handle.begin(&abort, Duration::from_secs(60)));
    }
}
