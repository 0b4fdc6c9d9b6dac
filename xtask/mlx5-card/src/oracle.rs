//! The device's own log of what it did: what a test compares a capture with.
//!
//! JSON lines. Every line has `t_ns` (nanoseconds of the device's clock, which is also the clock of CQE timestamps and of
//! the initialization segment's timer), `function` (which card of the process) and `kind`. What else a kind has is in
//! [`Entry`]; numbers of CQs, queue pairs and EQs are the ones that the driver sees.

use serde::Serialize;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

/// Frequency of the device's clock, in kHz: one tick is one nanosecond.
pub const CLOCK_KHZ: u64 = 1_000_000;

/// One line, without the time and the function.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Entry {
    /// A CQE became visible to the guest.
    Cqe {
        /// Its completion queue.
        cq: u32,
        /// Counted per CQ from 0, never wrapping.
        index: u64,
        /// The queue pair that it is for.
        qp: u32,
        /// Opcode of the interface: 0 requester, 1 WRITE with immediate, 2 SEND, 3 SEND with immediate, 13 and 14 errors.
        opcode: u8,
        /// Index of the work queue's element, as in the CQE.
        wqe: u16,
        /// Error syndrome, 0 for success.
        syndrome: u8,
    },
    /// An EQE became visible to the guest.
    Eqe {
        /// Its event queue.
        eq: u32,
        /// Counted per EQ from 0.
        index: u64,
        /// Event type of the interface: 0 completion, 0x0a command, …
        event: u8,
        /// The completion queue, for completions.
        #[serde(skip_serializing_if = "Option::is_none")]
        cq: Option<u32>,
        /// Index of the CQE that asked for it, for completions.
        #[serde(skip_serializing_if = "Option::is_none")]
        cqe: Option<u64>,
    },
    /// An interrupt was raised.
    Interrupt {
        /// MSI-X vector.
        vector: u32,
        /// The event queue whose entries asked for it.
        eq: u32,
        /// Index of the first EQE since the interrupt before.
        first_eqe: u64,
        /// Index of the last EQE that was there when it was raised.
        last_eqe: u64,
    },
    /// A CQ was armed.
    Arm {
        /// The completion queue.
        cq: u32,
        /// The arm's sequence, 0 to 3.
        sequence: u8,
        /// Consumer counter that came with it.
        consumer: u32,
        /// Whether only solicited completions count.
        solicited: bool,
        /// `armed`, `fired` (a CQE was there already) or `ignored` (the event of this sequence was raised before).
        outcome: &'static str,
    },
    /// A command was executed.
    Command {
        /// Its opcode.
        opcode: u16,
        /// Its name; `unknown` has none and was answered with BAD_OP.
        name: &'static str,
        /// Status of the answer, 0 for success.
        status: u8,
        /// What it made or was about, for a human.
        #[serde(skip_serializing_if = "String::is_empty")]
        note: String,
    },
    /// A completion queue was full and a CQE was lost.
    Overrun {
        /// The completion queue.
        cq: u32,
        /// The queue pair whose CQE was lost.
        qp: u32,
    },
    /// A queue pair went into the error state.
    QpError {
        /// The queue pair.
        qp: u32,
        /// Why.
        why: String,
    },
    /// A message was sent again, was refused for want of a receive, or was dropped by the wire.
    Wire {
        /// The queue pair that had sent it.
        qp: u32,
        /// Its sequence number.
        sequence: u32,
        /// `lost`, `reordered`, `timeout`, `receiver-not-ready`, `out-of-sequence`, `duplicate`.
        what: &'static str,
    },
    /// A knob was turned while the guest ran.
    Knob {
        /// Its name as in the table of knobs (`loss-ppm` for `--loss`); `port` and `fail-qp` for the two actions.
        name: &'static str,
        /// Its value from now on, or that of the action.
        value: u32,
    },
    /// Something that the card does not know or that went wrong.
    Trouble {
        /// What.
        what: String,
    },
}

#[derive(Serialize)]
struct Line<'a> {
    t_ns: u64,
    function: usize,
    #[serde(flatten)]
    entry: &'a Entry,
}

/// The log and the device's clock.
#[derive(Debug)]
pub struct Oracle {
    origin: Instant,
    out: Mutex<Option<BufWriter<File>>>,
    is_wanted: bool,
}

impl Oracle {
    /// A log in `path`; without one only the clock.
    pub fn new(path: Option<&Path>) -> std::io::Result<Self> {
        let out = path.map(File::create).transpose()?.map(|file| BufWriter::with_capacity(1 << 18, file));
        Ok(Self { origin: Instant::now(), is_wanted: out.is_some(), out: Mutex::new(out) })
    }

    /// The device's clock in ticks of 1/[`CLOCK_KHZ`] ms.
    pub fn ticks(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    /// Writes a line of now.
    pub fn note(&self, function: usize, entry: &Entry) {
        self.note_at(self.ticks(), function, entry);
    }

    /// Writes a line of `t_ns`.
    pub fn note_at(&self, t_ns: u64, function: usize, entry: &Entry) {
        if let Entry::Trouble { what } = entry {
            eprintln!("mlx5-card: function {function}: {what}");
        }
        let Ok(mut out) = self.out.lock() else { return };
        let Some(file) = out.as_mut() else { return };
        // In one piece: what is in the file when the process is killed are whole lines.
        let line = serde_json::to_vec(&Line { t_ns, function, entry }).map_err(std::io::Error::from);
        let written = line.and_then(|mut line| {
            line.push(b'\n');
            file.write_all(&line)
        });
        if let Err(error) = written {
            eprintln!("mlx5-card: the log ends here: {error}");
            *out = None;
        }
    }

    /// Writes a line of trouble.
    pub fn trouble(&self, function: usize, what: impl Into<String>) {
        self.note(function, &Entry::Trouble { what: what.into() });
    }

    /// Hands everything to the file; an error ends the log, and is said.
    pub fn flush(&self) {
        let Ok(mut out) = self.out.lock() else { return };
        let Some(file) = out.as_mut() else { return };
        if let Err(error) = file.flush() {
            eprintln!("mlx5-card: the log ends here: {error}");
            *out = None;
        }
    }

    /// Whether a log that was asked for is whole so far.
    pub fn is_whole(&self) -> bool {
        !self.is_wanted || self.out.lock().is_ok_and(|out| out.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_cannot_be_written_is_not_whole() {
        let oracle = Oracle::new(Some(Path::new("/dev/full"))).unwrap();
        oracle.note_at(17, 1, &Entry::Overrun { cq: 1, qp: 2 });
        assert!(oracle.is_whole());
        oracle.flush();
        assert!(!oracle.is_whole());
        assert!(Oracle::new(None).unwrap().is_whole());
    }

    #[test]
    fn a_line_is_flat() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let oracle = Oracle::new(Some(&path)).unwrap();
        oracle.note_at(17, 1, &Entry::Eqe { eq: 4, index: 2, event: 0, cq: Some(0x41), cqe: Some(9) });
        oracle.note_at(18, 0, &Entry::Eqe { eq: 1, index: 0, event: 10, cq: None, cqe: None });
        oracle.flush();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], r#"{"t_ns":17,"function":1,"kind":"eqe","eq":4,"index":2,"event":0,"cq":65,"cqe":9}"#);
        assert_eq!(lines[1], r#"{"t_ns":18,"function":0,"kind":"eqe","eq":1,"index":0,"event":10}"#);
    }
}
