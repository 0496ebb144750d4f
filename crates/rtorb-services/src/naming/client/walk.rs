//! Walking a tree of contexts. Each context is listed once, even with several names.

use super::context::Context;
use super::failure::{Failure, FailureReason};
use super::name::Name;
use crate::stubs::naming::cos_naming::{BindingType, NameComponent};
use std::collections::HashMap;

/// The configuration of a walk.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    /// The depth of contexts to list: 1 for the first context only, at most [`Walk::DEPTH_MAX`].
    pub depth_max: usize,
    /// The number of bindings in one call to the server.
    pub chunk: u32,
}

/// A result of a walk. Names are relative to its start.
#[derive(Debug)]
pub enum Step<'a> {
    /// An object.
    Object(&'a [NameComponent]),
    /// A context.
    Context(&'a [NameComponent], Inside<'a>),
    /// A context that could not be listed. The walk continues.
    Failed(&'a Failure),
}

/// Whether the walk lists a context.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Inside<'a> {
    /// Its bindings follow.
    Follows,
    /// The context is listed under this other name.
    Listed(&'a [NameComponent]),
    /// The context is deeper than the walk goes.
    TooDeep,
}

impl Walk {
    /// A server could return a new context for each call; this depth fits on any thread's stack.
    pub const DEPTH_MAX: usize = 256;

    /// Visits all names below `context`: in each context first the objects, then the contexts, each followed by its bindings. No
    /// server keeps an iterator while the walk is in another context.
    ///
    /// # Errors
    /// The first error that `visit` returns; it ends the walk.
    pub fn walk<E>(
        self,
        context: &Context,
        visit: &mut impl FnMut(Step<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let listed = HashMap::from([(context.as_object().to_string(), Name::new())]);
        let mut walking = Walking {
            how: self,
            listed,
            name: Name::new(),
            depth: 0,
            visit,
        };
        walking.list(context)
    }
}

struct Walking<'v, V> {
    how: Walk,
    /// The contexts so far, by reference.
    listed: HashMap<String, Name>,
    /// The current name.
    name: Name,
    /// The depth of contexts to list: 1 for the first context only, at most [`Walk::DEPTH_MAX`].
    depth: usize,
    visit: &'v mut V,
}

impl<E, V: FnMut(Step<'_>) -> Result<(), E>> Walking<'_, V> {
    fn list(&mut self, context: &Context) -> Result<(), E> {
        self.depth += 1;
        let mut contexts = Vec::new();
        match context.bindings(self.how.chunk) {
            Ok(bindings) => {
                for binding in bindings {
                    match binding {
                        Ok((name, BindingType::Nobject)) => {
                            self.at(&name, |walking| {
                                (walking.visit)(Step::Object(&walking.name))
                            })?;
                        }
                        Ok((name, BindingType::Ncontext)) => contexts.push(name),
                        Err(exception) => self.failed(FailureReason::System(exception))?,
                    }
                }
            }
            Err(exception) => self.failed(FailureReason::System(exception))?,
        }
        for name in contexts {
            self.at(&name, |walking| walking.enter(context, &name))?;
        }
        self.depth -= 1;
        Ok(())
    }

    /// Visits a context that is bound in `parent`.
    fn enter(&mut self, parent: &Context, name: &[NameComponent]) -> Result<(), E> {
        if self.depth >= self.how.depth_max.min(Walk::DEPTH_MAX) {
            return (self.visit)(Step::Context(&self.name, Inside::TooDeep));
        }
        let context = match parent.context(name) {
            Ok(context) => context,
            Err(failure) => {
                (self.visit)(Step::Context(&self.name, Inside::Follows))?;
                return self.failed(failure.reason);
            }
        };
        let reference = context.as_object().to_string();
        if let Some(before) = self.listed.get(&reference) {
            return (self.visit)(Step::Context(&self.name, Inside::Listed(before)));
        }
        self.listed.insert(reference, self.name.clone());
        (self.visit)(Step::Context(&self.name, Inside::Follows))?;
        self.list(&context)
    }

    fn failed(&mut self, why: FailureReason) -> Result<(), E> {
        let failure = Failure::new(&self.name, why);
        (self.visit)(Step::Failed(&failure))
    }

    /// Calls `action` with the name extended by one binding.
    fn at<T>(&mut self, name: &[NameComponent], work: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.name.len();
        self.name.extend_from_slice(name);
        let done = work(self);
        self.name.truncate(length);
        done
    }
}
