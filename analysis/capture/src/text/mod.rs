//! Text for people: numbers with their units, text from outside made harmless, errors as one sentence. It knows nothing of captures.

mod error_chain;
mod printable;
pub mod units;

pub use error_chain::chain;
pub use printable::{printable, printable_lines};
