//! docs/stages.md shows the tables of the code; this test compares. `UPDATE_DOCS=1 cargo test -p analysis --test host docs` rewrites it.
use analysis::join::flags::Flag;
use analysis::stages::{Point, STAGES};
use std::fmt::Write;
use std::path::Path;

const BEGIN: &str = "<!-- generated from analysis/src/stages/ and join/flags.rs: begin -->\n";
const END: &str = "<!-- end of the generated part -->\n";

fn tables() -> String {
    let mut text = String::from("\n## Milestones\n\n| milestone | what it is |\n|---|---|\n");
    for point in Point::ALL {
        let _ = writeln!(text, "| {} |{} |", point.name(), point.meaning());
    }
    text.push_str("\n## Stages\n\n| stage | where | from → to | what the time is spent on |\n|---|---|---|---|\n");
    // The time that no stage covers is no stage.
    for stage in STAGES.iter().filter(|stage| !stage.id.is_unattributed()) {
        let pairs: Vec<String> = stage.between.iter().map(|(from, to)| format!("{} → {}", from.name(), to.name())).collect();
        let _ = writeln!(text, "| {} | {} | {} | {} |", stage.name, stage.place.name(), pairs.join("; "), stage.meaning);
    }
    text.push_str("\n## Flags\n\n| flag | what it says |\n|---|---|\n");
    for flag in Flag::ALL {
        let _ = writeln!(text, "| {} |{} |", flag.name(), flag.meaning());
    }
    text.push('\n');
    text
}

#[test]
fn the_stage_page_shows_the_tables_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/stages.md");
    let text = std::fs::read_to_string(&path).expect("docs/stages.md is there");
    let begin = text.find(BEGIN).expect("begin mark") + BEGIN.len();
    let end = text.find(END).expect("end mark");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{}{}{}", &text[..begin], tables(), &text[end..])).expect("writes");
        return;
    }
    assert!(text[begin..end] == tables(), "docs/stages.md is stale: UPDATE_DOCS=1 cargo test -p analysis --test host docs");
}
