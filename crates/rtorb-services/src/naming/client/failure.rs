//! Why a call to a naming service failed, in words that name the part of the name.

use super::name::{Name, format_name};
use crate::naming::exception::NamingException;
use crate::naming::failure::StoreFailure;
use crate::stubs::naming::cos_naming::NameComponent;
use crate::stubs::naming::cos_naming::naming_context::{NotFound, NotFoundReason};
use core::fmt;
use rtorb::{ExceptionKind, ObjectRef, SystemException};

/// A failed call to a naming service.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The name in the call; empty for the context itself.
    pub name: Name,
    /// The reason.
    pub reason: FailureReason,
}

/// Why a call to a naming service failed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FailureReason {
    /// The first step of this rest of the name is not bound.
    MissingNode(Name),
    /// The first step of this rest of the name is bound to an object, where a context is needed.
    NotContext(Name),
    /// The first step of this rest of the name is bound to a context, where an object is needed.
    NotObject(Name),
    /// The server could not continue with this rest of the name and did not return another context.
    CannotProceed(Name),
    /// The server does not accept the name.
    InvalidName,
    /// The name is bound already.
    AlreadyBound,
    /// Something is bound in the context.
    NotEmpty,
    /// The nil reference, where a context is needed.
    Nil,
    /// The object is not a naming context; this is the type in its reference.
    NoContext(String),
    /// The call failed.
    System(SystemException),
}

impl Failure {
    pub(super) fn new(name: &[NameComponent], reason: FailureReason) -> Self {
        Self {
            name: name.to_vec(),
            reason,
        }
    }

    pub(super) fn raised(name: &[NameComponent], raised: NamingException) -> Self {
        let reason = match raised {
            NamingException::NotFound(NotFound { why, rest_of_name }) => match why {
                NotFoundReason::MissingNode => FailureReason::MissingNode(rest_of_name),
                NotFoundReason::NotContext => FailureReason::NotContext(rest_of_name),
                NotFoundReason::NotObject => FailureReason::NotObject(rest_of_name),
            },
            NamingException::CannotProceed(elsewhere) => {
                FailureReason::CannotProceed(elsewhere.rest_of_name)
            }
            NamingException::InvalidName(_) => FailureReason::InvalidName,
            NamingException::AlreadyBound(_) => FailureReason::AlreadyBound,
            NamingException::NotEmpty(_) => FailureReason::NotEmpty,
            NamingException::System(exception) => FailureReason::System(exception),
        };
        Self::new(name, reason)
    }

    pub(super) fn cannot_proceed(name: &[NameComponent], rest: Name) -> Self {
        Self::new(name, FailureReason::CannotProceed(rest))
    }

    /// The failure of narrowing an object to a context.
    pub(super) fn about_context(object: &ObjectRef, exception: SystemException) -> Self {
        let is_other = exception.kind == ExceptionKind::BadParam && exception.cause.is_none();
        Self::new(
            &[],
            if is_other {
                FailureReason::NoContext(object.type_id().to_owned())
            } else {
                FailureReason::System(exception)
            },
        )
    }

    /// True if the server failed: another name would fail too.
    pub fn is_of_server(&self) -> bool {
        match &self.reason {
            FailureReason::System(exception) => !matches!(
                exception.kind,
                ExceptionKind::BadParam
                    | ExceptionKind::Marshal
                    | ExceptionKind::DataConversion
                    | ExceptionKind::ImpLimit
            ),
            _ => false,
        }
    }

