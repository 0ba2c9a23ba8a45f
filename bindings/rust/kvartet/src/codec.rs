//! Codecs, frames and views.
use crate::model::{Digest, Element, Key, Model, ModelOptions};
use crate::native::{self, bytes_of, call, record, Core, Text};
use crate::status::Result;
use crate::sys;
use std::sync::Arc;

/// Turns views into frames and back.
pub struct Codec {
    pub(crate) core: Arc<Core>,
}

/// `Default` are the library's.
#[derive(Debug, Clone)]
pub struct CodecOptions {
    pub group_tokens: u32,
    pub group_channels: u32,
    /// transform: raw bytes to stored bytes.
    pub ratio: u32,
    /// transform: see `Calibration`.
    pub profile: Vec<u8>,
}

impl Default for CodecOptions {
    fn default() -> Self {
        let d = native::defaults(sys::KVTF_RECORD_CODEC);
        CodecOptions {
            group_tokens: native::word(&d, sys::KVTF_CODEC_GROUP_TOKENS) as u32,
            group_channels: native::word(&d, sys::KVTF_CODEC_GROUP_CHANNELS) as u32,
            ratio: native::word(&d, sys::KVTF_CODEC_RATIO) as u32,
            profile: vec![],
        }
    }
}

/// Where KV lies in a piece of memory that is passed beside it: base i (layer by layer, stream by stream) is an
/// offset into it; strides are in bytes, one a stream. A view that leaves its memory is refused.
#[derive(Debug, Clone)]
pub struct View {
    pub element: Element,
    pub layer_begin: u32,
    pub layer_end: u32,
    pub head_begin: u32,
    pub head_end: u32,
    pub tokens: u64,
    pub first_position: u64,
    pub token_stride: [i64; 2],
    pub head_stride: [i64; 2],
    pub element_stride: [i64; 2],
    pub page_stride: [i64; 2],
    pub page_tokens: u32,
    pub bases: Vec<i64>,
    /// Empty: contiguous.
    pub block_table: Vec<i32>,
}

impl View {
    /// Planes of f16 rows, one after another, layer by layer, and the memory that they need.
    pub fn contiguous(model: &ModelOptions, tokens: usize) -> (View, usize) {
        let mut view = View {
            element: Element::F16,
            layer_begin: 0,
            layer_end: model.layers,
            head_begin: 0,
            head_end: model.kv_heads,
            tokens: tokens as u64,
            first_position: 0,
            token_stride: [0; 2],
            head_stride: [0; 2],
            element_stride: [0; 2],
            page_stride: [0; 2],
            page_tokens: 0,
            bases: vec![],
            block_table: vec![],
        };
        let streams = if model.v_dim > 0 { 2 } else { 1 };
        for (s, dim) in [model.k_dim, model.v_dim].into_iter().enumerate().take(streams) {
            view.element_stride[s] = 2;
            view.head_stride[s] = 2 * i64::from(dim);
            view.token_stride[s] = view.head_stride[s] * i64::from(model.kv_heads);
        }
        let mut at = 0;
        for i in 0..model.layers as usize * streams {
            view.bases.push(at);
            at += view.token_stride[i % streams] * tokens as i64;
        }
        (view, at as usize)
    }

    pub(crate) fn record(&self) -> Vec<u8> {
        record(&[
            i64::from(self.element.0),
            i64::from(self.layer_begin),
            i64::from(self.layer_end),
            i64::from(self.head_begin),
            i64::from(self.head_end),
            self.tokens as i64,
            self.first_position as i64,
            self.token_stride[0],
            self.token_stride[1],
            self.head_stride[0],
            self.head_stride[1],
            self.element_stride[0],
            self.element_stride[1],
            self.page_stride[0],
            self.page_stride[1],
            i64::from(self.page_tokens),
        ])
    }
}

/// What a frame is of; `Default`: all layers, no exempt tokens, unnamed.
#[derive(Debug, Clone, Default)]
pub struct Spec {
    pub layer_begin: u32,
    pub layer_end: u32,
    pub exempt_first: u32,
    pub exempt_last: u32,
    pub token_begin: u64,
    pub token_count: u64,
    pub key: Option<Key>,
    pub digest: Option<Digest>,
}

impl Spec {
    pub(crate) fn record(&self) -> Vec<u8> {
        record(&[
            i64::from(self.layer_begin),
            i64::from(self.layer_end),
            i64::from(self.exempt_first),
            i64::from(self.exempt_last),
            self.token_begin as i64,
            self.token_count as i64,
        ])
    }

    fn key_bytes(&self) -> &[u8] {
        self.key.as_ref().map_or(&[], |key| &key.0)
    }

    pub(crate) fn digest_bytes(&self) -> &[u8] {
        self.digest.as_ref().map_or(&[], |digest| digest)
    }
}

/// What a codec did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    pub segments: u64,
    pub frame_bytes: u64,
    pub decoded_bytes: u64,
    pub nonfinite: u64,
    pub checksums: u64,
}

const REPORT_BYTES: usize = 8 * sys::KVTF_REPORT_WORDS as usize;

