//! Whether this program runs in a machine that `rtorb-kernels` emulates.

use std::fs;
use std::io;
use std::sync::OnceLock;

/// Whether this process runs in such a machine: asked of the kernel, once.
#[must_use]
pub fn is_emulated() -> bool {
    static TOLD: OnceLock<bool> = OnceLock::new();
    *TOLD.get_or_init(|| only_if_told_so().is_ok())
}

/// Reads from the kernel's command line that the kernel was told so. A caller's environment cannot say it.
///
/// # Errors
/// That it was not.
pub fn only_if_told_so() -> io::Result<()> {
    if fs::read_to_string("/proc/cmdline")?.contains(VARIABLE) {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "the kernel was not told {VARIABLE}"
    )))
}

/// Unknown to the kernel, which hands it on to its first process.
pub const VARIABLE: &str = "RTORB_GUEST";
