//! The card: its functions on one fabric, the wire between them, and everything that is due later.

use crate::engine::message::Message;
use crate::engine::{self, Effect};
use crate::front::{Function, Later};
use crate::knobs::{self, Action, Knobs, Turned};
use crate::oracle::{Entry, Oracle};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long the clock's thread sleeps at most; then it hands the log to the file.
const IDLE: Duration = Duration::from_millis(250);
/// A message that is overtaken waits this much longer, and a second time the wire's delay.
const OVERTAKEN: Duration = Duration::from_micros(100);
const MILLION: u32 = 1_000_000;

/// Something that is due at a time.
#[derive(Debug)]
enum Due {
    Engine(usize, engine::Timer),
    Front(usize, Later),
    Event { function: usize, eqn: u32, cqn: u32, cqe: u64 },
    Message(Message),
}

/// Everything under the lock.
#[derive(Debug)]
struct Fabric {
    functions: Vec<Function>,
    knobs: Knobs,
    inbox: VecDeque<Message>,
    times: BinaryHeap<Reverse<(Instant, u64)>>,
    due: HashMap<u64, Due>,
    next_due: u64,
    /// When the last message of a direction arrives, so that jitter keeps the order.
    last_arrival: HashMap<(usize, usize), Instant>,
    random: fastrand::Rng,
    oracle: Arc<Oracle>,
}

/// The functions and the clock that serves them.
#[derive(Debug)]
pub struct Card {
    fabric: Mutex<Fabric>,
    changed: Condvar,
}

/// What a card is made of.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Functions, each with a socket.
    pub functions: usize,
    /// Whether the ports are Ethernet (RoCE).
    pub is_ethernet: bool,
    /// Completion vectors of a function.
    pub vectors: u32,
    /// Where the wire's chances begin.
    pub seed: u64,
    /// The knobs at the start.
    pub knobs: Knobs,
}

impl Card {
    /// A card and the thread of its clock.
    pub fn start(settings: &Settings, oracle: Arc<Oracle>) -> Arc<Self> {
        let card = Arc::new(Self { fabric: Mutex::new(Fabric::new(settings, oracle)), changed: Condvar::new() });
        let clock = Arc::clone(&card);
        std::thread::spawn(move || clock.keep_time());
        card
    }

    fn lock(&self) -> MutexGuard<'_, Fabric> {
        // A panic of another thread has been printed; what it leaves is as good as a card that fails.
        self.fabric.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// MSI-X vectors of a function.
    pub fn vector_count(&self, function: usize) -> u32 {
        self.lock().functions[function].vector_count()
    }

    /// Something about one function that no other one is touched by.
    pub fn with<T>(&self, function: usize, act: impl FnOnce(&mut Function, &Knobs) -> T) -> T {
        let mut fabric = self.lock();
        let knobs = fabric.knobs;
        act(&mut fabric.functions[function], &knobs)
    }

    /// The guest writes BAR 0 of a function.
    pub fn write_bar(&self, function: usize, offset: u64, data: &[u8]) {
        let mut fabric = self.lock();
        if offset & !0xfff == knobs::PAGE {
            fabric.turn(function, offset & 0xfff, data);
        } else {
            let knobs = fabric.knobs;
            fabric.functions[function].write_bar(offset, data, &knobs);
        }
        let before = fabric.next_due;
        fabric.settle();
        if fabric.next_due != before {
            self.changed.notify_one();
        }
    }