    /// The name up to the first step of `rest`, and the name before that step.
    fn parts(&self, rest: &[NameComponent]) -> (String, String) {
        let before = self.name.len().checked_sub(rest.len());
        match before {
            Some(length) if !rest.is_empty() && self.name[length..] == *rest => (
                format_name(&self.name[..=length]),
                format_name(&self.name[..length]),
            ),
            // The server returned a rest that is not part of the name: show the rest.
            _ => (format_name(rest), String::new()),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = if self.name.is_empty() {
            "the context".to_owned()
        } else {
            format!("`{}`", format_name(&self.name))
        };
        match &self.reason {
            FailureReason::MissingNode(rest) => {
                let (missing, before) = self.parts(rest);
                if before.is_empty() {
                    write!(f, "{whole} is not found: `{missing}` is not bound")
                } else {
                    write!(
                        f,
                        "{whole} is not found: `{missing}` is not bound, though `{before}` is"
                    )
                }
            }
            FailureReason::NotContext(rest) => {
                let (object, _) = self.parts(rest);
                write!(
                    f,
                    "{whole} is not found: `{object}` is bound to an object, where a context is needed"
                )
            }
            FailureReason::NotObject(rest) => {
                let (context, _) = self.parts(rest);
                write!(
                    f,
                    "{whole} is not found: `{context}` is bound to a context, where an object is needed"
                )
            }
            FailureReason::CannotProceed(rest) => write!(
                f,
                "{whole}: the server cannot go on at `{}`: the context there is of another server that does not answer it",
                self.parts(rest).0
            ),
            FailureReason::InvalidName => {
                write!(f, "{whole} is no name to the server (InvalidName)")
            }
            FailureReason::AlreadyBound => write!(f, "{whole} is bound already"),
            FailureReason::NotEmpty => {
                write!(f, "{whole} is not empty: unbind what is in it first")
            }
            FailureReason::Nil => {
                write!(f, "{whole} is the nil reference, where a context is needed")
            }
            FailureReason::NoContext(id) if id.is_empty() => {
                write!(f, "{whole} is no naming context")
            }
            FailureReason::NoContext(id) => write!(f, "{whole} is no naming context, but {id}"),
            FailureReason::System(exception) => {
                write!(f, "{whole}: {exception}")?;
                match StoreFailure::of_exception(exception) {
                    Some(failure) => write!(
                        f,
                        ": the naming service could not store the change, because {failure}; {}",
                        failure.advice()
                    ),
                    None => Ok(()),
                }
            }
        }
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::super::name::parse_name;
    use super::*;

    fn name(text: &str) -> Name {
        parse_name(text).expect("a name")
    }

    fn said(why: impl Fn(Name) -> FailureReason, rest: &str) -> String {
        Failure::new(&name("plant/press.line/drive"), why(name(rest))).to_string()
    }

    #[test]
    fn the_part_of_the_name_that_is_missing_is_told() {
        let text = said(FailureReason::MissingNode, "press.line/drive");
        for part in [
            "`plant/press.line/drive`",
            "`plant/press.line` is not bound",
            "though `plant` is",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let first = said(FailureReason::MissingNode, "plant/press.line/drive");
        assert!(first.ends_with("`plant` is not bound"), "{first}");
        let context = said(FailureReason::NotContext, "press.line/drive");
        assert!(
            context.contains("`plant/press.line` is bound to an object"),
            "{context}"
        );
        let object = said(FailureReason::NotObject, "drive");
        assert!(
            object.contains("`plant/press.line/drive` is bound to a context"),
            "{object}"
        );
    }

    #[test]
    fn a_rest_that_is_none_of_the_name_is_shown_as_it_came() {
        for (rest, shown) in [
            ("elsewhere", "`elsewhere` is not bound"),
            ("a/b/c/d/e", "`a/b/c/d/e` is"),
        ] {
            let text = said(FailureReason::MissingNode, rest);
            assert!(text.contains(shown), "{text}");
        }
        let empty = Failure::new(&name("a"), FailureReason::MissingNode(Vec::new())).to_string();
        assert!(empty.contains("`a` is not found"), "{empty}");
    }

    #[test]
    fn trouble_of_the_server_is_told_from_that_of_a_name() {
        let failure =
            |kind: ExceptionKind| Failure::new(&name("a"), FailureReason::System(kind.into()));
        assert!(failure(ExceptionKind::CommFailure).is_of_server());
        assert!(failure(ExceptionKind::PersistStore).is_of_server());
        assert!(!failure(ExceptionKind::BadParam).is_of_server());
        assert!(!Failure::new(&name("a"), FailureReason::AlreadyBound).is_of_server());
    }
}
