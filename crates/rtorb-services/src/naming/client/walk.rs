//! A tree of contexts, each listed once however many names lead to it.

use super::context::Context;
use super::failure::{Failure, FailureReason};
use super::name::Name;
use crate::stubs::naming::cos_naming::{BindingType, NameComponent};
use std::collections::HashMap;

/// How a tree is walked.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    /// How many contexts below one another are listed: 1 for the first one alone; never more than [`Walk::DEPTH_MAX`].
    pub depth_max: usize,
    /// How many bindings a server is asked for at a time.
    pub chunk: u32,
}

/// One thing that a walk finds; names are those from where it began.
#[derive(Debug)]
pub enum Step<'a> {
    /// A name of an object.
    Object(&'a [NameComponent]),
    /// A name of a context.
    Context(&'a [NameComponent], Inside<'a>),
    /// What could not be listed. The walk goes on beside it.
    Failed(&'a Failure),
}

/// What a walk does with a context that it finds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Inside<'a> {
    /// What is in it follows.
    Follows,
    /// It was listed under this name before.
    Listed(&'a [NameComponent]),
    /// It is as deep as the walk goes.
    TooDeep,
}

impl Walk {
    /// A server could make a new context each time it is asked; this many below one another fit on any thread's stack.
    pub const DEPTH_MAX: usize = 256;

    /// Finds all that is below `context`: in each context the objects first, then the contexts, each followed by what is in
    /// it. No server has to keep an iterator for the walk while it is elsewhere.
    ///
    /// # Errors
    /// The first error that `visit` answers; the walk ends with it.
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
    /// The contexts so far, by their references.
    listed: HashMap<String, Name>,
    /// Where the walk is.
    name: Name,
    /// How many contexts below one another are being listed.
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

    /// Finds what is in a context that is bound in `parent`.
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

    /// Does something with the name one binding longer.
    fn at<T>(&mut self, name: &[NameComponent], work: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.name.len();
        self.name.extend_from_slice(name);
        let done = work(self);
        self.name.truncate(length);
        done
    }
}