    fn keep_time(&self) {
        // The finest timer that there is; without it a sleep is 50 µs longer than asked for.
        if let Err(error) = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1)) {
            eprintln!("mlx5-card: delays are coarser than they could be: {error}");
        }
        let mut fabric = self.lock();
        loop {
            fabric.serve_due();
            let wait = fabric.next_time().map_or(IDLE, |at| at.saturating_duration_since(Instant::now()).min(IDLE));
            if wait.is_zero() {
                continue;
            }
            if wait == IDLE {
                fabric.oracle.flush();
            }
            fabric = self.changed.wait_timeout(fabric, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Fabric {
    fn new(settings: &Settings, oracle: Arc<Oracle>) -> Self {
        let function = |index| Function::new(index, settings.is_ethernet, settings.vectors, Arc::clone(&oracle));
        Self {
            functions: (0..settings.functions).map(function).collect(),
            knobs: settings.knobs,
            inbox: VecDeque::new(),
            times: BinaryHeap::new(),
            due: HashMap::new(),
            next_due: 0,
            last_arrival: HashMap::new(),
            random: fastrand::Rng::with_seed(settings.seed),
            oracle,
        }
    }

    fn turn(&mut self, function: usize, offset: u64, data: &[u8]) {
        let Ok(bytes) = <[u8; 4]>::try_from(data) else {
            return self.oracle.trouble(function, format!("a write of {} bytes to the page of the knobs", data.len()));
        };
        let value = u32::from_le_bytes(bytes);
        match self.knobs.write(offset, value) {
            // What is in force, which is the limit where more was asked for.
            Some(Turned::Knob(name)) => self.oracle.note(function, &Entry::Knob { name, value: self.knobs.read(offset) }),
            Some(Turned::Action(Action::Port(is_up))) => {
                self.oracle.note(function, &Entry::Knob { name: "port", value });
                let knobs = self.knobs;
                self.functions[function].set_port(is_up, &knobs);
            }
            Some(Turned::Action(Action::FailQueuePair(qpn))) => {
                self.oracle.note(function, &Entry::Knob { name: "fail-qp", value });
                self.functions[function].engine.fail(qpn, "the guest asked for it");
            }
            None => self.oracle.trouble(function, format!("a write to word {} of the page of the knobs, which has none", offset / 4)),
        }
    }

    fn later(&mut self, after: Duration, what: Due) {
        self.at(Instant::now() + after, what);
    }

    fn at(&mut self, time: Instant, what: Due) {
        self.times.push(Reverse((time, self.next_due)));
        self.due.insert(self.next_due, what);
        self.next_due += 1;
    }

    fn next_time(&self) -> Option<Instant> {
        self.times.peek().map(|Reverse((time, _))| *time)
    }

    /// Does everything that is due, in the order of its times.
    fn serve_due(&mut self) {
        while self.next_time().is_some_and(|time| time <= Instant::now()) {
            let Some(Reverse((_, number))) = self.times.pop() else { return };
            let Some(what) = self.due.remove(&number) else { continue };
            let knobs = self.knobs;
            match what {
                Due::Engine(function, timer) => self.functions[function].engine.timer(timer),
                Due::Front(function, later) => self.functions[function].due(later, &knobs),
                Due::Event { function, eqn, cqn, cqe } => self.functions[function].completed(eqn, cqn, cqe, &knobs),
                Due::Message(message) => self.inbox.push_back(message),
            }
            self.settle();
        }
    }

    /// Carries out what the functions want, until they want nothing.
    fn settle(&mut self) {
        loop {
            for index in 0..self.functions.len() {
                let effects = self.functions[index].take_effects();
                for effect in effects {
                    self.carry_out(index, effect);
                }
                for (after, later) in std::mem::take(&mut self.functions[index].later) {
                    self.later(after, Due::Front(index, later));
                }
            }
            let Some(message) = self.inbox.pop_front() else { return };
            if let Some(function) = self.functions.get_mut(message.to.function) {
                function.engine.arrive(message);
            }
        }
    }

    fn carry_out(&mut self, function: usize, effect: Effect) {
        let knobs = self.knobs;
        match effect {
            Effect::Send(message) => self.wire(message),
            Effect::Completed { eqn, cqn, cqe } if knobs.late_eqe_us() > 0 => {
                self.later(Duration::from_micros(knobs.late_eqe_us().into()), Due::Event { function, eqn, cqn, cqe });
            }
            Effect::Completed { eqn, cqn, cqe } => self.functions[function].completed(eqn, cqn, cqe, &knobs),
            Effect::Asynchronous(what) => self.functions[function].asynchronous(what, &knobs),
            Effect::Timer(after, timer) => self.later(after, Due::Engine(function, timer)),
        }
    }

    /// Puts a message on the wire.
    fn wire(&mut self, message: Message) {
        let direction = (message.from.function, message.to.function);
        if self.chance(self.knobs.loss_ppm()) {
            return self.note_wire(&message, "lost");
        }
        let jitter = if self.knobs.jitter_us() > 0 { self.random.u64(0..=u64::from(self.knobs.jitter_us()) * 1000) } else { 0 };
        let delay = Duration::from_micros(self.knobs.delay_us().into()) + Duration::from_nanos(jitter);
        if self.chance(self.knobs.reorder_ppm()) {
            self.note_wire(&message, "reordered");
            return self.later(delay * 2 + OVERTAKEN, Due::Message(message));
        }
        let now = Instant::now();
        let last = self.last_arrival.get(&direction).copied().filter(|last| *last > now);
        if delay.is_zero() && last.is_none() {
            return self.inbox.push_back(message);
        }
        let time = last.map_or(now + delay, |last| last.max(now + delay));
        self.last_arrival.insert(direction, time);
        self.at(time, Due::Message(message));
    }

    fn chance(&mut self, ppm: u32) -> bool {
        ppm > 0 && self.random.u32(0..MILLION) < ppm
    }

    fn note_wire(&self, message: &Message, what: &'static str) {
        let sequence = match &message.body {
            crate::engine::message::Body::Request(request) => request.sequence,
            crate::engine::message::Body::Done { sequence, .. } | crate::engine::message::Body::Refused { sequence, .. } => *sequence,
        };
        self.oracle.note(message.from.function, &Entry::Wire { qp: message.from.qpn, sequence, what });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::message::{Address, Body};

    fn fabric(knobs: Knobs) -> Fabric {
        let settings = Settings { functions: 2, is_ethernet: false, vectors: 2, seed: 7, knobs };
        Fabric::new(&settings, Arc::new(Oracle::new(None).unwrap()))
    }

    fn message(sequence: u32) -> Message {
        let address = |function| Address { function, qpn: 5 };
        Message { from: address(0), to: address(1), body: Body::Done { sequence, data: Vec::new() } }
    }

    fn with(name: &str, value: u32) -> Knobs {
        let mut knobs = Knobs::default();
        let word = knobs::NAMES.iter().position(|known| *known == name).unwrap() as u64 + 1;
        knobs.write(word * 4, value);
        knobs
    }

    #[test]
    fn without_delay_a_message_arrives_at_once() {
        let mut fabric = fabric(Knobs::default());
        fabric.wire(message(1));
        assert_eq!((fabric.inbox.len(), fabric.due.len()), (1, 0));
    }

    #[test]
    fn jitter_keeps_the_order() {
        let mut fabric = fabric(with("jitter-us", 500));
        (0..50).for_each(|sequence| fabric.wire(message(sequence)));
        let mut arrivals: Vec<(Instant, u64)> = fabric.times.iter().map(|Reverse(entry)| *entry).collect();
        arrivals.sort_unstable();
        assert!(arrivals.is_sorted_by_key(|(_, number)| *number));
        assert_eq!(arrivals.len(), 50);
    }

    #[test]
    fn the_chance_of_a_loss_is_what_was_asked_for() {
        let mut fabric = fabric(with("loss-ppm", 100_000));
        (0..2000).for_each(|sequence| fabric.wire(message(sequence)));
        let lost = 2000 - fabric.inbox.len();
        assert!((140..260).contains(&lost), "{lost}");
    }

    #[test]
    fn the_page_turns_knobs() {
        let mut fabric = fabric(Knobs::default());
        fabric.turn(0, 4, &30_u32.to_le_bytes());
        assert_eq!(fabric.knobs.hold_interrupt_us(), 30);
        fabric.turn(0, 4 * 4, &u32::MAX.to_le_bytes());
        assert_eq!(fabric.knobs.foreign_eqes(), 64);
        fabric.turn(0, 4 * 9, &0_u32.to_le_bytes());
        assert!(!fabric.functions[0].engine.is_up && fabric.functions[1].engine.is_up);
    }
}
