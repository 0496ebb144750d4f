//! What is bound in a context, a bounded part at a time.

use super::name::Name;
use crate::stubs::naming::cos_naming::{Binding, BindingIterator, BindingType, NamingContext};
use rtorb::SystemException;
use std::vec::IntoIter;

/// The bindings of a context, in the order of its server; the server is asked for more when what came is used up.
///
/// Dropped, it tells the server that no more are wanted.
#[derive(Debug)]
pub struct Bindings {
    ready: IntoIter<Binding>,
    /// Gives the others, as long as there are any.
    others: Option<BindingIterator>,
    chunk: u32,
}

impl Bindings {
    pub(super) fn begin(context: &NamingContext, chunk: u32) -> Result<Self, SystemException> {
        let chunk = chunk.max(1);
        let (first, others) = context.list(chunk)?;
        Ok(Self {
            ready: first.into_iter(),
            others,
            chunk,
        })
    }

    fn refill(&mut self) -> Result<(), SystemException> {
        let Some(others) = &self.others else {
            return Ok(());
        };
        let (is_more, bindings) = others.next_n(self.chunk).inspect_err(|_| {
            // Whoever asks on after an exception shall not be told the same for ever.
            self.others = None;
        })?;
        // A server that says there are more and sends none could be asked for ever.
        if !is_more || bindings.is_empty() {
            self.end();
        }
        self.ready = bindings.into_iter();
        Ok(())
    }

    fn end(&mut self) {
        if let Some(others) = self.others.take() {
            // Most servers end an iterator that has given everything themselves, so this may come too late.
            let _ = others.destroy();
        }
    }
}

impl Iterator for Bindings {
    /// A name within the context, of one step, and whether it is a context.
    type Item = Result<(Name, BindingType), SystemException>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.as_slice().is_empty()
            && let Err(exception) = self.refill()
        {
            return Some(Err(exception));
        }
        let Binding {
            binding_name,
            binding_type,
        } = self.ready.next()?;
        Some(Ok((binding_name, binding_type)))
    }
}

impl Drop for Bindings {
    fn drop(&mut self) {
        self.end();
    }
}
