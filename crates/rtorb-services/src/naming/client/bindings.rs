//! Listing a context in bounded chunks.

use super::name::Name;
use crate::stubs::naming::cos_naming::{Binding, BindingIterator, BindingType, NamingContext};
use rtorb::SystemException;
use std::vec::IntoIter;

/// An iterator over the bindings of a context in the server's order. It calls the server for each chunk.
///
/// Dropping it ends the server's iterator.
#[derive(Debug)]
pub struct Bindings {
    ready: IntoIter<Binding>,
    /// The server's iterator for the rest, if there is one.
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
            // A further call must not return the same exception for ever.
            self.others = None;
        })?;
        // A server that announces more and sends none could be called for ever.
        if !is_more || bindings.is_empty() {
            self.end();
        }
        self.ready = bindings.into_iter();
        Ok(())
    }

    fn end(&mut self) {
        if let Some(others) = self.others.take() {
            // Most servers end an exhausted iterator themselves, so this may fail.
            let _ = others.destroy();
        }
    }
}

impl Iterator for Bindings {
    /// A name of one step in the context, and its type.
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
