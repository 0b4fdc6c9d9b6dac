//! Delays that only exist on a wire: on the peer's way out, and in the bottom half of the network's interrupt.
//!
//! Ignored by default: `cargo xtask test` runs them in guest b while guest a runs `rdmascope serve` and, for these tests, a shell on a port.

use crate::support::injector::{Attempt, Client, Injector, Log, SoftirqThread, WorkqueueCpus};
use crate::support::judge::{self, Case, Rule};
use crate::support::program::{Program, rdmascope, wait_for};
use analysis::stages::StageId;
use rdmascope_core::probes::monotonic_ns;
use rustix::process::{Resource, Rlimit, setrlimit};
use socket2::{Domain, SockFilter, Socket, Type};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(180);
const MS: u64 = 1_000_000;
const DELAY_NS: u64 = 60 * MS;
/// Where guest a has a shell for whoever connects.
const SHELL_PORT: u16 = 18_999;
const IRQ_CPU: u32 = 0;

fn start(out: &Path, arguments: &[&str]) -> Program {
    let peer = std::env::var("PEER").expect("the other guest's address");
    let out = out.to_str().expect("a plain path");
    let target = ["run", &peer, "--token-file", "/etc/rdmascope.token", "--device", "rxe0", "--connect-timeout", "60"];
    let common = ["--no-peer-capture", "--no-seal", "--no-report", "--quiet", "--out", out, "--cpu", "1"];
    rdmascope(&[&target[..], &common, arguments].concat())
}

/// A shell in the other guest.
struct PeerShell {
    connection: BufReader<TcpStream>,
}

impl PeerShell {
    fn open() -> PeerShell {
        let peer = std::env::var("PEER").expect("the other guest's address");
        let mut connection = None;
        wait_for(Duration::from_secs(60), || {
            connection = TcpStream::connect((peer.as_str(), SHELL_PORT)).ok();
            connection.is_some()
        });
        let connection = connection.expect("guest a has a shell");
        connection.set_nodelay(true).expect("a TCP option");
        connection.set_read_timeout(Some(PATIENCE)).expect("a deadline");
        PeerShell { connection: BufReader::new(connection) }
    }

    /// Runs a line; an error is a failure of the test.
    fn run(&mut self, line: &str) {
        writeln!(self.connection.get_mut(), "{line} 2>&1 && echo well || echo failed").expect("the shell listens");
        let mut answer = String::new();
        while !answer.ends_with("well\n") {
            let bytes = self.connection.read_line(&mut answer).expect("the shell answers");
            assert!(bytes > 0 && !answer.ends_with("failed\n"), "{line}: {answer}");
        }
    }

    /// Sets the delay of the peer's way out.
    fn delay(&mut self, delay_ns: u64) {
        self.run(&format!("/bin/tc qdisc replace dev eth0 root netem delay {}us limit 1000", delay_ns / 1000));
    }
}

#[test]
#[ignore = "runs in the VM"]
fn a_delay_on_the_peers_way_out_is_wire_and_peer() {
    let out = tempfile::tempdir().expect("a folder");
    let mut shell = PeerShell::open();
    shell.run("modprobe sch_netem");
    shell.delay(0);
    let program = start(out.path(), &["--op", "send", "--mode", "event", "-n", "6000"]);
    Client::of(program.id());
    // Toggled over the control connection, stamped here before and after: between the two nobody knows what a packet met.
    let injector = Injector::ordinary(500..900, move |log| {
        let asked_ns = monotonic_ns();
        shell.delay(DELAY_NS);
        let begin_ns = monotonic_ns();
        std::thread::sleep(Duration::from_millis(800));
        let end_ns = monotonic_ns();
        shell.delay(0);
        log.touched(asked_ns, begin_ns);
        log.injected(begin_ns, end_ns);
        log.touched(end_ns, monotonic_ns() + DELAY_NS);
        Attempt::Done
    });
    let log = injector.disturbs(program, PATIENCE);
    let hits = judge::check(out.path(), &log, &Case { stages: &[StageId::WirePeer], delay_ns: DELAY_NS, rule: Rule::Within });
    judge::check_culprit(&hits, "peer", None);
}

/// Sockets that all get a copy of one broadcast datagram, and take their time to refuse it: handling it is one long softirq of `lo` on the
/// sender's CPU.
struct SoftirqLoad {
    sockets: Vec<Socket>,
}

