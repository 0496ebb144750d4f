//! Installs handlers of signals.

use crate::refused::{Refused, Resource};
use core::mem::MaybeUninit;
use core::ptr;

/// Makes `handle` the handler of a signal, for good.
///
/// # Safety
/// The handler may interrupt any code, so it must be async-signal-safe (signal-safety(7)).
///
/// # Errors
/// [`Refused`] if the kernel refuses the handler.
pub(crate) unsafe fn install(
    signal: libc::c_int,
    handle: extern "C" fn(libc::c_int),
) -> Result<(), Refused> {
    // SAFETY: zero is valid for every field: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = handle as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the caller says that the handler is async-signal-safe, `action` outlives the call, and null is allowed for the old action.
    let returned = unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
    Resource::SignalHandler.check(returned)
}

/// Returns true if the process ignores a signal, as nohup(1) has it ignore SIGHUP.
///
/// # Errors
/// [`Refused`] if the kernel does not tell.
pub(crate) fn is_ignored(signal: libc::c_int) -> Result<bool, Refused> {
    let mut action = MaybeUninit::uninit();
    // SAFETY: null leaves the action as it is, and `action` has room for the old one.
    let returned = unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) };
    Resource::SignalHandler.check(returned)?;
    // SAFETY: the call has succeeded, so the kernel has filled it.
    let action: libc::sigaction = unsafe { action.assume_init() };
    Ok(action.sa_sigaction == libc::SIG_IGN)
}
