//! The traffic: a client in this process, the passive end in a child, joined by a pipe of JSON lines, as two ends of a session are.
use anyhow::{Context, bail};
use capture::Side;
use rdmascope_core::runner::{Endpoint, Params, PeerInfo, RoundOutcome, RoundResult, RoundSpec, Worker, WorkerConfig};
use rdmascope_core::verbs::{Device, choose_pair, gid_table};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

const DEVICE: &str = "rxe0";
/// A round that takes longer says that something hangs.
const ROUND_MAX: Duration = Duration::from_secs(120);

#[derive(Serialize, Deserialize)]
enum Ask {
    Open { params: Params, peer: PeerInfo },
    Round(u64),
}

#[derive(Serialize, Deserialize)]
enum Answer {
    Opened(PeerInfo),
    Started,
    Done,
}

/// Both ends of one operation.
pub struct Traffic {
    client: Worker,
    qpn: u32,
    child: Child,
    to: ChildStdin,
    from: Lines<BufReader<ChildStdout>>,
}

impl Traffic {
    /// Connects two queue pairs for the operation.
    pub fn open(params: &Params) -> anyhow::Result<Traffic> {
        let exe = std::env::current_exe()?;
        let mut child =
            Command::new(exe).arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("starting the server")?;
        let mut to = child.stdin.take().context("a piped input")?;
        let mut from = BufReader::new(child.stdout.take().context("a piped output")?).lines();
        let params = with_gid(params)?;
        let mut endpoint = Endpoint::create(&Device::open(Some(DEVICE))?, &params, Side::Client)?;
        say(&mut to, &Ask::Open { params, peer: endpoint.local() })?;
        let Answer::Opened(peer) = hear(&mut from)? else { bail!("the server answered something else") };
        endpoint.connect(&peer)?;
        let qpn = endpoint.qpn();
        let client = Worker::spawn(endpoint, WorkerConfig { cpu: Some(last_cpu()), priority: None })?;
        Ok(Traffic { client, qpn, child, to, from })
    }

    /// The measured thread.
    pub fn tid(&self) -> u32 {
        self.client.tid()
    }

    /// Its queue pair.
    pub fn qpn(&self) -> u32 {
        self.qpn
    }

    /// One round; its latencies in ns.
    pub fn round(&mut self, samples: u64) -> anyhow::Result<RoundResult> {
        say(&mut self.to, &Ask::Round(samples))?;
        let Answer::Started = hear(&mut self.from)? else { bail!("the server answered something else") };
        let result = done(self.client.round(spec(samples)).wait())?;
        let Answer::Done = hear(&mut self.from)? else { bail!("the server answered something else") };
        Ok(result)
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The passive end: answers on its standard output until its standard input ends.
pub fn serve() -> anyhow::Result<()> {
    let mut from = std::io::stdin().lines();
    let mut to = std::io::stdout();
    let Ask::Open { params, peer } = serde_json::from_str(&from.next().context("nobody asked")??)? else {
        bail!("a round without a connection")
    };
    let mut endpoint = Endpoint::create(&Device::open(Some(DEVICE))?, &params, Side::Server)?;
    endpoint.connect(&peer)?;
    say(&mut to, &Answer::Opened(endpoint.local()))?;
    let worker = Worker::spawn(endpoint, WorkerConfig { cpu: Some(0), priority: None })?;
    for line in from {
        let Ask::Round(samples) = serde_json::from_str(&line?)? else { bail!("connected already") };
        let round = params.op.server_answers().then(|| worker.round(spec(samples)));
        say(&mut to, &Answer::Started)?;
        if let Some(round) = round {
            done(round.wait())?;
        }
        say(&mut to, &Answer::Done)?;
    }
    Ok(())
}

fn with_gid(params: &Params) -> anyhow::Result<Params> {
    let table = gid_table(&Device::open(Some(DEVICE))?, 1)?;
    let pair = choose_pair(&table, &table, true, None, None)?;
    Ok(Params { gid_index: pair.local.index, ..params.clone() })
}

fn last_cpu() -> u32 {
    std::thread::available_parallelism().map_or(0, |count| count.get() as u32 - 1)
}

fn spec(samples: u64) -> RoundSpec {
    RoundSpec { index: 0, samples, record: true, max_time: ROUND_MAX, no_progress: ROUND_MAX, abort: Arc::default() }
}

fn done(outcome: RoundOutcome) -> anyhow::Result<RoundResult> {
    outcome.map_err(|failure| failure.error.into())
}

fn say(to: &mut impl Write, what: &impl Serialize) -> anyhow::Result<()> {
    let line = serde_json::to_string(what)?;
    writeln!(to, "{line}")?;
    Ok(to.flush()?)
}

fn hear(from: &mut Lines<BufReader<ChildStdout>>) -> anyhow::Result<Answer> {
    Ok(serde_json::from_str(&from.next().context("the server is gone")??)?)
}
