//! The processes of an analysed system that is run.

use std::path::Path;

use super::component::Component;
use super::watcher::Watchers;
use crate::processes::child::{NOT_ITS_ARGUMENTS, Role, lock_memory, number};

/// A component of the system, and the watchers of its CPUs.
pub(crate) const ROLES: &[Role] = &[
    Role::here("model-component", |words| match *words {
        [plan] => {
            lock_memory();
            Component::open(Path::new(plan))?.run()
        }
        _ => Err(NOT_ITS_ARGUMENTS.to_owned()),
    }),
    Role::here("model-watcher", |words| match *words {
        [room, ref cpus @ ..] => {
            lock_memory();
            let cpus = cpus.iter().map(|cpu| number(cpu));
            let watchers = Watchers::new(number(room)?, cpus.collect::<Result<_, _>>()?);
            watchers.serve()
        }
        _ => Err(NOT_ITS_ARGUMENTS.to_owned()),
    }),
];
