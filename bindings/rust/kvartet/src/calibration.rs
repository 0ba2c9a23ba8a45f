//! Calibrations and profiles, which the codec "transform" needs. Experimental: these names may change in any release.
use crate::codec::View;
use crate::model::{Digest, Key, Model};
use crate::native::{self, bytes_of, call, record, Core, Hold, Text};
use crate::status::Result;
use crate::sys;
use std::sync::Arc;

/// Gathers statistics of a model's KV from documents and makes a profile of them.
pub struct Calibration {
    core: Arc<Core>,
}

/// `Default` are the library's. Layers and heads of 0 and 0 are all.
#[derive(Debug, Clone)]
pub struct CalibrationOptions {
    /// Layers that share a basis; 0: a third of them.
    pub group_layers: u32,
    /// The lowest ratio that the profile is for, 4 to 32.
    pub ratio_min: u32,
    pub layer_begin: u32,
    pub layer_end: u32,
    pub head_begin: u32,
    pub head_end: u32,
}

impl Default for CalibrationOptions {
    fn default() -> Self {
        let d = native::defaults(sys::KVTF_RECORD_CALIBRATION);
        let word = |index| native::word(&d, index) as u32;
        CalibrationOptions {
            group_layers: word(sys::KVTF_CALIBRATION_GROUP_LAYERS),
            ratio_min: word(sys::KVTF_CALIBRATION_RATIO_MIN),
            layer_begin: word(sys::KVTF_CALIBRATION_LAYER_BEGIN),
            layer_end: word(sys::KVTF_CALIBRATION_LAYER_END),
            head_begin: word(sys::KVTF_CALIBRATION_HEAD_BEGIN),
            head_end: word(sys::KVTF_CALIBRATION_HEAD_END),
        }
    }
}

/// What a calibration has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CalibrationInfo {
    pub documents: u64,
    pub tokens: u64,
    pub nonfinite: u64,
}

/// Room for the profile of a small model, so that most need one call.
const GUESS: usize = 1 << 18;

fn end(handle: i64) -> Result<()> {
    unsafe { sys::kvtf_calibration_destroy(handle) };
    Ok(())
}

impl Calibration {
    fn create(model: &Model, function: impl FnOnce(&[Hold], &mut Text) -> i64) -> Result<Calibration> {
        Ok(Calibration { core: Core::create("calibration", end, vec![model.core.hold()?], function)? })
    }

    pub fn new(model: &Model, o: &CalibrationOptions) -> Result<Calibration> {
        let words = [o.group_layers, o.ratio_min, o.layer_begin, o.layer_end, o.head_begin, o.head_end];
        let packed = record(&words.map(i64::from));
        Calibration::create(model, |holds, t| unsafe {
            sys::kvtf_calibration_create(holds[0].handle, packed.as_ptr(), packed.len(), t.ptr(), Text::LEN)
        })
    }

    /// Continues one from what `save` gave.
    pub fn restore(model: &Model, saved: &[u8]) -> Result<Calibration> {
        Calibration::create(model, |holds, t| unsafe {
            sys::kvtf_calibration_restore(holds[0].handle, saved.as_ptr(), saved.len(), t.ptr(), Text::LEN)
        })
    }

    pub fn close(&self) -> Result<()> {
        self.core.close()
    }

    /// Takes in tokens of one document.
    pub fn add(&self, view: &View, memory: &[u8], token_begin: u64, tokens: u64) -> Result<()> {
        let packed = view.record();
        let (bases, table) = (bytes_of(&view.bases), bytes_of(&view.block_table));
        self.core
            .on("calibration add", |h, t| unsafe {
                sys::kvtf_calibration_add(
                    h,
                    packed.as_ptr(),
                    packed.len(),
                    bases.as_ptr(),
                    bases.len(),
                    table.as_ptr(),
                    table.len(),
                    memory.as_ptr() as *mut u8, // only read
                    memory.len(),
                    token_begin as i64,
                    tokens as i64,
                    t.ptr(),
                    Text::LEN,
                )
            })
            .map(|_| ())
    }

    pub fn progress(&self) -> Result<CalibrationInfo> {
        let room = 8 * sys::KVTF_CALIBRATION_INFO_WORDS as usize;
        let bytes = self.core.on_output("calibration progress", room, |h, buf, cap, t| unsafe {
            sys::kvtf_calibration_progress(h, buf, cap, t.ptr(), Text::LEN)
        })?;
        Ok(CalibrationInfo {
            documents: native::word(&bytes, sys::KVTF_CALIBRATION_INFO_DOCUMENTS) as u64,
            tokens: native::word(&bytes, sys::KVTF_CALIBRATION_INFO_TOKENS) as u64,
            nonfinite: native::word(&bytes, sys::KVTF_CALIBRATION_INFO_NONFINITE) as u64,
        })
    }

    /// Copies the state out, to go on later with the same result.
    pub fn save(&self) -> Result<Vec<u8>> {
        self.core.on_output("calibration save", GUESS, |h, buf, cap, t| unsafe {
            sys::kvtf_calibration_save(h, buf, cap, t.ptr(), Text::LEN)
        })
    }

    /// Makes the profile of all that was added; it may compute for seconds.
    pub fn finish(&self) -> Result<Vec<u8>> {
        self.core.on_output("calibration finish", GUESS, |h, buf, cap, t| unsafe {
            sys::kvtf_calibration_finish(h, buf, cap, t.ptr(), Text::LEN)
        })
    }
}

/// Checks a profile whole and names it.
pub fn profile_fingerprint(profile: &[u8]) -> Result<Vec<u8>> {
    native::output("profile fingerprint", sys::KVTF_FINGERPRINT_BYTES as usize, |buf, cap, t| unsafe {
        sys::kvtf_profile_fingerprint(profile.as_ptr(), profile.len(), buf, cap, t.ptr(), Text::LEN)
    })
}

/// A profile as JSON.
pub fn describe_profile(profile: &[u8]) -> Result<String> {
    let text = native::output("profile describe", 4096, |buf, cap, t| unsafe {
        sys::kvtf_profile_describe(profile.as_ptr(), profile.len(), buf, cap, t.ptr(), Text::LEN)
    })?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Where caches and peers keep the profile of a fingerprint.
pub fn profile_key(fingerprint: &[u8]) -> Result<Key> {
    let mut key = [0; 36];
    call("profile key", |t| unsafe {
        let (from, len) = (fingerprint.as_ptr(), fingerprint.len());
        sys::kvtf_profile_key(from, len, key.as_mut_ptr(), key.len(), t.ptr(), Text::LEN)
    })?;
    Ok(Key(key))
}

/// A frame of a profile, to put into a cache or to serve.
pub fn wrap_profile(profile: &[u8], digest: Option<&Digest>) -> Result<Vec<u8>> {
    let digest: &[u8] = digest.map_or(&[], |digest| digest);
    native::output("profile wrap", profile.len() + 4096, |buf, cap, t| unsafe {
        let (from, len) = (profile.as_ptr(), profile.len());
        sys::kvtf_profile_wrap(from, len, digest.as_ptr(), digest.len(), buf, cap, t.ptr(), Text::LEN)
    })
}

/// Checks such a frame whole and copies the profile out.
pub fn unwrap_profile(frame: &[u8]) -> Result<Vec<u8>> {
    native::output("profile unwrap", frame.len(), |buf, cap, t| unsafe {
        sys::kvtf_profile_unwrap(frame.as_ptr(), frame.len(), buf, cap, t.ptr(), Text::LEN)
    })
}
