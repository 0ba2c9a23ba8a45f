//! Calls of the facade, and the life of a handle.
use crate::status::{Error, Result, Status};
use crate::sys;
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Where one call writes the text of its failure.
pub(crate) struct Text(MaybeUninit<[u8; 1025]>);

impl Text {
    pub(crate) fn ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }

    pub(crate) const LEN: usize = 1025;

    fn read(&self) -> String {
        // The first byte is set before the call, and the facade ends what it writes with NUL.
        let bytes: *const u8 = self.0.as_ptr().cast();
        let mut len = 0;
        while len < Text::LEN && unsafe { *bytes.add(len) } != 0 {
            len += 1;
        }
        String::from_utf8_lossy(unsafe { std::slice::from_raw_parts(bytes, len) }).into_owned()
    }
}

/// Makes one native call.
pub(crate) fn call(name: &'static str, function: impl FnOnce(&mut Text) -> i64) -> Result<i64> {
    let mut text = Text(MaybeUninit::uninit());
    unsafe { *text.ptr() = 0 };
    let result = function(&mut text);
    if result < 0 {
        return Err(Error::new(Status(result as i32), name, text.read()));
    }
    Ok(result)
}

/// Makes a call whose output has no known size: `function` gets room for `guess` bytes, then for as many as it asks.
pub(crate) fn output(
    name: &'static str,
    guess: usize,
    mut function: impl FnMut(*mut u8, usize, &mut Text) -> i64,
) -> Result<Vec<u8>> {
    let mut room = guess;
    loop {
        let mut bytes: Vec<u8> = Vec::with_capacity(room);
        let len = call(name, |text| function(bytes.as_mut_ptr(), room, text))? as usize;
        if len <= room {
            unsafe { bytes.set_len(len) };
            return Ok(bytes);
        }
        room = len;
    }
}

/// The loaded library's version.
pub fn version() -> String {
    let bytes = output("version", 32, |buf, cap, _| unsafe { sys::kvtf_version(buf, cap) });
    bytes.map(|b| String::from_utf8_lossy(&b).into_owned()).unwrap_or_default()
}

/// The loaded library's ABI: major in the upper 16 bits.
pub fn abi_version() -> u32 {
    unsafe { sys::kvtf_abi_version() as u32 }
}

/// Refuses a library of another major version; before 1.0 of another minor one, too.
fn compare_abi(library: u32, header: u32) -> Result<()> {
    if library >> 16 == header >> 16 && (header >> 16 != 0 || library == header) {
        return Ok(());
    }
    let text = format!(
        "the library has ABI {}.{}, this crate {}.{}",
        library >> 16,
        library & 0xffff,
        header >> 16,
        header & 0xffff
    );
    Err(Error::new(Status::VERSION, "load", text))
}

/// Comes before every handle that has no parent.
pub(crate) fn check_abi() -> Result<()> {
    compare_abi(abi_version(), unsafe { sys::kvtf_header_abi_version() as u32 })
}

struct Life {
    handle: i64, // 0 once closed
    holds: usize,
    parents: Vec<Hold>,
}

/// What all objects have: a handle that is given out only while it is open. Threads: any.
pub(crate) struct Core {
    kind: &'static str,
    end: fn(i64) -> Result<()>,
    life: Mutex<Life>,
}

/// A use of an object, by a call or a child: until it is dropped the object stays open.
pub(crate) struct Hold {
    core: Arc<Core>,
    pub(crate) handle: i64,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.core.lock().holds -= 1;
    }
}

impl Core {
    /// Creates an object under the parents that `holds` keep open.
    pub(crate) fn create(
        kind: &'static str,
        end: fn(i64) -> Result<()>,
        holds: Vec<Hold>,
        function: impl FnOnce(&[Hold], &mut Text) -> i64,
    ) -> Result<Arc<Core>> {
        if holds.is_empty() {
            check_abi()?;
        }
        let handle = call(kind, |text| function(&holds, text))?;
        let life = Mutex::new(Life { handle, holds: 0, parents: holds });
        Ok(Arc::new(Core { kind, end, life }))
    }

