//! What the simulator in `simulation/` asks for beyond system calls. It is in no build without `--cfg simulation`.

use std::sync::OnceLock;

/// The simulator's functions.
#[derive(Clone, Copy, Debug)]
pub struct Hooks {
    /// Another thread may run first: called before and after critical sections that make no system call.
    pub point: fn(),
    /// True if the run has the planted bug of that name.
    pub is_planted: fn(&str) -> bool,
}

static HOOKS: OnceLock<Hooks> = OnceLock::new();

/// Sets the functions; the first call counts.
pub fn install(hooks: Hooks) {
    let _ = HOOKS.set(hooks);
}

/// A point at which another thread may run first.
pub fn point() {
    if let Some(hooks) = HOOKS.get() {
        (hooks.point)();
    }
}

/// True if the run has the planted bug of that name.
pub fn is_planted(name: &str) -> bool {
    HOOKS.get().is_some_and(|hooks| (hooks.is_planted)(name))
}
