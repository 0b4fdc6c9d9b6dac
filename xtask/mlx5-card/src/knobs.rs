//! What can be turned: by flag at the start, and by the guest through a page of BAR 0 while it runs.
//!
//! The page is at [`PAGE`]. Its words are 32 bits, little endian. Word 0 is [`MAGIC`], so that a program can make sure what it
//! has opened. Then one word per knob, in the order of [`NAMES`]; then the actions: writing does something, reading gives 0.

/// Offset of the page in BAR 0.
pub const PAGE: u64 = 0x5000;
/// Word 0 of the page: "RDME" as little-endian text.
pub const MAGIC: u32 = u32::from_le_bytes(*b"RDME");

/// Names of the knobs in the order of the page's words; the first one is word 1.
pub const NAMES: [&str; 8] =
    ["hold-interrupt-us", "late-eqe-us", "coalesce", "foreign-eqes", "delay-us", "jitter-us", "loss-ppm", "reorder-ppm"];

/// The most that the guest may write to each of them, in that order: a second, 64 EQEs, all of a million messages. More is taken for
/// the limit.
const LIMITS: [u32; NAMES.len()] = [1_000_000, 1_000_000, 64, 64, 1_000_000, 1_000_000, 1_000_000, 1_000_000];

/// Something that the guest asks for by a word after the knobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The port goes down (0) or up (1).
    Port(bool),
    /// A queue pair of this number goes into the error state.
    FailQueuePair(u32),
}

/// The knobs' values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Knobs {
    values: [u32; NAMES.len()],
}

impl Knobs {
    /// With these values, in the order of [`NAMES`].
    pub const fn new(values: [u32; NAMES.len()]) -> Self {
        Self { values }
    }

    /// The interrupt of a completion queue's event is held back, µs after its EQE.
    pub const fn hold_interrupt_us(&self) -> u32 {
        self.values[0]
    }

    /// The EQE comes this many µs after its CQE.
    pub const fn late_eqe_us(&self) -> u32 {
        self.values[1]
    }

    /// An interrupt is raised for this many EQEs, or 200 µs after the first of them.
    pub const fn coalesce(&self) -> u32 {
        self.values[2]
    }

    /// EQEs of completion queues that are not there, before each real one.
    pub const fn foreign_eqes(&self) -> u32 {
        self.values[3]
    }

    /// Every message takes this many µs.
    pub const fn delay_us(&self) -> u32 {
        self.values[4]
    }

    /// And up to this many more, evenly distributed. The order stays.
    pub const fn jitter_us(&self) -> u32 {
        self.values[5]
    }

    /// Messages of a million that are lost.
    pub const fn loss_ppm(&self) -> u32 {
        self.values[6]
    }

    /// Messages of a million that are overtaken by later ones.
    pub const fn reorder_ppm(&self) -> u32 {
        self.values[7]
    }

    /// The word at byte `offset` of the page.
    pub fn read(&self, offset: u64) -> u32 {
        let word = (offset / 4) as usize;
        if word == 0 { MAGIC } else { self.values.get(word - 1).copied().unwrap_or(0) }
    }

    /// Writes the word at byte `offset`: the knob's name, an action, or nothing where there is none.
    pub fn write(&mut self, offset: u64, value: u32) -> Option<Turned> {
        let knob = ((offset / 4) as usize).checked_sub(1)?;
        if let Some(place) = self.values.get_mut(knob) {
            *place = value.min(LIMITS[knob]);
            return Some(Turned::Knob(NAMES[knob]));
        }
        match knob - NAMES.len() {
            0 => Some(Turned::Action(Action::Port(value != 0))),
            1 => Some(Turned::Action(Action::FailQueuePair(value))),
            _ => None,
        }
    }
}

/// What a write to the page was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turned {
    /// A knob has a new value.
    Knob(&'static str),
    /// Something is to be done.
    Action(Action),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_its_magic_its_knobs_and_its_actions() {
        let mut knobs = Knobs::default();
        assert_eq!(knobs.read(0), MAGIC);
        assert_eq!(knobs.write(0, 1), None);
        assert_eq!(knobs.write(4, 17), Some(Turned::Knob("hold-interrupt-us")));
        assert_eq!((knobs.hold_interrupt_us(), knobs.read(4)), (17, 17));
        knobs.write(16, u32::MAX);
        assert_eq!(knobs.read(16), 64);
        let after = 4 * (1 + NAMES.len() as u64);
        assert_eq!(knobs.write(after, 0), Some(Turned::Action(Action::Port(false))));
        assert_eq!(knobs.write(after + 4, 0x41), Some(Turned::Action(Action::FailQueuePair(0x41))));
        assert_eq!(knobs.write(after + 8, 1), None);
    }
}
