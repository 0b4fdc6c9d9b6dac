//! `rdma-sys` 0.3 pins bindgen 0.59, which panics with libclang 16 and newer.
//! This package takes that name and version (see `[patch]` in the workspace manifest) and hands out a current bindgen.
pub use current::*;
