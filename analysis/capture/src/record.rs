//! A ring record of fixed size: the form in which events are sorted, stored in Parquet and read back.
use crate::error::Result as CaptureResult;
use crate::sample::Sample;
use ebpf_probes::{DecodeError, Event, Header, decode};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Body bytes that a record can hold; all kinds of today fit.
pub const BODY_MAX_BYTES: usize = 32;

/// A stream of samples or records by time.
pub type Stream<T> = Box<dyn Iterator<Item = CaptureResult<T>>>;

/// Anything that is sorted by a time.
pub trait Timed {
    /// Sort key in nanoseconds.
    fn time_ns(&self) -> u64;
}

/// A header and the body as up to four little-endian 64-bit words. `header.size` says how much of the body is used.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Record {
    /// As the probe wrote it.
    pub header: Header,
    /// The body, zero padded.
    pub words: [u64; BODY_MAX_BYTES / 8],
}

impl Timed for Record {
    fn time_ns(&self) -> u64 {
        self.header.ts_ns
    }
}

impl Timed for Sample {
    fn time_ns(&self) -> u64 {
        self.post_begin_ns
    }
}

impl Record {
    /// Words of the body that are used.
    pub fn used_words(&self) -> usize {
        (usize::from(self.header.size).saturating_sub(size_of::<Header>())).div_ceil(8).min(self.words.len())
    }

    /// Decodes the record.
    ///
    /// # Errors
    /// As [`decode`].
    pub fn event(&self) -> Result<Event, DecodeError> {
        decode(self.as_bytes())
    }
}

/// The size of the whole record at the start of `bytes`; `None` when it is cut or its size field is impossible.
pub(crate) fn record_size(bytes: &[u8]) -> Option<usize> {
    let (header, _) = Header::read_from_prefix(bytes).ok()?;
    let size = usize::from(header.size);
    (size >= size_of::<Header>() && size <= bytes.len()).then_some(size)
}

/// What [`split`] found at the start of some bytes.
#[derive(Debug)]
pub enum Split<'a> {
    /// A record and what follows it.
    Whole(Record, &'a [u8]),
    /// A record whose body is too long to keep (a kind of a newer version), and what follows it.
    TooLong(Header, &'a [u8]),
    /// Not a whole record.
    Cut,
}

/// Takes the first ring record off `bytes`.
pub fn split(bytes: &[u8]) -> Split<'_> {
    let Some(size) = record_size(bytes) else { return Split::Cut };
    let (one, rest) = bytes.split_at(size);
    let mut record = Record::default();
    if size > size_of::<Record>() {
        return match Header::read_from_prefix(one) {
            Ok((header, _)) => Split::TooLong(header, rest),
            Err(_) => Split::Cut,
        };
    }
    record.as_mut_bytes()[..size].copy_from_slice(one);
    record.header.size = size.next_multiple_of(8) as u16;
    Split::Whole(record, rest)
}
