//! The half of a function that its driver sees: PCI, BAR 0, the initialization segment, commands, event queues and doorbells.

pub mod capabilities;
pub mod command;
pub mod doorbell;
pub mod event_queue;
pub mod init_segment;
pub mod layout;
pub mod pci;

use crate::engine::{Asynchronous, Effect, Engine};
use crate::knobs::{self, Knobs};
use crate::oracle::{Entry, Oracle};
use capabilities::Capabilities;
use doorbell::Doorbell;
use event_queue::{Event, EventQueue, Wanted, event};
use pci::ConfigSpace;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

/// How long an interrupt waits for more EQEs to share it.
const COALESCE_TIME: Duration = Duration::from_micros(200);
/// Number of a completion queue that is never there.
const FOREIGN_CQ: u32 = 0xff_fff0;
/// The first number of an object; 0 and 1 are the management queue pairs.
const FIRST_NUMBER: u32 = 0x41;

/// Something that a function wants done later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Later {
    /// Raise the interrupt of this event queue.
    Interrupt(u32),
    /// The time in which EQEs may share an interrupt is over for this event queue.
    Coalesced(u32, u64),
}

/// One card.
#[derive(Debug)]
pub struct Function {
    /// Its verbs half.
    pub engine: Engine,
    /// Configuration space.
    pub config: ConfigSpace,
    /// Where the command queue lies.
    pub command_queue: u64,
    /// What it says it can do.
    pub capabilities: Capabilities,
    /// Event queues by number.
    pub event_queues: BTreeMap<u32, EventQueue>,
    /// Pages of BAR 0 that are user access regions in use.
    pub uars: BTreeSet<u32>,
    /// What each MSI-X vector rings; QEMU's ends.
    pub vectors: HashMap<u32, File>,
    /// What it wants done later; the card takes it after every call.
    pub later: Vec<(Duration, Later)>,
    /// Half of a command queue address, until the other half is written.
    command_queue_high: u32,
    doorbells: doorbell::Halves,
    is_ethernet: bool,
    vector_count: u32,
    next_number: u32,
    oracle: Arc<Oracle>,
}

impl Function {
    /// A function with `vectors` completion vectors, and one more for the rest.
    pub fn new(index: usize, is_ethernet: bool, vectors: u32, oracle: Arc<Oracle>) -> Self {
        Self {
            engine: Engine::new(index, is_ethernet, Arc::clone(&oracle)),
            config: ConfigSpace::new(is_ethernet, vectors + 1),
            command_queue: 0,
            capabilities: Capabilities::new(is_ethernet),
            event_queues: BTreeMap::new(),
            uars: BTreeSet::new(),
            vectors: HashMap::new(),
            later: Vec::new(),
            command_queue_high: 0,
            doorbells: doorbell::Halves::default(),
            is_ethernet,
            vector_count: vectors + 1,
            next_number: FIRST_NUMBER,
            oracle,
        }
    }

    /// Which card of the process.
    pub fn index(&self) -> usize {
        self.engine.function
    }

    /// Whether the port is Ethernet.
    pub const fn is_ethernet(&self) -> bool {
        self.is_ethernet
    }

    /// MSI-X vectors.
    pub const fn vector_count(&self) -> u32 {
        self.vector_count
    }

    /// A number for a new object. Numbers are not used again until the reset.
    pub fn next_number(&mut self) -> u32 {
        let number = self.next_number;
        self.next_number += 1;
        number
    }

    /// A reset of the function: everything is forgotten but the guest's memory and its interrupts.
    pub fn reset(&mut self) {
        self.engine.reset();
        self.config = ConfigSpace::new(self.is_ethernet, self.vector_count);
        self.capabilities = Capabilities::new(self.is_ethernet);
        self.event_queues.clear();
        self.uars.clear();
        self.later.clear();
        self.command_queue = 0;
        self.doorbells = doorbell::Halves::default();
        self.next_number = FIRST_NUMBER;
    }

    /// A line of the log.
    pub fn note(&self, entry: &Entry) {
        self.oracle.note(self.index(), entry);
    }

    /// A line of trouble.
    pub fn trouble(&self, what: impl Into<String>) {
        self.oracle.trouble(self.index(), what);
    }

    /// A completion queue asks for an event.
    pub fn completed(&mut self, eqn: u32, cq: u32, cqe: u64, knobs: &Knobs) {
        for number in 0..knobs.foreign_eqes() {
            self.put_event(eqn, &Event::Foreign(FOREIGN_CQ + number % 8), knobs);
        }
        self.put_event(eqn, &Event::Completion { cq, cqe }, knobs);
    }

