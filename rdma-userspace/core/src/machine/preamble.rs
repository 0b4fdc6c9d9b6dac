//! What every manifest begins with: the tool, the time, the host.
use super::host::host;
use capture::Manifest;
use capture::manifest::Run;
use std::time::{SystemTime, UNIX_EPOCH};

/// Version of this tool, as captures, peers and reports of findings tell it.
pub const TOOL_VERSION: &str = env!("CARGO_PKG_VERSION");

/// The manifest of a recording that begins now, on this machine.
pub fn manifest(run: Run) -> Manifest {
    Manifest {
        tool_version: TOOL_VERSION.to_owned(),
        tool_revision: option_env!("RDMASCOPE_REVISION").map(str::to_owned),
        started_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs()),
        host: host(),
        ..Manifest::new(run)
    }
}
