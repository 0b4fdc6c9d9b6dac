//! The flags of a sample: what made its path differ. Only LOST exempts a sample from a check.

use std::fmt;

macro_rules! flags {
    ($($(#[doc = $doc:literal])* $name:ident = $text:literal,)*) => {
        /// One flag.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Flag { $($(#[doc = $doc])* $name,)* }

        impl Flag {
            /// All flags.
            pub const ALL: &'static [Flag] = &[$(Flag::$name,)*];
            /// As printed.
            pub const fn name(self) -> &'static str { match self { $(Flag::$name => $text,)* } }
            /// What it says.
            pub const fn meaning(self) -> &'static str { match self { $(Flag::$name => concat!($($doc),*),)* } }
        }
    };
}

flags! {
    /// The event was there before the thread slept: no wake-up stages.
    NoSleep = "NO_SLEEP",
    /// The CQE was written before the post returned.
    Inline = "INLINE",
    /// The CQE came along with another one's event and has no wake-up of its own.
    Batched = "BATCHED",
    /// A read brought an event without a CQE before the one that counted.
    Spurious = "SPURIOUS",
    /// The CQE existed before the CQ was armed: on rxe it raises no event.
    PreArm = "PRE_ARM",
    /// Another CQ uses the same completion channel.
    MultiCqChannel = "MULTI_CQ_CHANNEL",
    /// The event woke more than one thread.
    MultiWaiter = "MULTI_WAITER",
    /// The completion's interrupt or its event queue served other CQs too, or more than one entry of this CQ.
    IrqShared = "IRQ_SHARED",
    /// The packet (or, with a driver that completes in NAPI, the completion) was taken by a NAPI poll that an earlier interrupt began: no
    /// interrupt of its own.
    NapiPolled = "NAPI_POLLED",
    /// A softirq or tasklet ran later and in another thread than what asked for it: in ksoftirqd, or in another one that a threaded kernel
    /// chose. A driver's work item is no deferral.
    BhDeferred = "BH_DEFERRED",
    /// The completion handler was called outside of the interrupt path.
    NotIrq = "NOT_IRQ",
    /// Both ends share a host: no network device, no interrupt in the path.
    Loopback = "LOOPBACK",
    /// An rxe task was running already and took the work along: its start is not a separate moment.
    TaskBusy = "TASK_BUSY",
    /// The thread was woken before it had left its CPU.
    WokenOnCpu = "WOKEN_ON_CPU",
    /// The thread lost its CPU between the completion and the poll that found it.
    ReaderPreempted = "READER_PREEMPTED",
    /// A packet of the request was sent more than once.
    Retransmit = "RETRANSMIT",
    /// Another thread of our own process held the CPU when the thread was due.
    Observer = "OBSERVER",
    /// A stage came out negative by less than the clocks can tell, or the clock check failed.
    ClockUnsure = "CLOCK_UNSURE",
    /// Records are missing: the chain is not complete and nothing else explains it.
    Lost = "LOST",
    /// The machine is virtual and its hypervisor took more than 1 % of the CPUs' time during the round.
    Guest = "GUEST",
    /// Interrupts run in threads: a PREEMPT_RT kernel, or an interrupt thread was seen in the path.
    Rt = "RT",
}

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl serde::Serialize for Flag {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

/// A set of flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u32);

impl Flags {
    /// Adds a flag.
    pub fn set(&mut self, flag: Flag) {
        self.0 |= 1 << flag as u8;
    }

    /// Adds a flag when `condition` holds.
    pub fn set_if(&mut self, condition: bool, flag: Flag) {
        if condition {
            self.set(flag);
        }
    }

    /// Has it?
    pub fn has(self, flag: Flag) -> bool {
        self.0 & (1 << flag as u8) != 0
    }

    /// The flags that are set.
    pub fn iter(self) -> impl Iterator<Item = Flag> {
        Flag::ALL.iter().copied().filter(move |flag| self.has(*flag))
    }
}
