//! Words and rows that the terminal and the page share: each says the same of the same numbers.
pub(super) mod bypass;
pub(super) mod costs;
pub(super) mod overlay;
pub(super) mod sides;
