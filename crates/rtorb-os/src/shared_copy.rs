//! Copies between private memory and memory that another process may write at the same moment.
//!
//! A plain copy would be a data race, and the compiler may assume that there is none: it could read a byte twice and expect the
//! same value. Here the compiler cannot see the accesses. What is copied while the peer writes is a mixture of old and new bytes,
//! and no more than that: a caller uses a byte only after it has a private copy.
//!
//! On `x86_64`, assembly calls the C library's `memcpy`, which reads no byte to decide anything. This costs what a plain copy costs:
//! 27 ns for 4 KiB and 1.2 us for 64 KiB on a machine where a loop of volatile words takes 71 to 79 ns and 1.5 us, and 2 ns for 64
//! bytes. (`rep movsb` is as fast on new processors; on older ones it is slow for short messages.) Elsewhere words are copied by
//! relaxed atomic accesses.

#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) use opaque::{copy_in, copy_out};
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(crate) use words::{copy_in, copy_out};

/// The copies by `memcpy`, called where the compiler does not see it.
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod opaque {
    pub(crate) use copy_out as copy_in;

    /// Copies `count` bytes out of shared memory, or into it.
    ///
    /// # Safety
    /// `from` must be mapped for reading and `into` for writing for `count` bytes. They must not overlap, and no other thread of this
    /// process may use the private bytes meanwhile.
    #[inline]
    pub(crate) unsafe fn copy_out(into: *mut u8, from: *const u8, count: usize) {
        // SAFETY: a call by the C convention, whose registers are all given up. The stack is aligned for one, because `nostack` is
        // not said. The function accesses the `count` bytes at each pointer and nothing else.
        unsafe {
            core::arch::asm!(
                "call {memcpy}",
                memcpy = sym libc::memcpy,
                inout("rdi") into => _,
                inout("rsi") from => _,
                inout("rdx") count => _,
                clobber_abi("C"),
            );
        }
    }
}

/// The copies for every machine: bytes to the next aligned word, then words, then bytes.
#[cfg(any(test, miri, not(target_arch = "x86_64")))]
mod words {
    use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

    const WORD: usize = size_of::<usize>();

    /// Copies `count` bytes out of shared memory.
    ///
    /// # Safety
    /// As for `memcpy`; no other thread of this process may use the bytes at `into` meanwhile.
    pub(crate) unsafe fn copy_out(into: *mut u8, from: *const u8, count: usize) {
        let mut done = 0;
        while done < count {
            // SAFETY: fewer than `count` bytes are done.
            let to = unsafe { into.add(done) };
            // SAFETY: fewer than `count` bytes are done.
            let from = unsafe { from.add(done) };
            if count - done >= WORD && from.addr().is_multiple_of(WORD) {
                // SAFETY: a word is left, and it is aligned.
                let word = unsafe { &*from.cast::<AtomicUsize>() }.load(Ordering::Relaxed);
                // SAFETY: there is room for a word.
                unsafe { to.cast::<usize>().write_unaligned(word) };
                done += WORD;
            } else {
                // SAFETY: a byte is left.
                let byte = unsafe { &*from.cast::<AtomicU8>() }.load(Ordering::Relaxed);
                // SAFETY: there is room for a byte.
                unsafe { to.write(byte) };
                done += 1;
            }
        }
    }

    /// Copies `count` bytes into shared memory.
    ///
    /// # Safety
    /// As for `memcpy`; no other thread of this process may write the bytes at `from` meanwhile.
    pub(crate) unsafe fn copy_in(into: *mut u8, from: *const u8, count: usize) {
        let mut done = 0;
        while done < count {
            // SAFETY: fewer than `count` bytes are done.
            let to = unsafe { into.add(done) };
            // SAFETY: fewer than `count` bytes are done.
            let from = unsafe { from.add(done) };
            if count - done >= WORD && to.addr().is_multiple_of(WORD) {
                // SAFETY: a word is left.
                let word = unsafe { from.cast::<usize>().read_unaligned() };
                // SAFETY: there is room for a word, and it is aligned.
                unsafe { &*to.cast::<AtomicUsize>() }.store(word, Ordering::Relaxed);
                done += WORD;
            } else {
                // SAFETY: a byte is left.
                let byte = unsafe { from.read() };
                // SAFETY: there is room for a byte.
                unsafe { &*to.cast::<AtomicU8>() }.store(byte, Ordering::Relaxed);
                done += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Copy = unsafe fn(*mut u8, *const u8, usize);

    #[test]
    fn each_way_copies_all_bytes_and_no_other_at_every_alignment() {
        let ways: [Copy; 4] = [copy_out, copy_in, words::copy_out, words::copy_in];
        let mut from: Vec<u8> = (0..300).map(|index| (index % 251) as u8 + 1).collect();
        for (way, copy) in ways.into_iter().enumerate() {
            for case in (0..8 * 8 * 40).step_by(if cfg!(miri) { 37 } else { 1 }) {
                let (to, at, count) = (case % 8, case / 8 % 8, case / 64 * 5);
                let mut into = vec![0; 300];
                // Both as to memory that others may write, although the source is only read.
                let (place, source) = (into[to..].as_mut_ptr(), from[at..].as_mut_ptr());
                // SAFETY: both have 300 bytes, of which at most 8 + 195 are used.
                unsafe { copy(place, source, count) };
                assert_eq!(into[to..to + count], from[at..at + count], "{way}, {case}");
                let others = into[..to].iter().chain(&into[to + count..]);
                assert!(others.copied().all(|byte| byte == 0), "{way}, {case}");
            }
        }
    }
}
