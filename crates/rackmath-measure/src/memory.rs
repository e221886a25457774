//! The memory of a process that answers for days.

/// Two arenas instead of eight a core. glibc's allocator gives threads arenas of their own and rarely returns what they held: a
/// server's memory then creeps up with every thread that once answered something large. Call it before threads begin. Other
/// allocators have no such number, and nothing happens.
#[allow(unsafe_code)]
pub fn few_arenas() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: sets a number within the allocator, and no other thread has begun.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
    }
}
