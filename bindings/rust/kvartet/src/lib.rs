//! Stores, names, moves and verifies the KV cache of language models: the Rust layer over libkvartet.
//!
//! Every object ends when it is dropped; children keep what they were made from alive. `close` ends an object
//! earlier and says how that went; while children are open it is `Status::BUSY` and changes nothing.
//! Objects may be shared between threads; a verifier is used by one at a time, which its `&mut self` demands.

mod cache;
mod calibration;
mod codec;
mod meter;
mod model;
mod native;
mod node;
mod operation;
mod status;
mod stream;
mod verifier;

use kvartet_sys as sys;

pub use cache::{Cache, CacheStats, Moved};
pub use calibration::{
    describe_profile, profile_fingerprint, profile_key, unwrap_profile, wrap_profile, Calibration, CalibrationInfo,
    CalibrationOptions,
};
pub use codec::{describe_frame, verify_frame, Codec, CodecOptions, Report, Spec, View};
pub use meter::{Counter, Meter, Part, Request};
pub use model::{
    block_hashes, namespace_digest, Digest, Element, Extra, Key, Model, ModelOptions, Naming, Rope, Runtime,
    RuntimeOptions, Shard,
};
pub use native::{abi_version, version};
pub use node::{Node, NodeOptions, NodeStats, Peer, Pulled};
pub use operation::{Completion, Memory, Operation};
pub use status::{Error, Result, Status};
pub use stream::Stream;
pub use verifier::{
    classify_fidelity, Action, ActionKind, Engine, Fidelity, Rows, Verifier, VerifierOptions, VerifierStats,
};
