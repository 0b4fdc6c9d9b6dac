//! `manifest.json` on disk.
use super::{Manifest, SCHEMA_VERSION};
use crate::error::{Error, Result};
use crate::files::{MANIFEST_FILE, open_file};
use crate::text::printable;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

/// Largest manifest that is read; one of a session of hours has some megabytes.
const MANIFEST_MAX_BYTES: u64 = 64 << 20;

/// Reads a manifest. Its strings come without control characters: wherever they are printed, they steer no terminal.
///
/// # Errors
/// [`Error::NewerSchema`], [`Error::Manifest`], [`Error::Io`].
pub fn read(dir: &Path) -> Result<Manifest> {
    let path = dir.join(MANIFEST_FILE);
    let mut text = Vec::new();
    open_file(&path)?.take(MANIFEST_MAX_BYTES + 1).read_to_end(&mut text).map_err(Error::io("read", &path))?;
    if text.len() as u64 > MANIFEST_MAX_BYTES {
        return Err(Error::Manifest { path, why: format!("it is longer than {MANIFEST_MAX_BYTES} bytes, so it is no manifest") });
    }
    let bad = |error: serde_json::Error| Error::Manifest { path: path.clone(), why: error.to_string() };
    let mut value: serde_json::Value = serde_json::from_slice(&text).map_err(bad)?;
    clean(&mut value);
    if let Some(found) = value.get("schema_version").and_then(serde_json::Value::as_u64)
        && found > u64::from(SCHEMA_VERSION)
    {
        return Err(Error::NewerSchema { path, found: u32::try_from(found).unwrap_or(u32::MAX), known: SCHEMA_VERSION });
    }
    serde_json::from_value(value).map_err(bad)
}

/// Every string of the value, names of fields excepted, on one line and without control characters.
fn clean(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::String(text) => *text = printable(text),
        serde_json::Value::Array(items) => items.iter_mut().for_each(clean),
        serde_json::Value::Object(fields) => fields.values_mut().for_each(clean),
        _ => {}
    }
}

/// Writes `manifest.json` beside its final place, flushes it, and renames it there.
pub(crate) fn write(dir: &Path, manifest: &Manifest) -> Result<()> {
    let path = dir.join(MANIFEST_FILE);
    let beside = dir.join("manifest.json.new");
    let mut text = serde_json::to_vec_pretty(manifest).map_err(|why| Error::Manifest { path: path.clone(), why: why.to_string() })?;
    text.push(b'\n');
    let mut file = File::create(&beside).map_err(Error::io("create", &beside))?;
    file.write_all(&text).and_then(|()| file.sync_all()).map_err(Error::io("write", &beside))?;
    fs::rename(&beside, &path).map_err(Error::io("replace", &path))
}
