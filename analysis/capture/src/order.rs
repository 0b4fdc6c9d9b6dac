//! Sorting by time with bounded memory: sorted runs are spilled to unnamed temporary files and merged.
//!
//! The sort is stable, so records of one CPU with the same time stay in the order of the ring. [`Ties`] then settles records of
//! several CPUs with the same time: each CPU keeps its own order, and among the CPUs' next records the one that comes first in
//! the stage table goes first.
use crate::kind_order::kind_rank;
use crate::record::{Record, Timed};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Items held in memory before a run is spilled.
pub const RUN_ITEMS: usize = 1 << 20;

/// What can be sorted: a plain value with a time.
pub trait Item: Timed + Copy + FromBytes + IntoBytes + Immutable {}
impl<T: Timed + Copy + FromBytes + IntoBytes + Immutable> Item for T {}

/// Takes items in any order, gives them back by time.
#[derive(Debug)]
pub struct Sorter<T> {
    items: Vec<T>,
    run_items: usize,
    runs: Vec<File>,
}

impl<T: Item> Sorter<T> {
    /// A sorter that holds at most `run_items` items in memory.
    pub fn new(run_items: usize) -> Self {
        Sorter { items: Vec::new(), run_items: run_items.max(1), runs: Vec::new() }
    }

    /// Takes one item.
    ///
    /// # Errors
    /// When a temporary file cannot be written.
    pub fn push(&mut self, item: T) -> io::Result<()> {
        self.items.push(item);
        if self.items.len() >= self.run_items {
            self.items.sort_by_key(Timed::time_ns);
            let mut out = BufWriter::new(tempfile::tempfile()?);
            for item in self.items.drain(..) {
                out.write_all(item.as_bytes())?;
            }
            self.runs.push(out.into_inner().map_err(io::IntoInnerError::into_error)?);
        }
        Ok(())
    }

    /// All items by time.
    ///
    /// # Errors
    /// When a temporary file cannot be read.
    pub fn finish(mut self) -> io::Result<Sorted<T>> {
        self.items.sort_by_key(Timed::time_ns);
        let mut sources = Vec::new();
        for mut file in self.runs {
            file.rewind()?;
            sources.push(Source::Spilled(BufReader::with_capacity(1 << 16, file)));
        }
        sources.push(Source::Memory(self.items.into_iter()));
        let mut sorted = Sorted { sources, heads: Vec::new(), heap: BinaryHeap::new() };
        for index in 0..sorted.sources.len() {
            let head = sorted.sources[index].next()?;
            sorted.heads.push(None);
            sorted.put(index, head);
        }
        Ok(sorted)
    }
}

#[derive(Debug)]
enum Source<T> {
    Memory(std::vec::IntoIter<T>),
    Spilled(BufReader<File>),
}

impl<T: Item> Source<T> {
    fn next(&mut self) -> io::Result<Option<T>> {
        match self {
            Source::Memory(items) => Ok(items.next()),
            Source::Spilled(file) => {
                let mut item = T::new_zeroed();
                // Runs are whole items: an end inside one is an end all the same, and the counts are checked by the caller.
                let mut bytes = vec![0; size_of::<T>()];
                match file.read_exact(&mut bytes) {
                    Ok(()) => {}
                    Err(end) if end.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                    Err(other) => return Err(other),
                }
                if let Ok(read) = T::read_from_bytes(&bytes) {
                    item = read;
                }
                Ok(Some(item))
            }
        }
    }
}

/// The merged runs.
#[derive(Debug)]
pub struct Sorted<T> {
    sources: Vec<Source<T>>,
    heads: Vec<Option<T>>,
    heap: BinaryHeap<Reverse<(u64, usize)>>,
}

impl<T: Item> Sorted<T> {
    fn put(&mut self, index: usize, head: Option<T>) {
        if let Some(item) = head {
            self.heap.push(Reverse((item.time_ns(), index)));
        }
        self.heads[index] = head;
    }
}

impl<T: Item> Iterator for Sorted<T> {
    type Item = io::Result<T>;

    fn next(&mut self) -> Option<io::Result<T>> {
        let Reverse((_, index)) = self.heap.pop()?;
        let item = self.heads[index].take()?;
        match self.sources[index].next() {
            Ok(head) => self.put(index, head),
            Err(error) => return Some(Err(error)),
        }
        Some(Ok(item))
    }
}

/// Settles the order of records with equal times; see the module's text.
#[derive(Debug)]
pub struct Ties<I> {
    inner: I,
    ahead: Option<Record>,
    group: VecDeque<Record>,
}

impl<I: Iterator<Item = io::Result<Record>>> Ties<I> {
    /// Over records that are sorted by time.
    pub fn new(inner: I) -> Self {
        Ties { inner, ahead: None, group: VecDeque::new() }
    }

    fn fill(&mut self) -> io::Result<()> {
        let first = match self.ahead.take() {
            Some(record) => record,
            None => match self.inner.next().transpose()? {
                Some(record) => record,
                None => return Ok(()),
            },
        };
        self.group.push_back(first);
        while let Some(next) = self.inner.next().transpose()? {
            if next.header.ts_ns != first.header.ts_ns {
                self.ahead = Some(next);
                break;
            }
            self.group.push_back(next);
        }
        if self.group.iter().any(|r| r.header.cpu != first.header.cpu) {
            settle(&mut self.group);
        }
        Ok(())
    }
}

impl<I: Iterator<Item = io::Result<Record>>> Iterator for Ties<I> {
    type Item = io::Result<Record>;

    fn next(&mut self) -> Option<io::Result<Record>> {
        if self.group.is_empty()
            && let Err(error) = self.fill()
        {
            return Some(Err(error));
        }
        self.group.pop_front().map(Ok)
    }
}

fn settle(group: &mut VecDeque<Record>) {
    let mut cpus: Vec<(u32, VecDeque<Record>)> = Vec::new();
    for record in group.drain(..) {
        match cpus.iter_mut().find(|(cpu, _)| *cpu == record.header.cpu) {
            Some((_, queue)) => queue.push_back(record),
            None => cpus.push((record.header.cpu, VecDeque::from([record]))),
        }
    }
    cpus.sort_by_key(|(cpu, _)| *cpu);
    loop {
        let next = cpus
            .iter_mut()
            .filter(|(_, queue)| !queue.is_empty())
            .min_by_key(|(_, queue)| queue.front().map_or(usize::MAX, |record| kind_rank(record.header.kind)));
        match next.and_then(|(_, queue)| queue.pop_front()) {
            Some(record) => group.push_back(record),
            None => return,
        }
    }
}
