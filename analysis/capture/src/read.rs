//! Opening a capture, sealed or still a log, whole or cut: finding it, its manifest, its samples and events by time.
use crate::error::{Error, Result};
use crate::files::{EVENTS_FILE, LOG_FILE, MANIFEST_FILE, SAMPLES_FILE, open_file};
use crate::log::{BLOCK_MAX_BYTES, BlockHeader, KIND_END, KIND_EVENTS, KIND_SAMPLES, MAGIC};
use crate::manifest::{self, Manifest};
use crate::order::{RUN_ITEMS, Sorter, Ties};
use crate::parquet_file;
use crate::record::{Record, Split, Stream, split};
use crate::sample::Sample;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use zerocopy::FromBytes;

/// Folders below the opened one that are searched for captures.
const FIND_DEPTH: usize = 8;

/// An open capture.
#[derive(Debug)]
pub struct Capture {
    /// Its folder.
    pub dir: PathBuf,
    /// Its manifest.
    pub manifest: Manifest,
    /// What a reader must know: what was cut off, what is damaged.
    pub notes: Vec<String>,
    /// Records of kinds that this version does not know or cannot hold, by the kind's number.
    pub unknown_kinds: BTreeMap<u16, u64>,
    /// True when sealed; false when it is a log.
    pub sealed: bool,
}

/// The samples and events of a capture.
pub struct Streams {
    /// By `post_begin_ns`.
    pub samples: Stream<Sample>,
    /// By time, ties settled (see [`crate::order`]).
    pub records: Stream<Record>,
}

/// Finds the captures at `dir`: itself, or every folder below it that holds one, in the order of their paths.
///
/// # Errors
/// [`Error::NoCapture`] when there is none, [`Error::Io`] when a folder cannot be read.
pub fn find(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    collect(dir, FIND_DEPTH, &mut found)?;
    if found.is_empty() {
        return Err(Error::NoCapture { path: dir.to_path_buf() });
    }
    found.sort();
    Ok(found)
}

fn collect(dir: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<()> {
    if dir.join(MANIFEST_FILE).is_file() {
        found.push(dir.to_path_buf());
        return Ok(());
    }
    if depth == 0 {
        return Ok(());
    }
    for entry in fs::read_dir(dir).map_err(Error::io("read the folder", dir))? {
        let entry = entry.map_err(Error::io("read the folder", dir))?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect(&entry.path(), depth - 1, found)?;
        }
    }
    Ok(())
}

impl Capture {
    /// Opens the capture in `dir`. Nothing but the manifest is read yet.
    ///
    /// # Errors
    /// As [`manifest::read`]; [`Error::NoCapture`] when there is a manifest but neither a log nor sealed files.
    pub fn open(dir: &Path) -> Result<Capture> {
        if !dir.join(MANIFEST_FILE).is_file() {
            return Err(Error::NoCapture { path: dir.to_path_buf() });
        }
        let manifest = manifest::read(dir)?;
        // A log beside sealed files means that sealing was interrupted: the log is the truth until it is gone.
        let sealed = !dir.join(LOG_FILE).exists();
        if sealed {
            for name in [SAMPLES_FILE, EVENTS_FILE] {
                let path = dir.join(name);
                fs::metadata(&path).map_err(Error::io("open", &path))?;
            }
        }
        Ok(Capture { dir: dir.to_path_buf(), manifest, notes: Vec::new(), unknown_kinds: BTreeMap::new(), sealed })
    }

    /// The samples and the events, each by time. Of a log everything up to the last whole block is read; [`Capture::notes`]
    /// then says what was left out.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Parquet`], or [`Error::Damaged`] when a file is not of this format at all.
    pub fn streams(&mut self) -> Result<Streams> {
        if self.sealed {
            let sealed = self.manifest.sealed;
            return Ok(Streams {
                samples: parquet_file::read_samples(&self.dir, sealed)?,
                records: parquet_file::read_records(&self.dir, sealed)?,
            });
        }
        self.log_streams()
    }

    /// Only the samples, by time.
    ///
    /// # Errors
    /// As [`Capture::streams`].
    pub fn samples(&mut self) -> Result<Stream<Sample>> {
        if self.sealed { parquet_file::read_samples(&self.dir, self.manifest.sealed) } else { Ok(self.log_streams()?.samples) }
    }