    /// An asynchronous event, for the event queue that wants its kind.
    pub fn asynchronous(&mut self, what: Asynchronous, knobs: &Knobs) {
        let event = match what {
            Asynchronous::CqOverrun(cq) => Event::CqOverrun(cq),
            Asynchronous::InvalidRequest(qp) => Event::InvalidRequest(qp),
            Asynchronous::Access(qp) => Event::Access(qp),
            Asynchronous::SharedReceiveLimit(srq) => Event::SrqLimit(srq),
        };
        self.tell(&event, knobs);
    }

    fn tell(&mut self, event: &Event, knobs: &Knobs) {
        let bit = 1_u64 << event.kind();
        match self.event_queues.iter().find(|(_, queue)| queue.mask & bit != 0).map(|(number, _)| *number) {
            Some(eqn) => self.put_event(eqn, event, knobs),
            None => self.trouble(format!("no event queue wants {event:?}")),
        }
    }

    /// The event queue that is told of the ends of commands. There is none until the driver has made it; the command that
    /// makes it is one that the driver looks at itself.
    fn command_events(&self) -> Option<u32> {
        let wants = |queue: &EventQueue| queue.mask & 1 << event::COMMAND != 0;
        self.event_queues.iter().find(|(_, queue)| wants(queue)).map(|(number, _)| *number)
    }

    fn command_ended(&mut self, slot: u32, told: Option<u32>) {
        if let Some(eqn) = told.filter(|eqn| self.event_queues.contains_key(eqn)) {
            self.put_event(eqn, &Event::Command(1 << slot), &Knobs::default());
        }
    }

    /// The port goes down or up.
    pub fn set_port(&mut self, is_up: bool, knobs: &Knobs) {
        if std::mem::replace(&mut self.engine.is_up, is_up) != is_up {
            self.tell(&Event::Port(is_up), knobs);
        }
    }

    fn put_event(&mut self, eqn: u32, event: &Event, knobs: &Knobs) {
        let Some(queue) = self.event_queues.get_mut(&eqn) else {
            return self.trouble(format!("{event:?} for event queue {eqn}, which is not there"));
        };
        let (address, owner) = queue.next_slot();
        let index = queue.produced();
        let coalesce = if queue.is_for_completions() { knobs.coalesce() } else { 0 };
        let is_written = address.is_some_and(|address| self.engine.memory.publish(address, &event.encode(owner)).is_ok());
        let wanted = queue.written(coalesce);
        let (cq, cqe) = match *event {
            Event::Completion { cq, cqe } => (Some(cq), Some(cqe)),
            Event::Foreign(cq) => (Some(cq), None),
            _ => (None, None),
        };
        self.note(&Entry::Eqe { eq: eqn, index, event: event.kind(), cq, cqe });
        if !is_written {
            self.trouble(format!("the ring of event queue {eqn} is outside of the guest's memory"));
        }
        self.serve(eqn, wanted, knobs);
    }

    fn serve(&mut self, eqn: u32, wanted: Wanted, knobs: &Knobs) {
        let is_for_completions = self.event_queues.get(&eqn).is_some_and(EventQueue::is_for_completions);
        match wanted {
            Wanted::Nothing => {}
            Wanted::Interrupt if is_for_completions && knobs.hold_interrupt_us() > 0 => {
                self.later.push((Duration::from_micros(knobs.hold_interrupt_us().into()), Later::Interrupt(eqn)));
            }
            Wanted::Interrupt => self.interrupt(eqn),
            Wanted::InterruptLater(generation) => self.later.push((COALESCE_TIME, Later::Coalesced(eqn, generation))),
        }
    }

    fn interrupt(&mut self, eqn: u32) {
        let Some(queue) = self.event_queues.get_mut(&eqn) else { return };
        let vector = queue.vector;
        let (first_eqe, last_eqe) = queue.tell();
        // The line comes before the write, so that its time is not after the guest's.
        self.note(&Entry::Interrupt { vector, eq: eqn, first_eqe, last_eqe });
        let rung = self.vectors.get(&vector).map(|mut end| end.write_all(&1_u64.to_ne_bytes()));
        if !matches!(rung, Some(Ok(()))) {
            self.trouble(format!("interrupt vector {vector} has no receiver"));
        }
    }

    /// Something that it wanted done later is due.
    pub fn due(&mut self, what: Later, knobs: &Knobs) {
        match what {
            Later::Interrupt(eqn) => self.interrupt(eqn),
            Later::Coalesced(eqn, generation) => {
                if self.event_queues.get_mut(&eqn).is_some_and(|queue| queue.time_is_over(generation)) {
                    self.serve(eqn, Wanted::Interrupt, knobs);
                }
            }
        }
    }

