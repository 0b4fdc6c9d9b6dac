//! Delays that are injected on purpose, one kind at a time, land in the stage where they belong.
//!
//! The program runs as a user runs it, both ends in this guest: client on CPU 1, server on CPU 0. An injector beside it disturbs some of the
//! samples and logs when. Ignored by default: `cargo xtask test` runs them inside the guest, as root.

use crate::support::injector::{Attempt, Client, Injector, Partner, SoftirqThread, WorkqueueCpus, pin, spin_until};
use crate::support::judge::{self, Case, Rule};
use crate::support::program::{Program, rdmascope};
use analysis::stages::StageId;
use rdmascope_core::probes::monotonic_ns;
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(120);
const MS: u64 = 1_000_000;
/// Five times what the slowest of the kernels here takes for its slowest sample in a hundred, undisturbed.
const DELAY_NS: u64 = 120 * MS;
const SAMPLES: &str = "40000";
/// A poller that really polls: messages so long that the answer takes a while after its own post has returned.
const POLLER: [&str; 10] = ["--server-cpu", "0", "--op", "send", "--mode", "poll", "--server-mode", "event", "--size", "16384"];
const CLIENT_CPU: u32 = 1;
const OTHER_CPU: u32 = 0;

fn start(out: &Path, arguments: &[&str]) -> Program {
    let out = out.to_str().expect("a plain path");
    let common =
        ["run", "--loopback", "--device", "rxe0", "--no-peer-capture", "--no-seal", "--no-report", "--quiet", "--out", out, "--cpu", "1"];
    rdmascope(&[&common, arguments].concat())
}

#[test]
#[ignore = "runs in the VM"]
fn a_hog_on_the_waiters_cpu_is_run_queue() {
    let out = tempfile::tempdir().expect("a folder");
    let _cpus = WorkqueueCpus::only("1");
    let program = start(out.path(), &["--server-cpu", "0", "--op", "send", "--mode", "event", "-n", SAMPLES]);
    let (client, softirqs) = (Client::of(program.id()), SoftirqThread::of(CLIENT_CPU));
    let injector = Injector::realtime(CLIENT_CPU, 80..160, move |log| {
        // Only a thread that sleeps has its wake-up before it; and nothing else that the sample needs may wait for this CPU.
        let Some(begin_ns) = log.moment(|| client.sleeps_in_read() && softirqs.sleeps()) else { return Attempt::NotNow };
        spin_until(begin_ns + DELAY_NS);
        log.injected(begin_ns, monotonic_ns());
        Attempt::Done
    });
    let hog = injector.tid();
    let log = injector.disturbs(program, PATIENCE);
    let hits = judge::check(out.path(), &log, &Case { stages: &[StageId::RunQueue], delay_ns: DELAY_NS, rule: Rule::Overlaps });
    println!("the hog is thread {hog}");
    judge::check_culprit(&hits, "run_queue", None);
}

#[test]
#[ignore = "runs in the VM"]
fn a_hog_on_the_pollers_cpu_is_detect_with_the_preemption_named() {
    let out = tempfile::tempdir().expect("a folder");
    let _cpus = WorkqueueCpus::only("1");
    let program = start(out.path(), &[&POLLER[..], &["-n", SAMPLES]].concat());
    let (client, softirqs) = (Client::of(program.id()), SoftirqThread::of(CLIENT_CPU));
    let injector = Injector::realtime(CLIENT_CPU, 80..160, move |log| {
        // In user space it polls; inside of a system call it would be its post that is delayed.
        let Some(begin_ns) = log.moment(|| client.displaced_in_user_space() && softirqs.sleeps()) else { return Attempt::NotNow };
        spin_until(begin_ns + DELAY_NS);
        log.injected(begin_ns, monotonic_ns());
        Attempt::Done
    });
    let hog = injector.tid();
    let log = injector.disturbs(program, PATIENCE);
    let hits = judge::check(out.path(), &log, &Case { stages: &[StageId::Detect], delay_ns: DELAY_NS, rule: Rule::Overlaps });
    judge::check_culprit(&hits, "preempted", Some(hog));
}

#[test]
#[ignore = "runs in the VM"]
fn a_move_to_a_busy_cpu_is_detect_with_the_migration_named() {
    let out = tempfile::tempdir().expect("a folder");
    let _cpus = WorkqueueCpus::only("1");
    let program = start(out.path(), &[&POLLER[..], &["-n", SAMPLES, "--level", "full"]].concat());
    let (client, softirqs) = (Client::of(program.id()), SoftirqThread::of(CLIENT_CPU));
    let partner = Partner::on(OTHER_CPU);
    let injector = Injector::realtime(CLIENT_CPU, 100..180, move |log| {
        let Some(begin_ns) = log.moment(|| client.displaced_in_user_space() && softirqs.sleeps()) else { return Attempt::NotNow };
        // The answer comes meanwhile: from then on the sample needs nothing but its own thread.
        spin_until(begin_ns + DELAY_NS / 8);
        let end_ns = begin_ns + DELAY_NS;
        let moved = partner.hold(end_ns, begin_ns + DELAY_NS / 4) && pin(client.tid(), OTHER_CPU);
        // Off its old CPU; it waits on the new one until the partner lets go.
        std::thread::sleep(Duration::from_nanos(end_ns.saturating_sub(monotonic_ns()) + 2 * MS));
        pin(client.tid(), CLIENT_CPU);
        if moved {
            log.injected(begin_ns, end_ns);
            log.touched(end_ns, monotonic_ns());
        } else {
            log.touched(begin_ns, monotonic_ns());
        }
        Attempt::Done
    });
    let log = injector.disturbs(program, PATIENCE);
    let hits = judge::check(out.path(), &log, &Case { stages: &[StageId::Detect], delay_ns: DELAY_NS, rule: Rule::Overlaps });
    judge::check_culprit(&hits, "migrated", None);
}
