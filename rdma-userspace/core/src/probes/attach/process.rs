//! Threads of a process that is to be followed.

use std::path::Path;

use crate::probes::ProbeError;

/// Thread ids of process `pid`, from `/proc/PID/task`.
///
/// # Errors
/// [`ProbeError::NoProcess`] when there is no such process.
pub fn threads_of(pid: u32) -> Result<Vec<u32>, ProbeError> {
    let path = Path::new("/proc").join(pid.to_string()).join("task");
    let entries = std::fs::read_dir(path).map_err(|error| ProbeError::NoProcess { pid, error })?;
    Ok(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_threads_are_found_and_a_missing_process_is_an_error() {
        let pid = std::process::id();
        assert!(threads_of(pid).expect("our own").contains(&pid));
        assert!(matches!(threads_of(u32::MAX), Err(ProbeError::NoProcess { .. })));
    }
}
