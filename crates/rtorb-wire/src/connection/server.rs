//! The server side of a connection: the code sets that its client uses.

use crate::DecodeError;
use crate::cdr::CharCodeSet;
use crate::code_sets;
use crate::giop::{RequestHeader, contexts};

/// The code sets of one connection, as its client names them.
#[derive(Debug, Default)]
pub struct CodeSetState {
    named: Option<contexts::CodeSets>,
    char_code_set: CharCodeSet,
}

/// A request names code sets that the server cannot use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodeSetError {
    /// The server cannot use them.
    #[error("the server does not have the code sets of the connection")]
    Incompatible,
    /// They differ from those of an earlier request.
    #[error("the code sets differ from those of an earlier request on the connection")]
    Changed,
    /// They cannot be read.
    #[error(transparent)]
    Malformed(#[from] DecodeError),
}

impl CodeSetState {
    /// The code set of `char` data in requests and replies.
    #[inline]
    pub fn char_code_set(&self) -> CharCodeSet {
        self.char_code_set
    }

    /// Notes the code sets that a request names, if it does.
    ///
    /// # Errors
    /// When they cannot be used. The connection goes on as before.
    //= CORBA 3 §13.10.2.5
    //# The code sets of a connection do not change once they are named.
    #[inline]
    pub fn note(&mut self, request: &RequestHeader<'_>) -> Result<(), CodeSetError> {
        if request.contexts.is_empty() {
            return Ok(());
        }
        self.note_contexts(request)
    }

    fn note_contexts(&mut self, request: &RequestHeader<'_>) -> Result<(), CodeSetError> {
        let Some(data) = request.contexts.find(contexts::CODE_SETS) else {
            return Ok(());
        };
        let named = contexts::CodeSets::from_data(data)?;
        if let Some(known) = self.named {
            return (known == named).then_some(()).ok_or(CodeSetError::Changed);
        }
        self.char_code_set = code_sets::accept(named).map_err(|_| CodeSetError::Incompatible)?;
        self.named = Some(named);
        Ok(())
    }
}
