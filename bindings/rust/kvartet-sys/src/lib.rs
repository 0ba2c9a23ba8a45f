//! The generated layer over bindings/swig/kvartet_flat.h. Use the crate kvartet instead.
#![no_std]
#![allow(clippy::too_many_arguments)]

#[rustfmt::skip]
mod generated;

pub use generated::*;
