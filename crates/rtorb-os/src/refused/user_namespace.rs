//! User namespaces, in which a process has capabilities without power over the host.

use super::read;
use std::path::Path;

/// Returns true if this process is in a user namespace below the host's. There its capabilities have no power over what the kernel asks for
/// in the host's one: real-time policies (CAP_SYS_NICE) and locked memory (CAP_IPC_LOCK). `root` is `/`, or the folder that stands in its
/// place in a test.
///
/// A nested namespace that maps all users to themselves looks like the host's one.
#[must_use]
pub fn is_in_inner_user_namespace(root: &Path) -> bool {
    // The host's own maps all users to themselves (user_namespaces(7)).
    let users = read(root, "/proc/self/uid_map").unwrap_or_default();
    !users.is_empty() && users.split_whitespace().ne(["0", "0", "4294967295"])
}
