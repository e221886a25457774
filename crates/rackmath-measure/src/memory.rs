//! The memory of a process that answers for days.
//!
//! glibc's allocator gives threads arenas of their own and keeps what was freed: a server's memory then creeps up with every thread
//! that once answered something large. Other allocators have no such numbers, and nothing happens.

/// From how many bytes on a piece is taken from the system by itself and goes back to it when it is freed. Left alone, glibc raises
/// the mark to the largest piece that was ever freed, up to 32 MiB, and keeps what is smaller.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const APART: i32 = 256 << 10;

/// Two arenas instead of eight a core, and large pieces apart. Call it before threads begin.
#[allow(unsafe_code)]
pub fn few_arenas() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: sets numbers within the allocator, and no other thread has begun.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
        libc::mallopt(libc::M_MMAP_THRESHOLD, APART);
    }
}

/// Whole pages that were freed go back to the system: after work that took much.
#[allow(unsafe_code)]
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the allocator takes its own locks and touches only what is free.
    unsafe {
        libc::malloc_trim(0);
    }
}
