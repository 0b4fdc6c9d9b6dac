//! Where the time of the samples went, and why: stages over all samples, what took the CPU, the verdict on slow samples, both sides of a
//! round trip, the proof of bypass, hooks that stayed silent, whether a device's hooks fire at all.
pub mod breakdown;
pub mod bypass;
pub mod fire;
pub mod interference;
pub mod model;
mod pass;
pub mod sides;
pub mod silent;
pub mod verdict;

pub use pass::{Explained, SampleVerdict, explain, verdicts};
