//! The append-only log of a capture that is being recorded, and its writer.
//!
//! `capture.log` is [`MAGIC`], then blocks: [`BlockHeader`] and its payload, at most [`BLOCK_MAX_BYTES`] together, each written
//! in one write. A kill loses at most the block that was being written; a reader opens what is whole.
use crate::error::{Error, Result};
use crate::files::{LOG_FILE, MANIFEST_FILE};
use crate::manifest::{self, Manifest};
use crate::record::record_size;
use crate::sample::Sample;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// First bytes of a log.
pub const MAGIC: &[u8; 8] = b"RDMASCL1";
/// Largest block, header included.
pub const BLOCK_MAX_BYTES: usize = 1 << 20;
/// Block of [`Sample`]s.
pub const KIND_SAMPLES: u32 = 1;
/// Block of ring records, each `header.size` long.
pub const KIND_EVENTS: u32 = 2;
/// The writer ended in order; no payload, `count` is the number of blocks before it.
pub const KIND_END: u32 = 3;

/// Header of a block; little-endian.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct BlockHeader {
    /// Bytes of the payload.
    pub length: u32,
    /// [`KIND_SAMPLES`], [`KIND_EVENTS`] or [`KIND_END`].
    pub kind: u32,
    /// Records in the payload.
    pub count: u32,
    /// CRC-32C over length, kind, count and payload.
    pub crc32c: u32,
}

impl BlockHeader {
    /// The header of this payload.
    pub fn new(kind: u32, count: u32, payload: &[u8]) -> BlockHeader {
        let mut header = BlockHeader { length: payload.len() as u32, kind, count, crc32c: 0 };
        header.crc32c = header.expected_crc(payload);
        header
    }

    /// The CRC that this header must carry with this payload.
    pub fn expected_crc(&self, payload: &[u8]) -> u32 {
        crc32c::crc32c_append(crc32c::crc32c(&self.as_bytes()[..12]), payload)
    }
}

const HEADER_BYTES: usize = size_of::<BlockHeader>();
const PAYLOAD_MAX_BYTES: usize = BLOCK_MAX_BYTES - HEADER_BYTES;

/// Writes a capture while it is recorded. Used by one thread; nothing is held back: when a call returns, the kernel has the bytes.
#[derive(Debug)]
pub struct LogWriter {
    dir: PathBuf,
    path: PathBuf,
    file: File,
    block: Vec<u8>,
    blocks: u32,
}

impl LogWriter {
    /// Makes the folder `dir` (and those above it), its manifest and an empty log.
    ///
    /// # Errors
    /// [`Error::Exists`] when `dir` holds a capture already, [`Error::Io`] when the file system refuses.
    pub fn create(dir: &Path, manifest: &Manifest) -> Result<LogWriter> {
        fs::create_dir_all(dir).map_err(Error::io("create", dir))?;
        if dir.join(MANIFEST_FILE).exists() {
            return Err(Error::Exists { path: dir.to_path_buf() });
        }
        let path = dir.join(LOG_FILE);
        let mut file = OpenOptions::new().append(true).create_new(true).open(&path).map_err(Error::io("create", &path))?;
        file.write_all(MAGIC).map_err(Error::io("append to", &path))?;
        manifest::write(dir, manifest)?;
        Ok(LogWriter { dir: dir.to_path_buf(), path, file, block: Vec::with_capacity(BLOCK_MAX_BYTES), blocks: 0 })
    }

    /// The folder of the capture.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Appends samples.
    ///
    /// # Errors
    /// [`Error::Io`], for example a full disk.
    pub fn samples(&mut self, samples: &[Sample]) -> Result<()> {
        for part in samples.chunks(PAYLOAD_MAX_BYTES / size_of::<Sample>()) {
            self.append(KIND_SAMPLES, part.len() as u32, part.as_bytes())?;
        }
        Ok(())
    }

    /// Appends ring records that lie back to back, each `header.size` long.
    ///
    /// # Errors
    /// [`Error::Damaged`] when `raw` is not whole records (nothing of it is written from the bad record on), [`Error::Io`].
    pub fn events(&mut self, raw: &[u8]) -> Result<()> {
        let (mut from, mut to, mut count) = (0, 0, 0);
        while to < raw.len() {
            let size = record_size(&raw[to..]).ok_or_else(|| {
                Error::damaged(&self.path, format!("the record at byte {to} of {} handed to the log is not whole", raw.len()))
            })?;
            if to + size - from > PAYLOAD_MAX_BYTES {
                self.append(KIND_EVENTS, count, &raw[from..to])?;
                (from, count) = (to, 0);
            }
            (to, count) = (to + size, count + 1);
        }
        if count > 0 { self.append(KIND_EVENTS, count, &raw[from..to]) } else { Ok(()) }
    }

    /// Rewrites the manifest as a whole: a reader sees the old one or the new one, never a half.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn manifest(&self, manifest: &Manifest) -> Result<()> {
        manifest::write(&self.dir, manifest)
    }

    /// Ends the log in order and writes the final manifest. Returns the folder, ready to be sealed.
    ///
    /// # Errors
    /// [`Error::Io`]; what was appended before stays readable.
    pub fn finish(mut self, manifest: &Manifest) -> Result<PathBuf> {
        let blocks = self.blocks;
        self.append(KIND_END, blocks, &[])?;
        self.file.sync_all().map_err(Error::io("flush", &self.path))?;
        manifest::write(&self.dir, manifest)?;
        Ok(self.dir)
    }

    fn append(&mut self, kind: u32, count: u32, payload: &[u8]) -> Result<()> {
        self.block.clear();
        self.block.extend_from_slice(BlockHeader::new(kind, count, payload).as_bytes());
        self.block.extend_from_slice(payload);
        self.file.write_all(&self.block).map_err(Error::io("append to", &self.path))?;
        self.blocks += 1;
        Ok(())
    }
}
