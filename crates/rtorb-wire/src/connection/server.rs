//! The server side of a connection: the code sets that its client uses.

use crate::cdr::CharCodeSet;
use crate::code_sets::{self, CodeSetError};
use crate::giop::{RequestHeader, contexts};

/// The code sets of one connection, as its client names them.
#[derive(Debug, Default)]
pub struct CodeSetState {
    named: Option<contexts::CodeSets>,
    char_code_set: CharCodeSet,
}

impl CodeSetState {
    /// The state of a bidirectional connection whose other end may name code sets, after this end has: until then, `char` data is in the
    /// code set that this end named.
    pub fn beginning_with(char_code_set: CharCodeSet) -> Self {
        Self {
            named: None,
            char_code_set,
        }
    }

    /// The code set of `char` data in requests and replies.
    #[inline]
    pub fn char_code_set(&self) -> CharCodeSet {
        self.char_code_set
    }

    /// Records the code sets that a request names, if it names any.
    ///
    /// # Errors
    /// When they cannot be used. The code sets of the connection stay the same.
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
        self.note_named(contexts::CodeSets::from_data(data)?)
    }

    /// Records the code sets `named` by a request.
    ///
    /// # Errors
    /// When they cannot be used. The code sets of the connection stay the same.
    pub fn note_named(&mut self, named: contexts::CodeSets) -> Result<(), CodeSetError> {
        if let Some(known) = self.named {
            return (known == named).then_some(()).ok_or(CodeSetError::Changed);
        }
        self.char_code_set = code_sets::accept(named)?;
        self.named = Some(named);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::giop::{
        self, Header, RequestStart, Response, ServiceContext, Version, contexts::CodeSets,
    };
    use crate::{Writer, code_sets::UTF_16};

    /// Notes the code sets of a request.
    fn note(state: &mut CodeSetState, data: Option<&[u8]>) -> Result<(), CodeSetError> {
        let context = data.map(|data| ServiceContext {
            id: contexts::CODE_SETS,
            data,
        });
        let start = RequestStart {
            request_id: 2,
            response: Response::FromTarget,
            object_key: b"key",
            operation: "op",
            contexts: context.as_slice(),
        };
        let mut w = Writer::new(Vec::new(), 200);
        giop::begin_request(&mut w, Version::V1_2, &start).expect("it fits");
        giop::end_message(&mut w).expect("it fits");
        let bytes = w.to_bytes();
        let header = Header::parse(&bytes, 200).ok().flatten().expect("a header");
        let request = RequestHeader::decode(&mut header.reader(&bytes)).expect("a request");
        state.note(&request)
    }

    #[test]
    //= CORBA 3 §13.10.2.5
    //% test
    fn code_sets_are_named_once_and_do_not_change() {
        let named = |set: CharCodeSet| {
            let sets = CodeSets {
                char_data: set.registry(),
                wchar_data: UTF_16,
            };
            sets.to_data()
        };
        let (utf_8, latin_1) = (named(CharCodeSet::Utf8), named(CharCodeSet::Latin1));
        let mut state = CodeSetState::default();
        assert_eq!(note(&mut state, None), Ok(()));
        assert_eq!(note(&mut state, Some(&utf_8)), Ok(()));
        assert_eq!(state.char_code_set(), CharCodeSet::Utf8);
        assert_eq!(note(&mut state, Some(&utf_8)), Ok(()));
        assert_eq!(note(&mut state, None), Ok(()));
        let changed = note(&mut state, Some(&latin_1));
        assert_eq!(changed, Err(CodeSetError::Changed));
        assert_eq!(state.char_code_set(), CharCodeSet::Utf8);
        // The other end of a bidirectional connection may name them too.
        let mut state = CodeSetState::beginning_with(CharCodeSet::Utf8);
        assert_eq!(state.char_code_set(), CharCodeSet::Utf8);
        assert_eq!(note(&mut state, Some(&latin_1)), Ok(()));
        assert_eq!(state.char_code_set(), CharCodeSet::Latin1);
    }

    #[test]
    fn code_sets_that_are_unknown_or_unreadable_leave_the_connection_as_it_was() {
        let mut state = CodeSetState::default();
        let unknown = CodeSets {
            char_data: 0x0001_0099,
            wchar_data: UTF_16,
        };
        let refused = note(&mut state, Some(&unknown.to_data()));
        assert_eq!(refused, Err(CodeSetError::Unsupported(0x0001_0099)));
        let refused = note(&mut state, Some(&[0, 1]));
        assert!(matches!(refused, Err(CodeSetError::Malformed(_))));
        assert_eq!(state.char_code_set(), CharCodeSet::Latin1);
    }
}