    /// A panic of the host cannot leave a life half changed, so poisoning says nothing here.
    fn lock(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn hold(self: &Arc<Core>) -> Result<Hold> {
        let mut life = self.lock();
        if life.handle == 0 {
            return Err(Error::new(Status::CLOSED, self.kind, format!("the {} is closed", self.kind)));
        }
        life.holds += 1;
        Ok(Hold { core: self.clone(), handle: life.handle })
    }

    /// Keeps `parent` open until this object, which the caller holds, is closed.
    pub(crate) fn adopt(&self, parent: Hold) {
        self.lock().parents.push(parent);
    }

    pub(crate) fn on(
        self: &Arc<Core>,
        name: &'static str,
        function: impl FnOnce(i64, &mut Text) -> i64,
    ) -> Result<i64> {
        let hold = self.hold()?;
        call(name, |text| function(hold.handle, text))
    }

    pub(crate) fn on_output(
        self: &Arc<Core>,
        name: &'static str,
        guess: usize,
        mut function: impl FnMut(i64, *mut u8, usize, &mut Text) -> i64,
    ) -> Result<Vec<u8>> {
        let hold = self.hold()?;
        output(name, guess, |buf, cap, text| function(hold.handle, buf, cap, text))
    }

    pub(crate) fn close(&self) -> Result<()> {
        let (handle, parents) = {
            let mut life = self.lock();
            if life.handle == 0 {
                return Ok(());
            }
            if life.holds > 0 {
                let text = format!("the {} has {} open children or calls", self.kind, life.holds);
                return Err(Error::new(Status::BUSY, "close", text));
            }
            (std::mem::take(&mut life.handle), std::mem::take(&mut life.parents))
        };
        let ended = (self.end)(handle);
        drop(parents);
        ended
    }
}

impl Drop for Core {
    /// Nobody can be told about a failure here; `close` tells.
    fn drop(&mut self) {
        let _ = self.close();
    }
}

/// Records: 64-bit little-endian words; see bindings/swig/kvartet_flat.h.
pub(crate) fn record(words: &[i64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

pub(crate) fn word(bytes: &[u8], index: i64) -> i64 {
    let at = index as usize * 8;
    let mut word = [0u8; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    i64::from_le_bytes(word)
}

pub(crate) fn real(bytes: &[u8], index: i64) -> f64 {
    f64::from_bits(word(bytes, index) as u64)
}

pub(crate) fn bits(number: f64) -> i64 {
    number.to_bits() as i64
}

pub(crate) fn milliseconds(timeout: Duration) -> i64 {
    let rounded = timeout.as_nanos().saturating_add(999_999) / 1_000_000;
    i64::try_from(rounded).unwrap_or(i64::MAX)
}

/// A record of defaults. It cannot fail for a record that the library has.
pub(crate) fn defaults(number: i64) -> Vec<u8> {
    output("defaults", 256, |buf, cap, text| unsafe { sys::kvtf_defaults(number, buf, cap, text.ptr(), Text::LEN) })
        .expect("the facade knows all of its records")
}

/// Types without padding, whose bytes are what the facade reads.
pub(crate) trait Plain: Copy {}
impl Plain for i32 {}
impl Plain for u32 {}
impl Plain for i64 {}
impl Plain for u64 {}
impl Plain for f32 {}
impl Plain for f64 {}
impl Plain for Status {}
impl Plain for crate::model::Key {}

pub(crate) fn bytes_of<T: Plain>(values: &[T]) -> &[u8] {
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), std::mem::size_of_val(values)) }
}

pub(crate) fn bytes_of_mut<T: Plain>(values: &mut [T]) -> &mut [u8] {
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), std::mem::size_of_val(values)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_and_abi() {
        assert!(version().starts_with("0."));
        assert_eq!(i64::from(abi_version()), unsafe { sys::kvtf_header_abi_version() });
        assert!(compare_abi(0x0001_0002, 0x0001_0001).is_ok());
        let refused = compare_abi(0x0002_0000, 0x0001_0000).unwrap_err();
        assert_eq!(refused.status, Status::VERSION);
        assert!(refused.text.contains("2.0") && refused.text.contains("1.0"));
        assert!(compare_abi(2, 1).is_err());
    }
}
