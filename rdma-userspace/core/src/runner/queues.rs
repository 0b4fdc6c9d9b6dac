//! What the measured loop works on: a queue pair, its completion queues, and its memory.
use super::memory::Memory;
use super::reap::Completions;
use super::submit::Submit;

/// A queue pair with all that belongs to it. The order of the fields is the order of teardown.
pub(crate) struct Queues {
    pub submit: Submit,
    pub completions: Completions,
    pub memory: Memory,
}