    /// The guest reads BAR 0.
    pub fn read_bar(&self, offset: u64, data: &mut [u8], knobs: &Knobs) {
        for (number, word) in data.chunks_mut(4).enumerate() {
            let at = offset + number as u64 * 4;
            let bytes = if at & !0xfff == knobs::PAGE { knobs.read(at & 0xfff).to_le_bytes() } else { self.init_segment(at).to_be_bytes() };
            word.copy_from_slice(&bytes[..word.len()]);
        }
    }

    /// The guest writes BAR 0.
    pub fn write_bar(&mut self, offset: u64, data: &[u8], knobs: &Knobs) {
        if offset < u64::from(pci::FIRST_UAR) << 12 {
            return self.write_init_segment(offset, data);
        }
        match self.doorbells.decode(offset, data) {
            Some(Doorbell::Events { eqn, consumer, arms }) => match self.event_queues.get_mut(&eqn) {
                Some(queue) => {
                    let wanted = queue.doorbell(consumer, arms);
                    self.serve(eqn, wanted, knobs);
                }
                None => self.trouble(format!("doorbell of event queue {eqn}, which is not there")),
            },
            Some(Doorbell::Arm { cqn, sequence, consumer, solicited }) => self.engine.arm(cqn, sequence, consumer, solicited),
            Some(Doorbell::Send { qpn }) => self.engine.ring(qpn),
            None => {}
        }
    }

    /// What the engine wants from the rest of the card.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.engine.effects)
    }
}

#[cfg(test)]
mod tests {
    use super::command::{self, Status};
    use super::*;
    use crate::bits::put32;
    use crate::engine::memory::Memory;

    fn function() -> Function {
        Function::new(0, false, 4, Arc::new(Oracle::new(None).unwrap()))
    }

    #[test]
    fn an_unknown_command_is_a_bad_operation() {
        let mut output = [0; 16];
        command::run(&mut function(), &[0x0f, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &mut output);
        assert_eq!(output[0], Status::BadOperation as u8);
    }

    #[test]
    fn an_object_that_is_not_there_is_a_bad_resource() {
        let mut input = [0; 16];
        put32(&mut input, 0, 0x401 << 16);
        put32(&mut input, 8, 77);
        let mut output = [0; 16];
        command::run(&mut function(), &input, &mut output);
        assert_eq!(output[0], Status::BadResource as u8);
    }

    #[test]
    fn the_board_says_that_it_is_emulated() {
        let mut input = [0; 16];
        put32(&mut input, 0, 0x101 << 16);
        let mut output = [0; 272];
        command::run(&mut function(), &input, &mut output);
        assert_eq!(&output[256..269], b"RDMASCOPE_EMU");
    }

    #[test]
    fn a_command_is_read_from_its_slot_and_answered_there() {
        let mut function = function();
        function.engine.memory = Memory::anonymous(0, 0x3000);
        function.write_bar(0x10, &0_u32.to_be_bytes(), &Knobs::default());
        function.write_bar(0x14, &0x1000_u32.to_be_bytes(), &Knobs::default());
        let mut slot = [0_u8; 64];
        slot[0] = 7;
        put32(&mut slot, 4, 16);
        put32(&mut slot, 16, 0x10a << 16);
        put32(&mut slot, 52, 0x2000);
        put32(&mut slot, 56, 112);
        slot[63] = 1;
        function.engine.memory.write(0x1000 + 2 * 64, &slot).unwrap();
        function.write_bar(0x18, &(1_u32 << 2).to_be_bytes(), &Knobs::default());
        assert_eq!(function.engine.memory.bytes(0x1000 + 2 * 64 + 63, 1).unwrap(), [0]);
        // Byte 111 of the answer: interface version 1.
        assert_eq!(function.engine.memory.bytes(0x2000 + 111 - 16, 1).unwrap(), [2]);
    }

    #[test]
    fn knobs_hold_interrupts_back_and_put_foreign_events_first() {
        let mut function = function();
        function.engine.memory = Memory::anonymous(0x7000, 0x1000);
        let buffer = crate::engine::buffer::QueueBuffer::new(&0x7000_u64.to_be_bytes(), 0, 0, 64 << 4);
        let mut queue = EventQueue::new(buffer, 4, 1, 0);
        queue.doorbell(0, true);
        function.event_queues.insert(5, queue);
        let mut knobs = Knobs::default();
        knobs.write(4, 30);
        knobs.write(16, 2);
        function.completed(5, 0x41, 0, &knobs);
        assert_eq!(function.event_queues[&5].produced(), 3);
        assert_eq!(function.later, [(Duration::from_micros(30), Later::Interrupt(5))]);
        assert_eq!(function.engine.memory.word(0x7000 + 2 * 64 + 56).unwrap(), 0x41);
    }
}
