//! Writes reports with made-up numbers, to look at the charts and the page: `cargo run -p analysis --example sample_report -- DIR`.
mod made_up;

use capture::Operation;
use std::path::Path;

fn main() -> anyhow::Result<()> {
    let Some(dir) = std::env::args().nth(1) else {
        anyhow::bail!("usage: sample_report DIR");
    };
    let dir = Path::new(&dir);
    let ops = Operation::MEASURED;
    let mut variants = vec![
        ("two-runs", made_up::report(&ops[..1], 20_000)),
        ("twelve-runs-emulated", made_up::emulated(made_up::report(ops, 10_000))),
        ("very-few-samples", made_up::report(&ops[..1], 12)),
        ("no-runs", made_up::report(&[], 0)),
    ];
    let mut one = made_up::report(&ops[3..4], 10_000);
    one.runs.truncate(1);
    one.comparisons.clear();
    one.runs[0].breakdown = None;
    one.runs[0].traced = None;
    one.runs[0].observer = None;
    variants.push(("one-run-without-probes", one));
    let mut huge = made_up::report(&ops[..1], 10_000);
    for run in &mut huge.runs {
        let mut samples = made_up::samples(3, 10_000, 4e6);
        samples.extend([u64::MAX, u64::MAX / 3, 7_000_000_000]);
        run.untraced = Some(made_up::latency(capture::manifest::Metric::Rtt, samples, 4));
    }
    variants.push(("huge-values", huge));
    for (name, report) in variants {
        println!("{}", analysis::show::html::write(&report, &dir.join(name))?.display());
    }
    Ok(())
}
