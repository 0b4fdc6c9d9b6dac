//! The BPF object that was built into this program.

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/rdmascope-probes"));

/// Whether this build carries the object.
pub fn has_object() -> bool {
    !OBJECT.is_empty()
}

/// The object's bytes; empty when this build carries none.
pub fn object() -> &'static [u8] {
    OBJECT
}
