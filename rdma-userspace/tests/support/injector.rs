//! Injectors: threads of the test that get in the way of a measured thread, and write down when they did, by the clock of the samples.
//!
//! A real-time thread takes its CPU the moment its timer ends, so that what it then reads of the thread that it displaced cannot change
//! before it lets go.
use super::program::{Program, wait_for};
use rdmascope_core::probes::monotonic_ns;
use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{CpuSet, gettid, sched_setaffinity};
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

/// Priority of the threads here (SCHED_FIFO): above every ordinary thread, below what the kernel cannot do without.
const PRIORITY: &str = "50";
/// The measured thread of a client.
const CLIENT_THREAD: &str = "rs-client-0";
/// How long a program may take until it has its measured thread.
const PATIENCE: Duration = Duration::from_secs(60);

/// One entry of an injector's log.
#[derive(Clone, Copy, Debug)]
pub struct Injection {
    /// Begin, `CLOCK_MONOTONIC` ns.
    pub begin_ns: u64,
    /// End.
    pub end_ns: u64,
    /// The delay was injected. False: the injector only looked, or prepared or undid something; samples near it are in no figure.
    pub done: bool,
}

/// The log of one injector.
#[derive(Default)]
pub struct Log(pub Vec<Injection>);

impl Log {
    /// Notes that the delay was injected in this time.
    pub fn injected(&mut self, begin_ns: u64, end_ns: u64) {
        self.0.push(Injection { begin_ns, end_ns, done: true });
    }

    /// The begin of an injection if this is the moment for one; else the look is noted.
    pub fn moment(&mut self, is_right: impl FnOnce() -> bool) -> Option<u64> {
        let begin_ns = monotonic_ns();
        if is_right() {
            return Some(begin_ns);
        }
        self.touched(begin_ns, monotonic_ns());
        None
    }

    /// Notes that something else was disturbed in this time.
    pub fn touched(&mut self, begin_ns: u64, end_ns: u64) {
        self.0.push(Injection { begin_ns, end_ns, done: false });
    }
}

/// What one attempt came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// Injected.
    Done,
    /// The moment was wrong: try again soon.
    NotNow,
}

/// An injector at work.
pub struct Injector {
    tid: u32,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Log>>,
}

impl Injector {
    /// Starts a real-time thread on `cpu` that calls `inject` again and again, with random gaps of so many milliseconds (after an
    /// attempt at the wrong moment a short one).
    pub fn realtime(cpu: u32, gap_ms: Range<u64>, mut inject: impl FnMut(&mut Log) -> Attempt + Send + 'static) -> Injector {
        Injector::start(gap_ms, move |log| inject(log), Some(cpu))
    }

    /// The same on an ordinary thread wherever the scheduler likes.
    pub fn ordinary(gap_ms: Range<u64>, inject: impl FnMut(&mut Log) -> Attempt + Send + 'static) -> Injector {
        Injector::start(gap_ms, inject, None)
    }

    fn start(gap_ms: Range<u64>, mut inject: impl FnMut(&mut Log) -> Attempt + Send + 'static, cpu: Option<u32>) -> Injector {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (tell, tid) = mpsc::channel();
        let body = move || {
            if let Some(cpu) = cpu {
                become_realtime(cpu);
            }
            tell.send(gettid().as_raw_nonzero().get().unsigned_abs()).expect("somebody waits for it");
            let (mut log, mut random) = (Log::default(), monotonic_ns() | 1);
            let mut gap_us = |from_us: u64, to_us: u64| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                std::thread::sleep(Duration::from_micros(from_us + random % (to_us - from_us).max(1)));
            };
            while !stopped.load(Ordering::Relaxed) {
                gap_us(gap_ms.start * 1000, gap_ms.end * 1000);
                while !stopped.load(Ordering::Relaxed) && inject(&mut log) == Attempt::NotNow {
                    gap_us(100, 600);
                }
            }
            log
        };
        let thread = std::thread::Builder::new().name("injector".to_owned()).spawn(body).expect("a thread");
        let tid = tid.recv().expect("the injector starts");
        Injector { tid, stop, thread: Some(thread) }
    }

    /// Its thread.
    pub fn tid(&self) -> u32 {
        self.tid
    }

    /// Lets a program run to its end under the injector and gives the log.
    pub fn disturbs(self, mut program: Program, patience: Duration) -> Vec<Injection> {
        let end = program.end_within(patience);
        let log = self.stop();
        assert_eq!(end.code, Some(0), "{}", end.text);
        log
    }

    /// Ends it and gives its log.
    pub fn stop(mut self) -> Vec<Injection> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().expect("stopped once").join().expect("the injector does not panic").0
    }
}

