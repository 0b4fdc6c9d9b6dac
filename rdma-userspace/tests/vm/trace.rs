//! `rdmascope trace` on programs that are not ours, in a guest with soft-RoCE: found before and after their start, every event complete,
//! recorded and opened again.
//!
//! Ignored by default: `cargo xtask test` runs them inside the guest, where the programs are on the PATH and `rxe0` is there.

use crate::support::program::{End, Program, rdmascope, wait_for};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(200);

/// What a traced pair of programs is.
struct Pair {
    program: &'static str,
    /// Arguments of both ends; the client's also names the host.
    arguments: Vec<&'static str>,
    port: u16,
}

impl Pair {
    fn pingpong(iterations: &'static str, port: &'static str) -> Pair {
        let arguments = vec!["-e", "-d", "rxe0", "-g", "1", "-n", iterations, "-s", "64", "-p", port];
        Pair { program: "ibv_rc_pingpong", arguments, port: port.parse().expect("a port") }
    }

    fn perftest(program: &'static str, more: &[&'static str], iterations: &'static str, port: &'static str) -> Pair {
        let arguments = [&["-d", "rxe0", "-x", "1", "-n", iterations, "-s", "64", "-p", port, "-F"], more].concat();
        Pair { program, arguments, port: port.parse().expect("a port") }
    }

    fn server(&self) -> Program {
        let server = Program::start(self.program, &self.arguments);
        assert!(wait_for(PATIENCE, || listens(self.port)), "{} does not listen: {}", self.program, server.text());
        server
    }

    fn client(&self) -> Program {
        Program::start(self.program, &[&self.arguments[..], &["127.0.0.1"]].concat())
    }
}

/// Does somebody listen on this TCP port? (State 0A of /proc/net/tcp.)
fn listens(port: u16) -> bool {
    let local = format!(":{port:04X}");
    let is_listener = |line: &str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        columns.get(1).is_some_and(|it| it.ends_with(&local)) && columns.get(3) == Some(&"0A")
    };
    ["/proc/net/tcp", "/proc/net/tcp6"].iter().any(|path| std::fs::read_to_string(path).is_ok_and(|text| text.lines().any(is_listener)))
}

/// A tracer that has attached its probes.
fn tracing(arguments: &[&str]) -> Program {
    let tracer = rdmascope(&[&["trace"], arguments].concat());
    assert!(wait_for(PATIENCE, || tracer.text().contains("are attached")), "the tracer does not begin: {}", tracer.text());
    tracer
}

fn ended(tracer: &mut Program) -> End {
    let end = tracer.end_within(PATIENCE);
    println!("{}", end.text);
    assert_eq!(end.code, Some(0), "{}", end.text);
    end
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("the result")).expect("JSON")
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_else(|| panic!("no number {name} in {value}"))
}

/// CQs that had events, after a look at each: at least 99 % of the events that were read are complete, and nothing is unresolved
/// beyond that.
fn assert_complete(report: &Value, events_min: u64) -> Vec<Value> {
    let cqs: Vec<Value> = report["cqs"].as_array().expect("CQs").iter().filter(|cq| number(cq, "events") > 0).cloned().collect();
    let events: u64 = cqs.iter().map(|cq| number(cq, "events")).sum();
    assert!(events >= events_min, "{events} events, {events_min} wanted, in {report}");
    for cq in &cqs {
        let it = &cq["outcomes"];
        let names = ["woken", "woken_on_cpu", "runnable", "running", "elsewhere", "incomplete", "unmatched", "discarded", "unread"];
        let [woken, on_cpu, runnable, running, elsewhere, incomplete, unmatched, discarded, unread] = names.map(|name| number(it, name));
        let complete = woken + on_cpu + runnable + running + elsewhere;
        let due = complete + incomplete + unmatched;
        assert_eq!(due + discarded + unread, number(cq, "events"), "every event is in one class: {cq}");
        assert!(complete * 100 >= due * 99, "{complete} of {due} events are complete: {cq}");
        // Only the last one or two may lie there when the program (or the trace) ends.
        assert!(discarded + unread <= 2, "{cq}");
        let n = |stage: &str| {
            let found = cq["stages"].as_array().expect("stages").iter().find(|row| row["stage"] == stage);
            found.map_or(0, |row| number(&row["spread"], "n"))
        };
        assert_eq!(n("handler_to_read"), due - unmatched, "{cq}");
        assert_eq!(n("handler_to_run"), woken + runnable + elsewhere, "{cq}");
        assert!(n("waking_to_wakeup") <= n("handler_to_waking") && n("wakeup_to_run") * 100 >= woken * 99, "{cq}");
        let origins = n("softirq_to_handler").max(n("tasklet_to_handler")) + n("work_to_handler") + number(cq, "from_process");
        assert!(origins * 100 >= number(cq, "events") * 99, "where handlers came from: {cq}");
    }
    assert_eq!(report["loss_share"].as_f64(), Some(0.0));
    cqs
}