impl SoftirqLoad {
    const PORT: u16 = 18_998;
    const MOST: u64 = 4_000;
    /// Instructions of each socket's filter; what the kernel takes by default (`net.core.optmem_max`) are about 2,500.
    const FILTER: usize = 2_000;
    /// `BPF_ALU | BPF_DIV | BPF_K` and `BPF_RET | BPF_K` of classic BPF (UAPI, linux/bpf_common.h).
    const DIVIDE: u16 = 0x34;
    const RETURN: u16 = 0x06;

    /// As many sockets as make the softirq that long.
    fn of(wanted_ns: u64) -> SoftirqLoad {
        let most = Some(Self::MOST + 100);
        setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).expect("root may open more files");
        let mut load = SoftirqLoad { sockets: Vec::new() };
        while load.sockets.len() < Self::MOST as usize {
            (0..50).for_each(|_| load.sockets.push(Self::socket()));
            let once = (0..3).map(|_| load.run()).map(|(begin_ns, end_ns)| end_ns - begin_ns).min().unwrap_or(0);
            if once >= wanted_ns {
                println!("{} sockets make a softirq of {} us", load.sockets.len(), once / 1000);
                return load;
            }
        }
        panic!("{} sockets are not enough for a softirq of {wanted_ns} ns", Self::MOST);
    }

    fn socket() -> Socket {
        let it = Socket::new(Domain::IPV4, Type::DGRAM, None).expect("a socket");
        it.set_reuse_address(true).expect("an option");
        it.set_broadcast(true).expect("an option");
        let mut filter: Vec<SockFilter> = (0..Self::FILTER).map(|_| SockFilter::new(Self::DIVIDE, 0, 0, 3)).collect();
        filter.push(SockFilter::new(Self::RETURN, 0, 0, 0));
        it.attach_filter(&filter).expect("the kernel takes the filter");
        it.bind(&SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, Self::PORT).into()).expect("a shared port");
        it
    }

    /// Runs it once on this CPU; gives begin and end.
    fn run(&self) -> (u64, u64) {
        let everybody = SocketAddrV4::new(Ipv4Addr::new(127, 255, 255, 255), Self::PORT);
        let begin_ns = monotonic_ns();
        self.sockets[0].send_to(b"load", &everybody.into()).expect("sent");
        (begin_ns, monotonic_ns())
    }
}

/// Sends the interrupts of the network device to one CPU.
fn place_network_interrupts(cpu: u32) {
    let text = fs::read_to_string("/proc/interrupts").expect("the interrupts");
    let of_device = |line: &&str| line.contains("-input.") || line.contains("-output.");
    let numbers: Vec<&str> = text.lines().filter(of_device).filter_map(|line| line.trim().split(':').next()).collect();
    assert!(!numbers.is_empty(), "no interrupt of a virtual network device in\n{text}");
    for number in numbers {
        fs::write(format!("/proc/irq/{number}/smp_affinity_list"), cpu.to_string()).expect("root may place it");
    }
}

#[test]
#[ignore = "runs in the VM"]
fn a_busy_softirq_of_another_device_on_the_interrupts_cpu_is_the_bottom_half() {
    let out = tempfile::tempdir().expect("a folder");
    place_network_interrupts(IRQ_CPU);
    // rxe's workers, where it has some, do not need that CPU.
    let _cpus = WorkqueueCpus::only("2");
    let load = SoftirqLoad::of(DELAY_NS);
    let program = start(out.path(), &["--op", "send", "--mode", "event", "-n", "6000"]);
    let (client, softirqs) = (Client::of(program.id()), SoftirqThread::of(IRQ_CPU));
    let injector = Injector::realtime(IRQ_CPU, 100..200, move |log: &mut Log| {
        // While the client sleeps and nothing was put off, the answer's interrupt is still to come.
        if log.moment(|| client.sleeps_in_read() && softirqs.sleeps()).is_none() {
            return Attempt::NotNow;
        }
        let (begin_ns, end_ns) = load.run();
        log.injected(begin_ns, end_ns);
        Attempt::Done
    });
    let log = injector.disturbs(program, PATIENCE);
    // The interrupt comes while the softirq of `lo` runs; its own softirq has to wait until that one is done.
    judge::check(out.path(), &log, &Case { stages: &[StageId::RxInterrupt], delay_ns: DELAY_NS, rule: Rule::Overlaps });
}
