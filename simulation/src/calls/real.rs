//! The functions of the C library itself, behind those that this program defines.
#![expect(unsafe_code, reason = "foreign functions")]

use std::ffi::c_long;
use std::sync::atomic::AtomicU32;

/// Calls the C library's function of that name and type.
macro_rules! real {
    ($name:ident($($argument:expr => $type:ty),*) -> $result:ty) => {{
        static FOUND: ::std::sync::atomic::AtomicUsize = ::std::sync::atomic::AtomicUsize::new(0);
        let mut found = FOUND.load(::std::sync::atomic::Ordering::Relaxed);
        if found == 0 {
            let name = concat!(stringify!($name), "\0");
            // SAFETY: the name ends with 0.
            found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr().cast()) } as usize;
            assert!(found != 0, concat!("the C library has no ", stringify!($name)));
            FOUND.store(found, ::std::sync::atomic::Ordering::Relaxed);
        }
        // SAFETY: the function of that name in the C library has this type. Where it takes a variable number of arguments, the
        // caller's registers are those of a function that takes as many.
        let function: unsafe extern "C" fn($($type),*) -> $result = unsafe { ::std::mem::transmute(found) };
        // SAFETY: the arguments are those of the caller, who keeps to the function's rules.
        unsafe { function($($argument),*) }
    }};
}
pub(crate) use real;

/// A system call of the real kernel.
pub(crate) fn system_call(number: c_long, arguments: [c_long; 6]) -> c_long {
    let [a, b, c, d, e, f] = arguments;
    real!(syscall(number => c_long, a => c_long, b => c_long, c => c_long, d => c_long, e => c_long, f => c_long) -> c_long)
}

/// Sleeps while the word has that value, or less long.
pub(crate) fn sleep_while(word: &AtomicU32, value: u32) {
    let wait = c_long::from(libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG);
    let address = word.as_ptr() as c_long;
    system_call(libc::SYS_futex, [address, wait, value.into(), 0, 0, 0]);
}

pub(crate) fn wake(word: &AtomicU32) {
    let wake = c_long::from(libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG);
    let address = word.as_ptr() as c_long;
    system_call(libc::SYS_futex, [address, wake, 1, 0, 0, 0]);
}