    fn log_streams(&mut self) -> Result<Streams> {
        let path = self.dir.join(LOG_FILE);
        let temporary = || Error::io("sort with temporary files the contents of", &path);
        let mut samples = Sorter::new(RUN_ITEMS);
        let mut records = Sorter::new(RUN_ITEMS);
        self.unknown_kinds.clear();
        let mut blocks = LogBlocks::open(&path)?;
        while let Some(block) = blocks.next()? {
            match block.kind {
                KIND_SAMPLES => {
                    let mut rest = &block.payload[..];
                    while let Ok((sample, behind)) = Sample::read_from_prefix(rest) {
                        samples.push(sample).map_err(temporary())?;
                        rest = behind;
                    }
                }
                KIND_EVENTS => {
                    let mut rest = &block.payload[..];
                    loop {
                        match split(rest) {
                            Split::Whole(record, behind) => {
                                if ebpf_probes::Kind::from_u16(record.header.kind).is_none() {
                                    *self.unknown_kinds.entry(record.header.kind).or_default() += 1;
                                }
                                records.push(record).map_err(temporary())?;
                                rest = behind;
                            }
                            Split::TooLong(header, behind) => {
                                *self.unknown_kinds.entry(header.kind).or_default() += 1;
                                rest = behind;
                            }
                            Split::Cut => break,
                        }
                    }
                }
                _ => {}
            }
        }
        self.notes.retain(|note| !note.starts_with(NOTE_PREFIX));
        self.notes.extend(blocks.note.iter().map(|note| format!("{NOTE_PREFIX}{note}")));
        let (for_samples, for_records) = (path.clone(), path.clone());
        let samples = samples.finish().map_err(temporary())?;
        let records = Ties::new(records.finish().map_err(temporary())?);
        Ok(Streams {
            samples: Box::new(samples.map(move |item| item.map_err(Error::io("sort", &for_samples)))),
            records: Box::new(records.map(move |item| item.map_err(Error::io("sort", &for_records)))),
        })
    }
}

const NOTE_PREFIX: &str = "capture.log: ";

/// One block of a log.
#[derive(Debug)]
pub struct Block {
    /// Kind number; unknown ones may be skipped.
    pub kind: u32,
    /// Records in it.
    pub count: u32,
    /// Its bytes.
    pub payload: Vec<u8>,
}

/// The whole, undamaged blocks of a log from its start.
#[derive(Debug)]
pub struct LogBlocks {
    path: PathBuf,
    file: BufReader<File>,
    at_byte: u64,
    end_byte: u64,
    blocks: u64,
    done: bool,
    /// After the last block: what was left out, `None` when the log ended in order.
    pub note: Option<String>,
    /// True when the writer ended the log in order.
    pub ended: bool,
}

impl LogBlocks {
    /// Opens a log; an empty file or a cut magic is a log without blocks.
    ///
    /// # Errors
    /// [`Error::Damaged`] when the file is something else, [`Error::Io`].
    pub fn open(path: &Path) -> Result<LogBlocks> {
        let file = open_file(path)?;
        let end_byte = file.metadata().map_err(Error::io("open", path))?.len();
        let mut file = BufReader::with_capacity(1 << 16, file);
        let mut magic = Vec::new();
        file.by_ref().take(MAGIC.len() as u64).read_to_end(&mut magic).map_err(Error::io("read", path))?;
        if !MAGIC.starts_with(&magic) {
            return Err(Error::damaged(path, "it does not begin like a capture log"));
        }
        let cut = magic.len() < MAGIC.len();
        let note = cut.then(|| "nothing was recorded (the log ends within its first bytes)".to_string());
        Ok(LogBlocks { path: path.into(), file, at_byte: magic.len() as u64, end_byte, blocks: 0, done: cut, note, ended: false })
    }

    /// The next whole block.
    ///
    /// # Errors
    /// [`Error::Io`]. A cut or damaged block is not an error: it ends the stream and [`LogBlocks::note`] tells.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Block>> {
        if self.done {
            return Ok(None);
        }
        let left = self.end_byte.saturating_sub(self.at_byte);
        if left == 0 {
            return Ok(self.stop("no end mark: the recording was cut short (or goes on); all blocks are whole".into()));
        }
        let mut head = [0; size_of::<BlockHeader>()];
        if left < head.len() as u64 {
            return Ok(self.stop(format!("cut: the last {left} bytes are not a whole block and were left out")));
        }
        self.file.read_exact(&mut head).map_err(Error::io("read", &self.path))?;
        let header: BlockHeader = zerocopy::transmute!(head);
        let length = header.length as usize;
        if length > BLOCK_MAX_BYTES {
            return Ok(self.stop(format!(
                "damaged: block {} at byte {} has an impossible length; {left} bytes were left out",
                self.blocks, self.at_byte
            )));
        }
        if left < (head.len() + length) as u64 {
            return Ok(self.stop(format!("cut: the last {left} bytes are not a whole block and were left out")));
        }
        let mut payload = vec![0; length];
        self.file.read_exact(&mut payload).map_err(Error::io("read", &self.path))?;
        if header.crc32c != header.expected_crc(&payload) {
            return Ok(self.stop(format!(
                "damaged: block {} at byte {} does not match its checksum; it and all behind it ({left} bytes) were left out",
                self.blocks, self.at_byte
            )));
        }
        self.at_byte += (head.len() + length) as u64;
        if header.kind == KIND_END {
            (self.done, self.ended) = (true, true);
            return Ok(None);
        }
        self.blocks += 1;
        Ok(Some(Block { kind: header.kind, count: header.count, payload }))
    }

    fn stop(&mut self, note: String) -> Option<Block> {
        (self.done, self.note) = (true, Some(note));
        None
    }
}
