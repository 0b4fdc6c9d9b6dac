//! The thread that holds the probes, and alone holds the rights to attach them.
//!
//! Probes come and go between rounds, so that the rights are needed again and again. They belong to a thread in Linux, not to a process:
//! one thread keeps them, in force only while it does something with the probes, and every other thread gives them up before it measures
//! anything, talks to a peer or reads what a peer sent. A job for the probes goes to that thread; nothing else does.
use std::io;
use std::sync::mpsc;
use std::thread::JoinHandle;

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use super::{Observer, ProbeError, Wanted};

/// What loading and attaching may need. `BPF` and `PERFMON` do on kernels from 5.8 on; `SYSLOG` shows the addresses of symbols, and
/// `SYS_RESOURCE` lifts the limit of locked memory that kernels before 5.11 hold against maps. `SYS_ADMIN` stands for the first two.
const NEEDED: CapabilitySet = CapabilitySet::BPF
    .union(CapabilitySet::PERFMON)
    .union(CapabilitySet::SYSLOG)
    .union(CapabilitySet::SYS_RESOURCE)
    .union(CapabilitySet::SYS_ADMIN);
/// What no other thread of the program needs either, and root has.
const DANGEROUS: CapabilitySet =
    CapabilitySet::SYS_PTRACE.union(CapabilitySet::SYS_MODULE).union(CapabilitySet::SYS_RAWIO).union(CapabilitySet::SYS_BOOT);

type Job = Box<dyn FnOnce(&mut Observer) + Send>;

/// The observer on its own thread. Dropping it detaches every probe and ends the thread.
pub struct Guardian {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Guardian {
    /// Starts the thread with the rights of the calling one, and takes these rights from the calling thread and from all that it will
    /// start. To be called before the program has other threads.
    ///
    /// # Errors
    /// When the thread cannot be started, or the rights cannot be given up.
    pub fn take_over() -> io::Result<Guardian> {
        let (jobs, incoming) = mpsc::channel::<Job>();
        let (ready_in, ready_out) = mpsc::channel();
        let body = move || {
            let ready = lower();
            let failed = ready.is_err();
            if ready_in.send(ready).is_ok() && !failed {
                serve(&incoming);
            }
        };
        let thread = std::thread::Builder::new().name("rs-probes".into()).spawn(body)?;
        ready_out.recv().map_err(io::Error::other)??;
        give_up()?;
        Ok(Guardian { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Loads these probes, in place of those before.
    pub fn load(&self, wanted: Wanted) {
        // A thread that is gone shows at the next question.
        let _ = self.ask(move |observer| *observer = Observer::new(&wanted));
    }

    /// Has the thread do something with the observer, and waits for it.
    ///
    /// # Errors
    /// [`ProbeError::ThreadGone`] when the thread panicked.
    pub fn ask<R: Send + 'static>(&self, job: impl FnOnce(&mut Observer) -> R + Send + 'static) -> Result<R, ProbeError> {
        let (answer_in, answer_out) = mpsc::channel();
        let job: Job = Box::new(move |observer| {
            // Nobody waits for the answer any more: nobody misses it.
            let _ = answer_in.send(job(observer));
        });
        let jobs = self.jobs.as_ref().ok_or(ProbeError::ThreadGone)?;
        jobs.send(job).map_err(|_| ProbeError::ThreadGone)?;
        answer_out.recv().map_err(|_| ProbeError::ThreadGone)
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            eprintln!("rdmascope: the thread of the probes panicked");
        }
    }
}

fn serve(incoming: &mpsc::Receiver<Job>) {
    let mut observer = Observer::new(&Wanted::nothing());
    while let Ok(job) = incoming.recv() {
        // Where a right cannot be put in force, the job fails with what the kernel says.
        let _ = raise();
        job(&mut observer);
        let _ = lower();
    }
    let _ = raise();
}

/// Puts what is needed in force on the calling thread.
fn raise() -> io::Result<()> {
    let sets = capabilities(None)?;
    let effective = sets.effective.union(sets.permitted.intersection(NEEDED));
    Ok(set_capabilities(None, CapabilitySets { effective, ..sets })?)
}

/// Out of force, but kept.
fn lower() -> io::Result<()> {
    let sets = capabilities(None)?;
    Ok(set_capabilities(None, CapabilitySets { effective: sets.effective.difference(NEEDED), ..sets })?)
}

/// Gone for good, from the calling thread and what it starts. A program that it executes as root has them again.
fn give_up() -> io::Result<()> {
    let sets = capabilities(None)?;
    let gone = NEEDED.union(DANGEROUS);
    let left = CapabilitySets {
        effective: sets.effective.difference(gone),
        permitted: sets.permitted.difference(gone),
        inheritable: sets.inheritable.difference(gone),
    };
    Ok(set_capabilities(None, left)?)
}

/// Which of the rights that probes cannot do without the calling thread lacks, in words; `None`: none.
pub(super) fn lacking() -> Option<String> {
    let sets = capabilities(None).ok()?;
    let has = |one: CapabilitySet| sets.effective.intersects(one.union(CapabilitySet::SYS_ADMIN));
    let names = [(CapabilitySet::BPF, "CAP_BPF"), (CapabilitySet::PERFMON, "CAP_PERFMON")];
    let missing: Vec<&str> = names.into_iter().filter(|(one, _)| !has(*one)).map(|(_, name)| name).collect();
    match missing.as_slice() {
        [] => None,
        [one] => Some(format!("{one} is missing")),
        several => Some(format!("{} are missing", several.join(" and "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a thread of its own: what is given up does not come back.
    fn apart<R: Send>(body: impl FnOnce() -> R + Send) -> R {
        std::thread::scope(|scope| scope.spawn(body).join().expect("does not panic"))
    }

    #[test]
    fn only_the_thread_of_the_probes_keeps_the_rights() {
        apart(|| {
            let before = capabilities(None).expect("told").permitted;
            let guardian = Guardian::take_over().expect("starts");
            let left = capabilities(None).expect("told");
            assert!(!left.effective.union(left.permitted).union(left.inheritable).intersects(NEEDED.union(DANGEROUS)));
            let other = apart(|| capabilities(None).expect("told").permitted);
            assert!(!other.intersects(NEEDED));
            let kept = guardian.ask(|_| capabilities(None).expect("told")).expect("answers");
            assert_eq!(kept.permitted, before);
            assert!(kept.effective.contains(before.intersection(NEEDED)), "in force while it works");
        });
    }

    #[test]
    fn jobs_run_one_after_another_and_a_thread_that_is_gone_is_an_error() {
        apart(|| {
            let guardian = Guardian::take_over().expect("starts");
            guardian.load(Wanted::nothing());
            assert_eq!(guardian.ask(|observer| observer.can_trace()).ok(), Some(false));
            assert!(matches!(guardian.ask(|_| panic!("for the test")), Err::<(), _>(ProbeError::ThreadGone)));
            assert!(guardian.ask(|_| ()).is_err());
        });
    }
}
