//! Bytes in, bytes out: the only functions JavaScript calls.

#![allow(unsafe_code, reason = "four functions keep their names for JavaScript; no memory is touched by hand")]

use crate::{Response, respond as answer};
use rackmath::Catalog;
use std::cell::RefCell;

#[derive(Default)]
struct Desk {
    said: Vec<u8>,
    answered: Vec<u8>,
    catalog: Catalog,
}

thread_local! {
    static DESK: RefCell<Desk> = RefCell::default();
}

/// Where so many bytes of the next call can be written.
#[unsafe(no_mangle)]
pub extern "C" fn room(bytes: usize) -> *mut u8 {
    DESK.with_borrow_mut(|desk| {
        desk.said.clear();
        desk.said.resize(bytes, 0);
        desk.said.as_mut_ptr()
    })
}

/// Takes what was written into the catalogue, besides what is there; 0 where it is none, and what [`given`] then holds says why.
#[unsafe(no_mangle)]
pub extern "C" fn stock() -> usize {
    DESK.with_borrow_mut(|desk| {
        let said = std::mem::take(&mut desk.said);
        match desk.catalog.put_bundle(&said) {
            Ok(()) => 1,
            Err(error) => {
                desk.answered = error.to_string().into_bytes();
                0
            }
        }
    })
}

/// Answers `path\nbody`; the length of what [`given`] then holds: `status type\n` and the bytes.
#[unsafe(no_mangle)]
pub extern "C" fn respond() -> usize {
    DESK.with_borrow_mut(|desk| {
        let said = String::from_utf8_lossy(&desk.said);
        let (path, body) = said.split_once('\n').unwrap_or((&said, ""));
        let Response { status, mime, bytes } = answer(&desk.catalog, path, body);
        desk.answered = format!("{status} {mime}\n").into_bytes();
        desk.answered.extend(bytes);
        desk.answered.len()
    })
}

/// Where the last answer stands.
#[unsafe(no_mangle)]
pub extern "C" fn given() -> *const u8 {
    DESK.with_borrow(|desk| desk.answered.as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmath::Kind;

    #[test]
    fn bytes_go_in_and_come_out() {
        let write = |bytes: &[u8]| {
            room(bytes.len());
            DESK.with_borrow_mut(|desk| desk.said.copy_from_slice(bytes));
        };
        write(b"{");
        assert_eq!(stock(), 0);
        let all = rackmath_catalog::embedded();
        for part in [&all.bundle_of(|kind| kind != Kind::Validation), &all.bundle_of(|kind| kind == Kind::Validation)] {
            write(part.as_bytes());
            assert_eq!(stock(), 1);
        }
        write(b"api/step\n{}");
        let length = respond();
        DESK.with_borrow(|desk| {
            assert_eq!(length, desk.answered.len());
            assert!(desk.answered.starts_with(b"200 application/json\n{\n"));
        });
    }
}
