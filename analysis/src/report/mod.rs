//! Reports: finished numbers in, pages out.

pub mod html;
