//! A servant with its interface.

use crate::described::Described;
use crate::interface::Interface;
use core::marker::PhantomData;

/// Ties a servant to the interface `I` that it implements.
#[derive(Debug)]
pub struct Tie<I, S> {
    servant: S,
    interface: PhantomData<fn() -> I>,
}

impl<I, S> Tie<I, S> {
    /// The servant as an object of the interface `I`.
    pub const fn new(servant: S) -> Self {
        Self {
            servant,
            interface: PhantomData,
        }
    }

    /// The servant.
    pub const fn servant(&self) -> &S {
        &self.servant
    }
}

impl<I: Interface, S> Described for Tie<I, S> {
    fn repository_id(&self) -> &str {
        I::REPOSITORY_ID
    }

    fn is_a(&self, repository_id: &str) -> bool {
        I::derives_from(repository_id)
    }
}
