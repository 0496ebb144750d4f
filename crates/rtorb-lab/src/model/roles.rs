//! The processes of an analysed system that is run.

use std::path::Path;

use super::component::Component;
use super::watcher::Watchers;
use crate::processes::child::{Role, arguments, arguments_and_rest, lock_memory, number};

/// A component of the system, and the watchers of its CPUs.
pub(crate) const ROLES: &[Role] = &[
    Role::here("model-component", |words| {
        let [plan] = arguments(words)?;
        lock_memory();
        Component::open(Path::new(plan))?.run()
    }),
    Role::here("model-watcher", |words| {
        let ([room], cpus) = arguments_and_rest(words)?;
        lock_memory();
        let cpus = cpus.iter().map(|cpu| number(cpu));
        let watchers = Watchers::new(number(room)?, cpus.collect::<Result<_, _>>()?);
        watchers.serve()
    }),
];