#[test]
#[ignore = "runs in the VM"]
fn a_running_pingpong_is_traced_recorded_and_opened_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (result, out) = (folder.path().join("trace.json"), folder.path().join("out"));
    let pair = Pair::pingpong("200000", "18811");
    let server = pair.server();
    let client = pair.client();
    std::thread::sleep(Duration::from_secs(1));
    let mut tracer = tracing(&[
        "--pid",
        &client.id().to_string(),
        "--pid",
        &server.id().to_string(),
        "--duration",
        "4",
        "--histograms",
        "--json",
        result.to_str().expect("plain"),
        "--out",
        out.to_str().expect("plain"),
    ]);
    let text = ended(&mut tracer).text;
    let live = json(&result);
    let cqs = assert_complete(&live, 200);
    assert_eq!(cqs.len(), 2, "one CQ of each process: {text}");
    for cq in &cqs {
        assert_eq!((cq["was_created"].as_bool(), cq["device"].as_str(), cq["depth"].as_u64().is_some()), (Some(false), Some("rxe0"), true));
        // The shared queue tells what was not polled: at most what fits.
        assert!(number(cq, "cqes") > 0 && number(cq, "arms") > 0 && number(cq, "unread_cqes") <= number(cq, "depth"), "{cq}");
    }
    // The live view ran meanwhile, as lines.
    assert!(text.contains("events/s") && text.contains("handler → run:"), "{text}");
    // What was recorded says the same.
    let report = analysis::report::of_folder(&out).expect("the capture opens");
    assert_eq!((report.runs.len(), report.traces.len()), (0, 1));
    let opened = &report.traces[0];
    let counts = |report: &Value| {
        report["cqs"].as_array().expect("CQs").iter().map(|cq| (cq["events"].clone(), cq["outcomes"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(counts(&serde_json::to_value(opened).expect("JSON")), counts(&live));
    let shown = rdmascope(&["report", out.to_str().expect("plain")]).end_within(PATIENCE);
    assert_eq!(shown.code, Some(0), "{}", shown.text);
    assert!(shown.text.contains("handler → read returns") && shown.text.contains("ibv_rc_pingpong"), "{}", shown.text);
    let page = folder.path().join("site");
    analysis::show::html::write(&report, &page).expect("a page");
    assert!(std::fs::read_to_string(page.join("index.html")).expect("the page").contains("Completion events per CQ"));
    client.signal("KILL");
    server.signal("KILL");
}

#[test]
#[ignore = "runs in the VM"]
fn a_pingpong_is_found_from_its_start_and_its_end_ends_the_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    let (result, calls) = (folder.path().join("trace.json"), folder.path().join("calls"));
    let arguments = ["--name", "ibv_rc_pingpong", "--wait", "--calls", "--calls-rate", "50"];
    let files = ["--json", result.to_str().expect("plain"), "--calls-to", calls.to_str().expect("plain")];
    let mut tracer = tracing(&[&arguments[..], &files].concat());
    let pair = Pair::pingpong("2000", "18812");
    let mut server = pair.server();
    let mut client = pair.client();
    assert_eq!((client.end_within(PATIENCE).code, server.end_within(PATIENCE).code), (Some(0), Some(0)));
    let text = ended(&mut tracer).text;
    let cqs = assert_complete(&json(&result), 2000);
    assert_eq!(cqs.len(), 2, "{text}");
    for cq in &cqs {
        assert_eq!((cq["was_created"].as_bool(), cq["was_destroyed"].as_bool()), (Some(true), Some(true)), "{cq}");
        assert!(number(cq, "depth") > 0, "{cq}");
    }
    // The calls: limited on the screen, all of them in the file, in order.
    assert!(text.contains("calls were left out in all"), "{text}");
    let calls = std::fs::read_to_string(&calls).expect("the calls");
    let of = |call: &str| calls.lines().filter(|line| line.contains(&format!(" {call} "))).count() as u64;
    let events: u64 = cqs.iter().map(|cq| number(cq, "events")).sum();
    assert_eq!((of("cq_create"), of("cq_destroy"), of("comp_handler")), (2, 2, events));
    assert!(of("event_read") > 0 && of("cq_arm") > 0 && of("cq_post") > 0 && of("sched_switch") > 0);
    let times: Vec<f64> = calls.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect();
    assert!(times.len() > 1000 && times.is_sorted(), "{} lines", times.len());
}

#[test]
#[ignore = "runs in the VM"]
fn perftest_by_events_is_traced_from_its_start_or_its_fault_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let result = folder.path().join("trace.json");
    let mut tracer = tracing(&["--device", "rxe0", "--wait", "--json", result.to_str().expect("plain")]);
    let pair = Pair::perftest("ib_send_lat", &["-e"], "1000", "18813");
    let mut server = pair.server();
    let mut client = pair.client();
    // perftest 4.5 polls one of its two CQs per event, whichever it was for, and may sleep for ever.
    let finished = wait_for(Duration::from_secs(40), || !client.is_running() && !server.is_running());
    std::thread::sleep(Duration::from_secs(2));
    tracer.signal("INT");
    let text = ended(&mut tracer).text;
    let report = json(&result);
    let cqs = assert_complete(&report, if finished { 1000 } else { 2 });
    assert!(cqs.iter().all(|cq| cq["comm"] == "ib_send_lat" && cq["was_created"] == true), "{text}");
    // Each end has two CQs on one channel.
    let mut channels: Vec<u64> = cqs.iter().map(|cq| number(cq, "channel")).collect();
    channels.sort_unstable();
    channels.dedup();
    assert!(cqs.len() >= 3 && channels.len() == 2, "{} CQs, {} channels: {text}", cqs.len(), channels.len());
    if !finished {
        let conditions = report["conditions"].as_array().expect("conditions");
        assert!(!conditions.is_empty(), "both ends sleep and nothing was named: {text}");
    }
    for program in [&mut client, &mut server].into_iter().filter_map(|it| it.is_running().then_some(it)) {
        program.signal("KILL");
    }
}

#[test]
#[ignore = "runs in the VM"]
fn a_polling_perftest_has_no_event_and_the_trace_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let result = folder.path().join("trace.json");
    let mut tracer = tracing(&["--name", "ib_write_lat", "--wait", "--json", result.to_str().expect("plain")]);
    let pair = Pair::perftest("ib_write_lat", &[], "300", "18814");
    let mut server = pair.server();
    let mut client = pair.client();
    assert_eq!((client.end_within(PATIENCE).code, server.end_within(PATIENCE).code), (Some(0), Some(0)), "{}", client.text());
    let text = ended(&mut tracer).text;
    let report = json(&result);
    let cqs = report["cqs"].as_array().expect("CQs");
    assert!(cqs.len() >= 2 && cqs.iter().all(|cq| number(cq, "events") == 0 && cq["note"].is_string()), "{text}");
    assert!(text.contains("polling, which cannot be seen from outside"), "{text}");
}

#[test]
#[ignore = "runs in the VM"]
fn a_command_is_started_under_the_tracer_and_a_program_without_verbs_has_no_cq() {
    let end = rdmascope(&["trace", "--", "sleep", "1"]).end_within(PATIENCE);
    assert_eq!(end.code, Some(0), "{}", end.text);
    assert!(end.text.contains("no CQ of the traced programs was seen") && end.text.contains("(sleep)"), "{}", end.text);
}

#[test]
#[ignore = "runs in the VM"]
fn what_is_not_there_is_said() {
    for (arguments, code, words) in [
        (["--pid", "999999"], 1, "999999"),
        (["--name", "no-such-program"], 1, "--wait"),
        (["--device", "mlx5_77"], 69, "rxe0"),
        (["--", "no-such-program-here"], 1, "cannot start"),
    ] {
        let end = rdmascope(&[&["trace"], &arguments[..]].concat()).end_within(PATIENCE);
        assert_eq!(end.code, Some(code), "{arguments:?}: {}", end.text);
        assert!(end.text.contains(words), "{arguments:?}: {}", end.text);
    }
}
