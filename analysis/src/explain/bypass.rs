//! The proof of bypass in numbers: what the measured rounds moved through the kernel's files and sockets, and which system calls the
//! measured thread makes.
use crate::explain::model::{Bypass, BypassCalls};
use capture::Manifest;
use capture::manifest::{RoundIo, SyscallCount, ThreadIo};

/// Calls that move data through a socket. A `read` or `write` on a socket would be among the bytes of the control connection, the only
/// socket that the program has.
const SOCKET_CALLS: [&str; 8] = ["sendto", "recvfrom", "sendmsg", "recvmsg", "sendmmsg", "recvmmsg", "connect", "accept4"];

/// What the manifest proves; `None` when it holds nothing of the kind.
pub fn of(manifest: &Manifest) -> Option<Bypass> {
    let rounds: Vec<(u64, u64, RoundIo)> = manifest
        .rounds
        .iter()
        .filter(|round| !round.warmup)
        .filter_map(|round| Some((round.samples, round.voluntary_switches, round.io?)))
        .collect();
    let told = manifest.syscalls.as_ref();
    if rounds.is_empty() && told.is_none() {
        return None;
    }
    let total = |get: &dyn Fn(&RoundIo) -> Option<u64>| {
        rounds.iter().map(|(_, _, io)| get(io)).try_fold(0u64, |sum, value| Some(sum.saturating_add(value?))).filter(|_| !rounds.is_empty())
    };
    let thread = |get: fn(&ThreadIo) -> u64| total(&|io| io.thread.as_ref().map(get));
    let calls = told.filter(|it| it.absent.is_none() && it.operations > 0).map(|it| BypassCalls {
        operations: it.operations,
        calls: without_frame(&it.calls, &it.frame),
        frame: it.frame.clone(),
        socket_calls: it.calls.iter().filter(|call| SOCKET_CALLS.contains(&call.name.as_str())).map(|call| call.calls).sum(),
    });
    let mut bypass = Bypass {
        rounds: rounds.len() as u64,
        operations: rounds.iter().fold(0, |sum, (samples, _, _)| sum.saturating_add(*samples)),
        tcp_sent_bytes: total(&|io| io.tcp_sent_bytes),
        tcp_received_bytes: total(&|io| io.tcp_received_bytes),
        reads: thread(|io| io.reads),
        read_bytes: thread(|io| io.read_bytes),
        writes: thread(|io| io.writes),
        written_bytes: thread(|io| io.written_bytes),
        voluntary_switches: rounds.iter().fold(0, |sum, (_, switches, _)| sum.saturating_add(*switches)),
        calls,
        calls_absent: told.and_then(|it| it.absent.clone()).or_else(|| told.is_none().then(|| "not counted by this version".to_owned())),
        is_proven: None,
        verdict: String::new(),
    };
    bypass.is_proven = is_proven(&bypass);
    bypass.verdict = verdict(&bypass);
    Some(bypass)
}

/// Calls of a round less those of a round without operations: what the operations themselves take.
fn without_frame(calls: &[SyscallCount], frame: &[SyscallCount]) -> Vec<SyscallCount> {
    let of_frame = |number| frame.iter().find(|it| it.number == number).map_or(0, |it| it.calls);
    let less = calls.iter().map(|it| SyscallCount { calls: it.calls.saturating_sub(of_frame(it.number)), ..it.clone() });
    less.filter(|it| it.calls > 0).collect()
}

/// No byte and no call through a socket; `None` where neither was told.
fn is_proven(bypass: &Bypass) -> Option<bool> {
    let bytes = bypass.tcp_sent_bytes.zip(bypass.tcp_received_bytes).map(|(sent, received)| sent + received == 0);
    let calls = bypass.calls.as_ref().map(|it| it.socket_calls == 0);
    match (bytes, calls) {
        (Some(bytes), Some(calls)) => Some(bytes && calls),
        // Bytes alone leave out sockets that are not ours, calls alone were seen in one round only.
        (Some(false), None) | (None, Some(false)) => Some(false),
        _ => None,
    }
}

fn verdict(bypass: &Bypass) -> String {
    match bypass.is_proven {
        Some(true) => "no socket I/O in the measured rounds: no byte on the control connection, and no socket call of the measured thread".to_owned(),
        Some(false) => "socket I/O happened within measured rounds: their figures are not of a bypass".to_owned(),
        None if bypass.tcp_sent_bytes.is_some() => {
            "no byte on the control connection in the measured rounds; the thread's system calls were not counted, so that this is half of the proof".to_owned()
        }
        None => "not proven: this machine does not tell the bytes of the control connection".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scenario, generate};
    use capture::manifest::SyscallRound;

    fn call(number: u32, name: &str, calls: u64) -> SyscallCount {
        SyscallCount { number, name: name.into(), calls }
    }

    fn manifest(tcp: u64, calls: Vec<SyscallCount>) -> Manifest {
        let mut manifest = generate(Scenario::ReadPoll, 4, 50, 1).manifest;
        for round in &mut manifest.rounds {
            let thread = ThreadIo { reads: 0, read_bytes: 0, writes: 50, written_bytes: 800 };
            round.io = Some(RoundIo { thread: Some(thread), tcp_sent_bytes: Some(tcp), tcp_received_bytes: Some(0) });
        }
        let frame = vec![call(98, "getrusage", 2)];
        manifest.syscalls = Some(SyscallRound { operations: 1000, calls, frame, absent: None });
        manifest
    }

    #[test]
    fn the_operations_calls_are_those_beyond_the_frame() {
        let it = of(&manifest(0, vec![call(1, "write", 1000), call(98, "getrusage", 2)])).expect("told");
        assert_eq!((it.rounds, it.operations, it.writes, it.reads), (4, 200, Some(200), Some(0)));
        assert_eq!(it.calls.as_ref().map(|it| it.calls.clone()), Some(vec![call(1, "write", 1000)]));
        assert_eq!(it.is_proven, Some(true));
    }

    #[test]
    fn a_byte_or_a_call_through_a_socket_ends_the_proof() {
        let write = || vec![call(1, "write", 1000)];
        assert_eq!(of(&manifest(1, write())).expect("told").is_proven, Some(false));
        assert_eq!(of(&manifest(0, vec![call(44, "sendto", 1)])).expect("told").is_proven, Some(false));
        let mut untold = manifest(0, write());
        untold.syscalls = Some(SyscallRound { absent: Some("no rights".into()), ..SyscallRound::default() });
        let half = of(&untold).expect("told");
        assert_eq!((half.is_proven, half.calls_absent.as_deref()), (None, Some("no rights")));
        assert!(half.verdict.contains("half of the proof"));
        assert!(of(&generate(Scenario::ReadPoll, 4, 50, 1).manifest).is_none());
    }
}