impl Drop for Injector {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Pins the calling thread and gives it its priority.
fn become_realtime(cpu: u32) {
    assert!(pin(gettid(), cpu), "this thread is alive");
    let tid = gettid().as_raw_nonzero().to_string();
    let set = Command::new("chrt").args(["-f", "-p", PRIORITY, &tid]).status().expect("chrt is in the guest");
    assert!(set.success(), "no real-time priority for the injector");
}

/// Moves a thread to one CPU; false: it has ended.
pub fn pin(thread: Pid, cpu: u32) -> bool {
    let mut cpus = CpuSet::new();
    cpus.set(cpu as usize);
    match sched_setaffinity(Some(thread), &cpus) {
        Ok(()) => true,
        Err(Errno::SRCH) => false,
        Err(error) => panic!("thread {thread:?} cannot be moved to CPU {cpu}: {error}"),
    }
}

/// Uses the CPU until then.
pub fn spin_until(end_ns: u64) {
    while monotonic_ns() < end_ns {
        std::hint::spin_loop();
    }
}

/// A second real-time thread, on another CPU, that takes it on request.
pub struct Partner {
    requests: mpsc::Sender<u64>,
    holds_until_ns: Arc<AtomicU64>,
}

impl Partner {
    /// Starts it on `cpu`; it ends when this value goes away.
    pub fn on(cpu: u32) -> Partner {
        let (requests, incoming) = mpsc::channel();
        let holds_until_ns = Arc::new(AtomicU64::new(0));
        let holds = Arc::clone(&holds_until_ns);
        let body = move || {
            become_realtime(cpu);
            while let Ok(until_ns) = incoming.recv() {
                holds.store(until_ns, Ordering::Release);
                spin_until(until_ns);
            }
        };
        std::thread::Builder::new().name("partner".to_owned()).spawn(body).expect("a thread");
        Partner { requests, holds_until_ns }
    }

    /// Takes the CPU until then; false when it did not get it before `deadline_ns`.
    pub fn hold(&self, until_ns: u64, deadline_ns: u64) -> bool {
        if self.requests.send(until_ns).is_err() {
            return false;
        }
        while self.holds_until_ns.load(Ordering::Acquire) != until_ns {
            if monotonic_ns() > deadline_ns {
                return false;
            }
            std::hint::spin_loop();
        }
        true
    }
}

/// The measured thread of a client, seen from outside.
pub struct Client {
    tid: Pid,
    /// Held open, so that a look is short.
    syscall: File,
    stack: File,
}

impl Client {
    /// Waits until process `pid` has its measured thread.
    pub fn of(pid: u32) -> Client {
        let tasks = PathBuf::from(format!("/proc/{pid}/task"));
        let mut found = None;
        wait_for(PATIENCE, || {
            found = named_below(&tasks, CLIENT_THREAD);
            found.is_some()
        });
        let folder = found.expect("the client has a measured thread");
        let tid = folder.file_name().and_then(|name| name.to_str()?.parse().ok()).and_then(Pid::from_raw).expect("a thread id");
        let open = |name: &str| File::open(folder.join(name)).expect("root may look at it");
        Client { tid, syscall: open("syscall"), stack: open("stack") }
    }

    /// Its thread.
    pub fn tid(&self) -> Pid {
        self.tid
    }

    /// Asleep in a read: it waits for a completion event. (System call 0; a runnable thread reads "running".)
    pub fn sleeps_in_read(&self) -> bool {
        read_again(&self.syscall, |text| text.starts_with("0 "))
    }

    /// Displaced while it ran in user space: there is no system call in its kernel stack.
    pub fn displaced_in_user_space(&self) -> bool {
        read_again(&self.stack, |text| text.contains("asm_") && !text.contains("SYSCALL") && !text.contains("syscall"))
    }
}

/// What a file of /proc says now; a thread that is gone says nothing.
fn read_again(file: &File, is_so: impl Fn(&str) -> bool) -> bool {
    let mut bytes = [0; 4096];
    let read = file.read_at(&mut bytes, 0).unwrap_or(0);
    std::str::from_utf8(&bytes[..read]).is_ok_and(is_so)
}

fn named_below(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    entries.into_iter().find(|path| fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm.trim_end() == name))
}

/// The thread that runs the softirqs which a CPU puts off.
pub struct SoftirqThread(File);

impl SoftirqThread {
    /// That of `cpu`.
    pub fn of(cpu: u32) -> SoftirqThread {
        let folder = named_below(Path::new("/proc"), &format!("ksoftirqd/{cpu}")).expect("every CPU has one");
        SoftirqThread(File::open(folder.join("stat")).expect("it can be read"))
    }

    /// Nothing was put off.
    pub fn sleeps(&self) -> bool {
        read_again(&self.0, |stat| stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['S', 'I'])))
    }
}

/// CPUs of the kernel's unbound workqueues; put back when this value goes away.
pub struct WorkqueueCpus {
    before: String,
}

impl WorkqueueCpus {
    const FILE: &'static str = "/sys/devices/virtual/workqueue/cpumask";

    /// Only these CPUs, as a hexadecimal mask.
    pub fn only(mask: &str) -> WorkqueueCpus {
        let before = fs::read_to_string(Self::FILE).expect("the mask of the workqueues");
        fs::write(Self::FILE, mask).expect("root may set it");
        WorkqueueCpus { before }
    }
}

impl Drop for WorkqueueCpus {
    fn drop(&mut self) {
        let _ = fs::write(Self::FILE, &self.before);
    }
}
