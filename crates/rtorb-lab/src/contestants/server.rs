//! A server of objects that are called: its ORB, and their references.

use rtorb::Orb;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::processes::questions::{IntoReply, serve_beside};

/// A server that listens, and does not serve yet.
#[derive(Debug)]
pub struct Server {
    orb: Orb,
    references: Vec<String>,
}

impl Server {
    /// The server of these objects.
    pub(super) fn of(orb: Orb, references: impl Into<Vec<String>>) -> Self {
        let references = references.into();
        Self { orb, references }
    }

    /// The references of the objects, in their order.
    #[must_use]
    pub fn references(&self) -> &[String] {
        &self.references
    }

    /// Its ORB, to end it.
    #[must_use]
    pub fn orb(&self) -> &Orb {
        &self.orb
    }

    /// Serves until standard input ends; then the process ends. It is asked for its counts alone.
    ///
    /// # Errors
    /// What the host refused.
    pub fn run(&self) -> Result<(), String> {
        let counts_alone = "it is asked for its counts alone";
        self.run_with(move |_: IgnoredAny| Err::<(), _>(counts_alone.to_owned()))
    }

    /// As [`Self::run`], and answers other questions too.
    ///
    /// # Errors
    /// What the host refused.
    pub(super) fn run_with<Q: DeserializeOwned + 'static, A: IntoReply>(
        &self,
        answer: impl FnMut(Q) -> Result<A, String> + Send + 'static,
    ) -> Result<(), String> {
        serve_beside(&self.orb, &self.references.join(" "), answer)
    }
}
