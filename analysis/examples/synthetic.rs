//! Writes synthetic captures into a folder: `cargo run -p analysis --example synthetic -- DIR [SAMPLES_PER_ROUND]`.
//! They are for looking at reports and charts; their durations are made up.
use analysis::testing::{Scenario, generate, write_log};
use capture::{run_dir_name, seal};
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let dir = PathBuf::from(arguments.next().ok_or("usage: synthetic DIR [SAMPLES_PER_ROUND]")?);
    let per_round = arguments.next().map_or(Ok(2_000), |text| text.parse())?;
    for (index, scenario) in (0u32..).zip(Scenario::ALL) {
        let mut fixture = generate(*scenario, 10, per_round, u64::from(index) + 1);
        fixture.manifest.run.index = index;
        let (op, mode) = scenario.op_mode();
        let run = dir.join(run_dir_name("synthetic", index, op.name(), mode.name()));
        write_log(&fixture, &run)?;
        seal(&run)?;
        println!("{}", run.display());
    }
    Ok(())
}
