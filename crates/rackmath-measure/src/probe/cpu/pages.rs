//! Long arrays on pages of their own: asked to be huge, first touched by who asks.

#![allow(unsafe_code)]

use std::slice;

/// So many bytes, zero, at the start of a page.
pub struct Pages {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: the pages belong to whoever holds the value; nothing else knows of them.
unsafe impl Send for Pages {}

#[cfg(unix)]
impl Pages {
    /// Nothing where the system refuses.
    pub fn new(bytes: usize) -> Option<Self> {
        let bytes = bytes.next_multiple_of(4096).max(4096);
        let (read_write, private) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: an anonymous mapping at an address of the system's choosing touches nothing that exists.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, read_write, private, -1, 0) };
        if start == libc::MAP_FAILED {
            return None;
        }
        #[cfg(target_os = "linux")]
        // SAFETY: advice about pages that are ours; a refusal changes nothing.
        unsafe {
            libc::madvise(start, bytes, libc::MADV_HUGEPAGE);
        }
        let mut pages = Self { start: start.cast(), bytes };
        // The first to touch a page decides which node's memory it is in.
        pages.all_mut::<u8>().iter_mut().step_by(4096).for_each(|byte| *byte = 0);
        Some(pages)
    }
}

#[cfg(unix)]
impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length, and unmapped once.
        unsafe {
            libc::munmap(self.start.cast(), self.bytes);
        }
    }
}

#[cfg(not(unix))]
impl Pages {
    pub fn new(bytes: usize) -> Option<Self> {
        let bytes = bytes.next_multiple_of(4096).max(4096);
        let layout = std::alloc::Layout::from_size_align(bytes, 4096).ok()?;
        // SAFETY: the layout is not empty.
        let start = unsafe { std::alloc::alloc_zeroed(layout) };
        (!start.is_null()).then_some(Self { start, bytes })
    }
}

#[cfg(not(unix))]
impl Drop for Pages {
    fn drop(&mut self) {
        if let Ok(layout) = std::alloc::Layout::from_size_align(self.bytes, 4096) {
            // SAFETY: allocated by `new` with this layout, and freed once.
            unsafe { std::alloc::dealloc(self.start, layout) }
        }
    }
}

/// Numbers that any bits are one of.
pub trait Plain: Copy {}
impl Plain for u8 {}
impl Plain for f32 {}
impl Plain for f64 {}
impl Plain for u64 {}

impl Pages {
    pub fn all<T: Plain>(&self) -> &[T] {
        // SAFETY: the bytes are ours, begin at a page, were zeroed, and any bits are a number.
        unsafe { slice::from_raw_parts(self.start.cast(), self.bytes / size_of::<T>()) }
    }

    pub fn all_mut<T: Plain>(&mut self) -> &mut [T] {
        // SAFETY: as above, and the borrow is the only one.
        unsafe { slice::from_raw_parts_mut(self.start.cast(), self.bytes / size_of::<T>()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_zero_whole_and_can_be_written() {
        let mut pages = Pages::new(10_000).unwrap();
        assert_eq!(pages.all::<u8>().len(), 12_288);
        assert!(pages.all::<u64>().iter().all(|x| *x == 0));
        pages.all_mut::<f64>()[1535] = 2.5;
        assert_eq!(pages.all::<f64>()[1535], 2.5);
        assert_eq!(pages.all::<u8>().as_ptr() as usize % 4096, 0);
    }
}