impl Report {
    fn of(bytes: &[u8]) -> Report {
        let word = |index| native::word(bytes, index) as u64;
        Report {
            segments: word(sys::KVTF_REPORT_SEGMENTS),
            frame_bytes: word(sys::KVTF_REPORT_FRAME_BYTES),
            decoded_bytes: word(sys::KVTF_REPORT_DECODED_BYTES),
            nonfinite: word(sys::KVTF_REPORT_NONFINITE),
            checksums: word(sys::KVTF_REPORT_CHECKSUMS),
        }
    }
}

fn end(handle: i64) -> Result<()> {
    unsafe { sys::kvtf_codec_destroy(handle) };
    Ok(())
}

impl Codec {
    /// Creates a codec such as "raw", "kivi4" or "transform".
    pub fn new(model: &Model, name: &str, options: &CodecOptions) -> Result<Codec> {
        let words = [options.group_tokens, options.group_channels, options.ratio];
        let (packed, profile) = (record(&words.map(i64::from)), &options.profile);
        let core = Core::create("codec", end, vec![model.core.hold()?], |holds, t| unsafe {
            sys::kvtf_codec_create(
                holds[0].handle,
                name.as_ptr(),
                name.len(),
                packed.as_ptr(),
                packed.len(),
                profile.as_ptr(),
                profile.len(),
                t.ptr(),
                Text::LEN,
            )
        })?;
        Ok(Codec { core })
    }

    pub fn close(&self) -> Result<()> {
        self.core.close()
    }

    /// The most bytes that `encode` makes.
    pub fn bound(&self, view: &View, memory: &[u8], spec: &Spec) -> Result<usize> {
        let (packed, spec) = (view.record(), spec.record());
        let (bases, table) = (bytes_of(&view.bases), bytes_of(&view.block_table));
        let bytes = self.core.on("bound", |h, t| unsafe {
            sys::kvtf_codec_bound(
                h,
                packed.as_ptr(),
                packed.len(),
                bases.as_ptr(),
                bases.len(),
                table.as_ptr(),
                table.len(),
                memory.as_ptr() as *mut u8, // only read
                memory.len(),
                spec.as_ptr(),
                spec.len(),
                t.ptr(),
                Text::LEN,
            )
        })?;
        Ok(bytes as usize)
    }

    /// Makes one frame.
    pub fn encode(&self, view: &View, memory: &[u8], spec: &Spec) -> Result<(Vec<u8>, Report)> {
        let bound = self.bound(view, memory, spec)?;
        let (packed, record) = (view.record(), spec.record());
        let (bases, table) = (bytes_of(&view.bases), bytes_of(&view.block_table));
        let (key, digest) = (spec.key_bytes(), spec.digest_bytes());
        let mut report = [0; REPORT_BYTES];
        let frame = self.core.on_output("encode", bound, |h, buf, cap, t| unsafe {
            sys::kvtf_codec_encode(
                h,
                packed.as_ptr(),
                packed.len(),
                bases.as_ptr(),
                bases.len(),
                table.as_ptr(),
                table.len(),
                memory.as_ptr() as *mut u8, // only read
                memory.len(),
                record.as_ptr(),
                record.len(),
                key.as_ptr(),
                key.len(),
                digest.as_ptr(),
                digest.len(),
                buf,
                cap,
                report.as_mut_ptr(),
                report.len(),
                t.ptr(),
                Text::LEN,
            )
        })?;
        Ok((frame, Report::of(&report)))
    }

    /// Checks a frame against the spec and writes it into the view; after an error the rows must not be used.
    pub fn decode(&self, frame: &[u8], view: &View, memory: &mut [u8], spec: &Spec) -> Result<Report> {
        let (packed, record) = (view.record(), spec.record());
        let (bases, table) = (bytes_of(&view.bases), bytes_of(&view.block_table));
        let (key, digest) = (spec.key_bytes(), spec.digest_bytes());
        let mut report = [0; REPORT_BYTES];
        self.core.on("decode", |h, t| unsafe {
            sys::kvtf_codec_decode(
                h,
                frame.as_ptr(),
                frame.len(),
                packed.as_ptr(),
                packed.len(),
                bases.as_ptr(),
                bases.len(),
                table.as_ptr(),
                table.len(),
                memory.as_mut_ptr(),
                memory.len(),
                record.as_ptr(),
                record.len(),
                key.as_ptr(),
                key.len(),
                digest.as_ptr(),
                digest.len(),
                report.as_mut_ptr(),
                report.len(),
                t.ptr(),
                Text::LEN,
            )
        })?;
        Ok(Report::of(&report))
    }
}

/// Checks a whole frame without decoding it.
pub fn verify_frame(frame: &[u8]) -> Result<()> {
    call("frame verify", |t| unsafe { sys::kvtf_frame_verify(frame.as_ptr(), frame.len(), t.ptr(), Text::LEN) })
        .map(|_| ())
}

/// A frame's header as JSON.
pub fn describe_frame(frame: &[u8]) -> Result<String> {
    let text = native::output("frame describe", 1024, |buf, cap, t| unsafe {
        sys::kvtf_frame_describe(frame.as_ptr(), frame.len(), buf, cap, t.ptr(), Text::LEN)
    })?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
