//! `cargo xtask tidy`: rules of the project that no compiler knows. Each rule looks at one file or at the whole tree and
//! returns what is wrong as `place: what`.

mod licences;
mod text;

use crate::{bpf, exit, paths, process};
use anyhow::Result;
use std::fs;
use std::path::Path;

/// Checks the working tree; the error lists every finding.
pub fn run() -> Result<()> {
    let root = paths::root();
    let listed =
        process::output(process::command("git").args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(&root))?;
    let mut findings = Vec::new();
    let mut count = 0_usize;
    for name in listed.split('\0').filter(|name| !name.is_empty()) {
        // A file may be listed and deleted.
        let Ok(bytes) = fs::read(root.join(name)) else { continue };
        let Ok(content) = String::from_utf8(bytes) else { continue };
        count += 1;
        findings.extend(text::check(name, &content));
        if Path::new(name).extension().is_some_and(|extension| extension == "md") {
            findings.extend(text::broken_links(&root, name, &content));
        }
    }
    if count == 0 {
        findings.push("git lists no file to check".to_owned());
    }
    findings.extend(licences::check()?);
    findings.extend(bpf::prebuilt_is_fresh().err().map(|error| format!("ebpf-probes/prebuilt: {error:#}")));
    if findings.is_empty() {
        println!("{count} files are tidy");
        return Ok(());
    }
    for finding in &findings {
        println!("{finding}");
    }
    Err(exit::coded(1, format!("{} findings", findings.len())))
}
