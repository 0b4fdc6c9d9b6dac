//! The thread that holds the probes, and alone holds the rights to attach them.
//!
//! Probes come and go between rounds, so that the rights are needed again and again. They belong to a thread in Linux, not to a process:
//! one thread keeps them, in force only while it does something with the probes, and every other thread gives them up before it measures
//! anything, talks to a peer or reads what a peer sent. A job for the probes goes to that thread; nothing else does.
use std::io;
use std::sync::mpsc;
use std::thread::JoinHandle;

mod session;

pub use session::{ProbeSelection, ProbeSession, RoundRecords};

use super::ProbeError;
use super::rights::{give_up, lower, raise};

type Job = Box<dyn FnOnce(&mut ProbeSession) + Send>;

/// The probes of a session on their own thread. Dropping it detaches every probe and ends the thread.
pub struct ProbeThread {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl ProbeThread {
    /// Starts the thread with the rights of the calling one, and takes these rights from the calling thread and from all that it will
    /// start. To be called before the program has other threads.
    ///
    /// # Errors
    /// When the thread cannot be started, or the rights cannot be given up.
    pub fn start() -> io::Result<ProbeThread> {
        let (jobs, incoming) = mpsc::channel::<Job>();
        let (ready_in, ready_out) = mpsc::channel();
        let body = move || {
            let ready = lower();
            let failed = ready.is_err();
            if ready_in.send(ready).is_ok() && !failed {
                run_jobs(&incoming);
            }
        };
        let thread = std::thread::Builder::new().name("rs-probes".into()).spawn(body)?;
        ready_out.recv().map_err(io::Error::other)??;
        give_up()?;
        Ok(ProbeThread { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Loads these probes, in place of those before.
    pub fn load(&self, selection: ProbeSelection) {
        // A thread that is gone shows at the next call.
        let _ = self.run(move |session| *session = ProbeSession::load(&selection));
    }

    /// Runs `job` on the thread, and waits for what it returns.
    ///
    /// # Errors
    /// [`ProbeError::ThreadGone`] when the thread panicked.
    pub fn run<R: Send + 'static>(&self, job: impl FnOnce(&mut ProbeSession) -> R + Send + 'static) -> Result<R, ProbeError> {
        let (answer_in, answer_out) = mpsc::channel();
        let job: Job = Box::new(move |session| {
            // A caller that no longer waits needs no answer.
            let _ = answer_in.send(job(session));
        });
        let jobs = self.jobs.as_ref().ok_or(ProbeError::ThreadGone)?;
        jobs.send(job).map_err(|_| ProbeError::ThreadGone)?;
        answer_out.recv().map_err(|_| ProbeError::ThreadGone)
    }
}

impl Drop for ProbeThread {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            eprintln!("rdmascope: the thread of the probes panicked");
        }
    }
}

fn run_jobs(incoming: &mpsc::Receiver<Job>) {
    let mut session = ProbeSession::load(&ProbeSelection::none());
    while let Ok(job) = incoming.recv() {
        // Where a right cannot be put in force, the job fails with what the kernel says.
        let _ = raise();
        job(&mut session);
        let _ = lower();
    }
    let _ = raise();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probes::rights::{DANGEROUS, NEEDED};
    use rustix::thread::capabilities;

    /// On a thread of its own: what is given up does not come back.
    fn apart<R: Send>(body: impl FnOnce() -> R + Send) -> R {
        std::thread::scope(|scope| scope.spawn(body).join().expect("does not panic"))
    }

    #[test]
    fn only_the_thread_of_the_probes_keeps_the_rights() {
        apart(|| {
            let before = capabilities(None).expect("told").permitted;
            let thread = ProbeThread::start().expect("starts");
            let left = capabilities(None).expect("told");
            assert!(!left.effective.union(left.permitted).union(left.inheritable).intersects(NEEDED.union(DANGEROUS)));
            let other = apart(|| capabilities(None).expect("told").permitted);
            assert!(!other.intersects(NEEDED));
            let kept = thread.run(|_| capabilities(None).expect("told")).expect("answers");
            assert_eq!(kept.permitted, before);
            assert!(kept.effective.contains(before.intersection(NEEDED)), "in force while it works");
        });
    }

    #[test]
    fn jobs_run_one_after_another_and_a_thread_that_is_gone_is_an_error() {
        apart(|| {
            let thread = ProbeThread::start().expect("starts");
            thread.load(ProbeSelection::none());
            assert_eq!(thread.run(|session| session.can_trace()).ok(), Some(false));
            assert!(matches!(thread.run(|_| panic!("for the test")), Err::<(), _>(ProbeError::ThreadGone)));
            assert!(thread.run(|_| ()).is_err());
        });
    }
}
