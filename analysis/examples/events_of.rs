//! The kernel's events of single samples, in order, with the chain that the join made of them: for whoever doubts a stage.
//!
//! `cargo run -p analysis --example events_of -- CAPTURE FLAG|negative|0xWRID [COUNT]`
use analysis::join::flags::Flag;
use analysis::join::{Options, Outcome, run};
use capture::{Capture, Record};
use std::error::Error;
use std::io::Write;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [dir, wanted, rest @ ..] = &words[..] else { return Err("CAPTURE FLAG|negative|0xWRID [COUNT]".into()) };
    let count = rest.first().map_or(Ok(3), |word| word.parse())?;
    let flag = Flag::ALL.iter().find(|flag| flag.name() == wanted).copied();
    let wr_id = wanted.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
    if flag.is_none() && wr_id.is_none() && wanted != "negative" {
        return Err(format!("{wanted} is neither a flag nor `negative` nor a wr_id").into());
    }
    let is_wanted = |outcome: &Outcome, begin_wr_id| match (flag, wr_id) {
        (Some(flag), _) => outcome.joined.flags.has(flag),
        (None, Some(wr_id)) => begin_wr_id == wr_id,
        (None, None) => outcome.joined.chain.gaps().any(|gap| gap.duration_ns < 0),
    };
    let mut capture = Capture::open(std::path::Path::new(dir))?;
    let manifest = capture.manifest.clone();
    let records: Vec<Record> = capture.streams()?.records.collect::<Result<_, _>>()?;
    let streams = capture.streams()?;
    let mut out = std::io::stdout().lock();
    let (mut shown, mut failure) = (0, None);
    run(&manifest, streams.samples, streams.records, Options::default(), &mut |sample, outcome| {
        if shown == count || failure.is_some() || !is_wanted(outcome, sample.begin_wr_id) {
            return;
        }
        shown += 1;
        let mut show = || -> std::io::Result<()> {
            let at = |ns: u64| ns as i64 - sample.post_begin_ns as i64;
            let flags: Vec<&str> = outcome.joined.flags.iter().map(|flag| flag.name()).collect();
            writeln!(out, "wr_id {:#x}, round {}, {}", sample.begin_wr_id, sample.round, flags.join(" "))?;
            writeln!(
                out,
                "  post end {} arm {} wait {}..{} done {}",
                at(sample.post_end_ns),
                at(sample.arm_ns),
                at(sample.wait_begin_ns),
                at(sample.wait_end_ns),
                at(sample.done_ns)
            )?;
            for gap in outcome.joined.chain.gaps() {
                let stage = gap.stage;
                writeln!(out, "  {:>9} {:>9}  {} → {}: {stage}", gap.start_ns, gap.duration_ns, gap.from.name(), gap.to.name())?;
            }
            let first = records.partition_point(|record| record.header.ts_ns + 20_000 < sample.post_begin_ns);
            for record in records[first..].iter().take_while(|record| record.header.ts_ns <= sample.done_ns + 5_000) {
                let Ok(event) = record.event() else { continue };
                writeln!(out, "  {:>9} cpu {} pid {:>5}  {:?}", at(event.header.ts_ns), event.header.cpu, event.header.pid, event.body)?;
            }
            Ok(())
        };
        failure = show().err();
    })?;
    failure.map_or(Ok(()), |error| Err(error.into()))
}
