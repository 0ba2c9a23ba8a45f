//! Statuses and errors.
use crate::sys;
use std::fmt;

/// A number of the library; one that this crate does not know keeps its value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Status(pub i32);

impl Status {
    pub const OK: Status = Status(sys::KVTF_OK as i32);
    pub const INTERNAL: Status = Status(sys::KVTF_INTERNAL as i32);
    pub const INVALID_ARGUMENT: Status = Status(sys::KVTF_INVALID_ARGUMENT as i32);
    pub const OUT_OF_RANGE: Status = Status(sys::KVTF_OUT_OF_RANGE as i32);
    pub const BUFFER_TOO_SMALL: Status = Status(sys::KVTF_BUFFER_TOO_SMALL as i32);
    pub const UNSUPPORTED: Status = Status(sys::KVTF_UNSUPPORTED as i32);
    pub const UNAVAILABLE: Status = Status(sys::KVTF_UNAVAILABLE as i32);
    pub const NOT_FOUND: Status = Status(sys::KVTF_NOT_FOUND as i32);
    pub const ALREADY_EXISTS: Status = Status(sys::KVTF_ALREADY_EXISTS as i32);
    pub const STALE_HANDLE: Status = Status(sys::KVTF_STALE_HANDLE as i32);
    pub const WRONG_HANDLE: Status = Status(sys::KVTF_WRONG_HANDLE as i32);
    pub const BUSY: Status = Status(sys::KVTF_BUSY as i32);
    pub const CLOSED: Status = Status(sys::KVTF_CLOSED as i32);
    pub const TIMEOUT: Status = Status(sys::KVTF_TIMEOUT as i32);
    pub const CANCELLED: Status = Status(sys::KVTF_CANCELLED as i32);
    pub const STALLED: Status = Status(sys::KVTF_STALLED as i32);
    pub const PEER_DEAD: Status = Status(sys::KVTF_PEER_DEAD as i32);
    pub const CORRUPT: Status = Status(sys::KVTF_CORRUPT as i32);
    pub const MISMATCH: Status = Status(sys::KVTF_MISMATCH as i32);
    pub const PROFILE_MISSING: Status = Status(sys::KVTF_PROFILE_MISSING as i32);
    pub const VERSION: Status = Status(sys::KVTF_VERSION as i32);
    pub const IO: Status = Status(sys::KVTF_IO as i32);
    pub const DISK_FULL: Status = Status(sys::KVTF_DISK_FULL as i32);
    pub const LOCKED: Status = Status(sys::KVTF_LOCKED as i32);
    pub const PERMISSION: Status = Status(sys::KVTF_PERMISSION as i32);
    pub const ADDRESS_IN_USE: Status = Status(sys::KVTF_ADDRESS_IN_USE as i32);
    pub const OUT_OF_MEMORY: Status = Status(sys::KVTF_OUT_OF_MEMORY as i32);
    pub const LIMIT: Status = Status(sys::KVTF_LIMIT as i32);

    /// For example "KVT_ERR_TIMEOUT"; "KVT_STATUS_UNKNOWN" for a number that the library does not know.
    pub fn name(self) -> String {
        let mut buf = [0u8; 64];
        let n = unsafe { sys::kvtf_status_name(i64::from(self.0), buf.as_mut_ptr(), buf.len()) };
        String::from_utf8_lossy(&buf[..(n as usize).min(buf.len())]).into_owned()
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.0)
    }
}

/// A failed call: its status and the library's text.
#[derive(Debug, Clone)]
pub struct Error {
    pub status: Status,
    pub call: &'static str,
    pub text: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.call, self.status.name(), self.text)
    }
}

impl std::error::Error for Error {}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(status: Status, call: &'static str, text: String) -> Error {
        Error { status, call, text }
    }
}
