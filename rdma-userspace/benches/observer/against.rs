//! Our probes and bpftrace's on the same hooks in the same round: both measure from the completion handler to the running thread.
use super::traffic::Traffic;
use anyhow::{Context, bail};
use ebpf_probes::{Body, decode};
use rdmascope_core::probes::Probes;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// bpftrace needs seconds to start, more under emulation.
const START_MAX: Duration = Duration::from_secs(120);

/// What both said of the same operations.
#[derive(Debug, Serialize, Deserialize)]
pub struct Against {
    /// Handler to run by our records, mean in ns, and of how many.
    pub ours_ns: f64,
    /// How many.
    pub ours: u64,
    /// The same by bpftrace.
    pub theirs_ns: f64,
    /// How many.
    pub theirs: u64,
    /// Mean latency in ns with our probes alone.
    pub alone_ns: f64,
    /// Mean latency in ns with both.
    pub both_ns: f64,
    /// Hits of these hooks per operation.
    pub hits: f64,
}

/// Runs rounds with our probes alone and with both attached.
pub fn measure(traffic: &mut Traffic, probes: &mut Probes, samples: u64) -> anyhow::Result<Against> {
    probes.attach()?;
    traffic.round(50)?;
    let alone = latency(traffic, probes, samples)?;
    let cq = alone.cq.context("no completion handler was recorded")?;
    let script = format!(
        "kprobe:ib_uverbs_comp_handler {{ @hits++; if (arg0 == {cq:#x}) {{ @begin = nsecs; }} }} \
         tracepoint:sched:sched_switch {{ @hits++; if (args->next_pid == {tid} && @begin) {{ @sum += nsecs - @begin; @n++; @begin = 0; }} }}",
        tid = traffic.tid()
    );
    // A trampoline runs after the kprobes of its function. Attached last, ours runs after theirs at the switch as well: what one probe adds
    // before the other's stamp is then added at both ends, and does not lie between them.
    probes.detach();
    let mut tracer = Tracer::start(&script)?;
    probes.attach()?;
    traffic.round(50)?;
    let both = latency(traffic, probes, samples)?;
    let said = tracer.end()?;
    probes.detach();
    let value = |name: &str| -> anyhow::Result<f64> {
        let line = said.lines().find_map(|line| line.strip_prefix(&format!("@{name}: ")));
        Ok(line.with_context(|| format!("bpftrace printed no @{name}: {said}"))?.trim().parse()?)
    };
    // Its rounds: the one for warming up and the measured one.
    let (sum, n, hits) = (value("sum")?, value("n")?, value("hits")?);
    Ok(Against {
        ours_ns: both.handler_to_run_ns,
        ours: both.n,
        theirs_ns: sum / n.max(1.0),
        theirs: n as u64,
        alone_ns: alone.latency_ns,
        both_ns: both.latency_ns,
        hits: hits / (samples + 50) as f64,
    })
}

struct Seen {
    cq: Option<u64>,
    latency_ns: f64,
    handler_to_run_ns: f64,
    n: u64,
}

fn latency(traffic: &mut Traffic, probes: &mut Probes, samples: u64) -> anyhow::Result<Seen> {
    probes.drain(|_| ());
    let result = traffic.round(samples)?;
    let mut events = Vec::new();
    probes.drain(|record| events.extend(decode(record).ok()));
    events.sort_by_key(|event| event.header.ts_ns);
    let tid = traffic.tid();
    let (mut begin, mut cq, mut sum, mut n) = (None, None, 0_u64, 0_u32);
    for event in &events {
        match event.body {
            Body::CompHandler(it) => {
                cq = Some(it.cq);
                begin = Some(event.header.ts_ns);
            }
            Body::SchedSwitch(it) if it.next_pid == tid => {
                if let Some(begin) = begin.take() {
                    sum += event.header.ts_ns - begin;
                    n += 1;
                }
            }
            _ => {}
        }
    }
    let latencies: Vec<u64> = result.samples.iter().filter_map(|sample| sample.latency_ns()).collect();
    let latency_ns = latencies.iter().sum::<u64>() as f64 / latencies.len().max(1) as f64;
    Ok(Seen { cq, latency_ns, handler_to_run_ns: sum as f64 / f64::from(n.max(1)), n: u64::from(n) })
}

/// A running bpftrace.
struct Tracer {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
}

impl Tracer {
    fn start(script: &str) -> anyhow::Result<Tracer> {
        let mut child = Command::new("bpftrace").args(["-e", script]).stdout(Stdio::piped()).spawn().context("starting bpftrace")?;
        let mut out = BufReader::new(child.stdout.take().context("a piped output")?);
        let begin = Instant::now();
        let mut line = String::new();
        // "Attaching N probes..." comes before they are attached; the hits tell that they are.
        out.read_line(&mut line)?;
        if !line.starts_with("Attaching") || begin.elapsed() > START_MAX {
            bail!("bpftrace did not start: {line}");
        }
        std::thread::sleep(Duration::from_secs(5));
        Ok(Tracer { child, out })
    }

    /// Interrupts it and returns what it printed.
    fn end(&mut self) -> anyhow::Result<String> {
        Command::new("kill").args(["-INT", &self.child.id().to_string()]).status()?;
        let mut text = String::new();
        self.out.read_to_string(&mut text)?;
        self.child.wait()?;
        Ok(text)
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
