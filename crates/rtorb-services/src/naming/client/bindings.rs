//! Listing a context in bounded chunks.

use super::name::Name;
use crate::stubs::naming::cos_naming::{Binding, BindingIterator, BindingType, NamingContext};
use rtorb::{ExceptionKind, SystemException};
use std::vec::IntoIter;

/// An iterator over the bindings of a context in the server's order. It calls the server for each chunk.
///
/// A name that cannot be sent in the code set of the connection is an error of its own: the names of its chunk are then asked for one
/// by one. Dropping it ends the server's iterator.
#[derive(Debug)]
pub struct Bindings {
    context: NamingContext,
    ready: IntoIter<Binding>,
    /// The server's iterator for the rest, if there is one.
    others: Option<BindingIterator>,
    chunk: u32,
    /// The number of names so far.
    read: u64,
    /// Names in a row that could not be sent, since they are asked for one by one.
    unsendable: Option<u32>,
}

impl Bindings {
    pub(super) fn begin(context: &NamingContext, chunk: u32) -> Result<Self, SystemException> {
        let mut bindings = Self {
            context: context.clone(),
            ready: Vec::new().into_iter(),
            others: None,
            chunk: chunk.max(1),
            read: 0,
            unsendable: None,
        };
        match context.list(bindings.chunk) {
            Ok((first, others)) => {
                bindings.ready = first.into_iter();
                bindings.others = others;
            }
            Err(exception) if is_text(&exception) => bindings.restart(exception)?,
            Err(exception) => return Err(exception),
        }
        Ok(bindings)
    }

    /// Asks for more names, within one timeout.
    fn refill(&mut self) -> Result<(), SystemException> {
        let context = self.context.clone();
        context.as_object().within_timeout(|| self.refill_next())
    }

    fn refill_next(&mut self) -> Result<(), SystemException> {
        if self.unsendable.is_some() {
            return self.refill_one();
        }
        let Some(others) = &self.others else {
            return Ok(());
        };
        match others.next_n(self.chunk) {
            Ok((is_more, bindings)) => {
                // A server that announces more and sends none could be called for ever.
                if !is_more || bindings.is_empty() {
                    self.end();
                }
                self.ready = bindings.into_iter();
                Ok(())
            }
            Err(exception) if is_text(&exception) => {
                self.end();
                self.restart(exception)?;
                self.refill_one()
            }
            Err(exception) => {
                // A further call must not return the same exception for ever.
                self.others = None;
                Err(exception)
            }
        }
    }

    /// Begins again with an iterator that is asked for one name at a time, behind the names so far: the chunk after them has a name
    /// that cannot be sent.
    fn restart(&mut self, exception: SystemException) -> Result<(), SystemException> {
        let (_, others) = self.context.list(0)?;
        // A server without iterators for all names sends the chunk or nothing.
        self.others = Some(others.ok_or(exception)?);
        self.unsendable = Some(0);
        let mut passed = 0;
        while passed < self.read {
            let count = u32::try_from(self.read - passed).map_or(self.chunk, |n| n.min(self.chunk));
            let others = self.others.as_ref().map(|it| it.next_n(count));
            match others {
                Some(Ok((_, names))) if !names.is_empty() => passed += names.len() as u64,
                Some(Err(exception)) => {
                    self.end();
                    return Err(exception);
                }
                _ => break,
            }
        }
        Ok(())
    }

    /// Asks for the next name alone.
    fn refill_one(&mut self) -> Result<(), SystemException> {
        let Some(others) = &self.others else {
            return Ok(());
        };
        match others.next_one() {
            Ok((true, binding)) => {
                self.unsendable = Some(0);
                self.ready = vec![binding].into_iter();
                Ok(())
            }
            Ok((false, _)) => {
                self.end();
                Ok(())
            }
            Err(exception) => {
                let failures = self.unsendable.map_or(1, |before| before + 1);
                self.unsendable = Some(failures);
                // A server whose iterator does not go on would raise the same exception for ever.
                if !is_text(&exception) || failures >= UNSENDABLE_MAX {
                    self.end();
                }
                Err(exception)
            }
        }
    }

    fn end(&mut self) {
        if let Some(others) = self.others.take() {
            // Most servers end an exhausted iterator themselves, so this may fail.
            let _ = self.context.as_object().within_timeout(|| others.destroy());
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
        self.read += 1;
        Some(Ok((binding_name, binding_type)))
    }
}

impl Drop for Bindings {
    fn drop(&mut self) {
        self.end();
    }
}

/// True if a text could not be converted to or from the code set of the connection.
fn is_text(exception: &SystemException) -> bool {
    exception.kind == ExceptionKind::DataConversion
}

/// The greatest number of names in a row that cannot be sent.
const UNSENDABLE_MAX: u32 = 1000;
