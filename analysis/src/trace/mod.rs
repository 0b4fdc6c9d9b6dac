//! Programs that are not ours: completion events per CQ, from the kernel's records alone.
//!
//! [`Join`] takes the records in the order of their time, live or from a capture; [`report`] makes finished numbers of it, [`text`]
//! prints them. What cannot be seen from outside (another program's polls) is said to be so, never guessed.

mod conditions;
mod cpu;
mod cq;
mod join;
mod load;
pub mod model;
mod queue;
mod report;
pub mod text;
mod threads;
mod times;

pub use conditions::{Condition, name_of};
pub use cpu::Origin;
pub use cq::{CqTrace, Interval, Stage};
pub use join::Join;
pub use load::{load, prepare};
pub use report::report;
pub use times::{Log2, Times};
