//! Sealing: the log becomes `samples.parquet` and `events.parquet`, and goes away only after both files were read back and hold the same.
use crate::error::{Error, Result};
use crate::files::{EVENTS_FILE, LOG_FILE, SAMPLES_FILE};
use crate::manifest::{self, Sealed, Sum};
use crate::parquet_file::{read_records_from, read_samples_from, write_records, write_samples};
use crate::read::{Capture, LogBlocks};
use crate::record::Stream;
use std::fs;
use std::path::{Path, PathBuf};
use zerocopy::IntoBytes;

/// Seals the capture in `dir`. The log must have ended in order, or nobody may be writing it any more: that is the caller's to know.
/// A capture that is sealed already is left alone.
///
/// # Errors
/// Everything that reading and writing can meet; the log is removed only when all went well.
pub fn seal(dir: &Path) -> Result<Option<Sealed>> {
    let mut capture = Capture::open(dir)?;
    if capture.sealed {
        return Ok(None);
    }
    let streams = capture.streams()?;
    let samples = write_samples(&beside(dir, SAMPLES_FILE), streams.samples)?;
    let records = write_records(&beside(dir, EVENTS_FILE), streams.records)?;
    check(dir, SAMPLES_FILE, samples, read_samples_from(&beside(dir, SAMPLES_FILE))?)?;
    check(dir, EVENTS_FILE, records, read_records_from(&beside(dir, EVENTS_FILE))?)?;
    for name in [SAMPLES_FILE, EVENTS_FILE] {
        let path = dir.join(name);
        fs::rename(beside(dir, name), &path).map_err(Error::io("replace", &path))?;
    }
    let sealed = Sealed { samples, events: records };
    let mut manifest = capture.manifest.clone();
    manifest.sealed = Some(sealed);
    manifest.notes.extend(capture.notes.iter().cloned());
    manifest.notes.extend(capture.unknown_kinds.iter().map(|(kind, n)| format!("{n} records of kind {kind}, unknown to this version")));
    manifest::write(dir, &manifest)?;
    let log = dir.join(LOG_FILE);
    fs::remove_file(&log).map_err(Error::io("remove", &log))?;
    Ok(Some(sealed))
}

/// True when the log in `dir` has its end mark: nobody writes it any more and it may be sealed.
///
/// # Errors
/// As [`LogBlocks::open`].
pub fn log_ended(dir: &Path) -> Result<bool> {
    let mut blocks = LogBlocks::open(&dir.join(LOG_FILE))?;
    while blocks.next()?.is_some() {}
    Ok(blocks.ended)
}

fn beside(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.new"))
}

fn check<T: IntoBytes + zerocopy::Immutable>(dir: &Path, name: &str, written: Sum, read: Stream<T>) -> Result<()> {
    let mut sum = Sum::default();
    for item in read {
        sum.add(item?.as_bytes());
    }
    if sum == written {
        return Ok(());
    }
    Err(Error::Verify {
        path: dir.into(),
        why: format!(
            "{name}: wrote {} rows, read back {}, checksums {:08x} and {:08x}",
            written.rows, sum.rows, written.crc32c, sum.crc32c
        ),
    })
}
