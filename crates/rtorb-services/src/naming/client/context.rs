//! A naming context of any server.

use super::bindings::Bindings;
use super::failure::{Failure, FailureReason};
use crate::naming::exception::NamingException;
use crate::stubs::naming::cos_naming::{NameComponent, NamingContext};
use rtorb::{ObjectRef, SystemException};

/// A naming context. Cheap to clone.
///
/// If a server raises CannotProceed, the call goes to the context in the exception, as long as the rest of the name gets shorter.
///
/// The timeout of its reference, or else that of the ORB, bounds each operation, however many calls that takes. Contexts that come from it
/// have its timeout.
#[derive(Clone, Debug)]
pub struct Context {
    context: NamingContext,
}

/// What to do with a name that is bound already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// Keep the binding and fail with AlreadyBound.
    #[default]
    Keep,
    /// Replace the binding. By the standard, an object does not replace a context, nor a context an object; omniNames allows
    /// both.
    Replace,
}

impl Context {
    /// Narrows an object to a naming context; asks the object if its reference does not tell.
    ///
    /// # Errors
    /// If it is not a naming context or cannot be reached.
    pub fn narrow(object: &ObjectRef) -> Result<Self, Failure> {
        let narrowed = NamingContext::narrow(object);
        let context = narrowed.map_err(|exception| Failure::about_context(object, exception))?;
        Ok(Self { context })
    }

    /// Its reference.
    pub fn as_object(&self) -> &ObjectRef {
        self.context.as_object()
    }

    /// Resolves a name; `None` is the nil reference. The empty name is the context itself.
    ///
    /// # Errors
    /// If the name is not bound or the server cannot be reached.
    pub fn resolve(&self, name: &[NameComponent]) -> Result<Option<ObjectRef>, Failure> {
        if name.is_empty() {
            return Ok(Some(self.as_object().clone()));
        }
        self.asked(name, NamingContext::resolve)
    }

    /// Resolves a name to a context. The empty name is the context itself.
    ///
    /// # Errors
    /// If the name is not bound to a context or the server cannot be reached.
    pub fn context(&self, name: &[NameComponent]) -> Result<Self, Failure> {
        if name.is_empty() {
            return Ok(self.clone());
        }
        self.as_object().within_timeout(|| {
            let object = self.resolve(name)?;
            let object = object.ok_or_else(|| Failure::new(name, FailureReason::Nil))?;
            let object = object.with_timeout_of(self.as_object());
            Self::narrow(&object).map_err(|failure| Failure::new(name, failure.reason))
        })
    }

    /// Binds an object to a name.
    ///
    /// # Errors
    /// If the name is bound and must be kept, if it leads through something that is not a context, or if the server cannot be
    /// reached.
    pub fn bind(
        &self,
        name: &[NameComponent],
        object: &ObjectRef,
        existing: Existing,
    ) -> Result<(), Failure> {
        match existing {
            Existing::Keep => self.asked(name, |context, name| context.bind(name, Some(object))),
            Existing::Replace => {
                self.asked(name, |context, name| context.rebind(name, Some(object)))
            }
        }
    }

    /// Binds a context to a name, of this or of another server, so that names continue there.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub fn bind_context(
        &self,
        name: &[NameComponent],
        bound: &Self,
        existing: Existing,
    ) -> Result<(), Failure> {
        let bound = Some(&bound.context);
        match existing {
            Existing::Keep => self.asked(name, |context, name| context.bind_context(name, bound)),
            Existing::Replace => {
                self.asked(name, |context, name| context.rebind_context(name, bound))
            }
        }
    }

    /// Unbinds a name. The object stays as it is.
    ///
    /// # Errors
    /// If the name is not bound or the server cannot be reached.
    pub fn unbind(&self, name: &[NameComponent]) -> Result<(), Failure> {
        self.asked(name, NamingContext::unbind)
    }

    /// Makes a context on the same server, without a name.
    ///
    /// # Errors
    /// If the server raises an exception or cannot be reached.
    pub fn new_context(&self) -> Result<Self, Failure> {
        let made = self.context.new_context().map_err(NamingException::System);
        let made = made.map_err(|raised| Failure::raised(&[], raised));
        self.given(&[], made?)
    }

    /// Makes a context and binds it to a name.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub fn bind_new_context(&self, name: &[NameComponent]) -> Result<Self, Failure> {
        let made = self.asked(name, NamingContext::bind_new_context)?;
        self.given(name, made)
    }

    /// Makes the missing parent contexts of a name.
    ///
    /// # Errors
    /// If a parent is not a context or the server cannot be reached.
    pub fn make_parents(&self, name: &[NameComponent]) -> Result<(), Failure> {
        self.as_object().within_timeout(|| {
            for length in 1..name.len() {
                match self.bind_new_context(&name[..length]) {
                    Ok(_) => {}
                    Err(failure) if failure.reason == FailureReason::AlreadyBound => {}
                    Err(failure) => return Err(failure),
                }
            }
            Ok(())
        })
    }

    /// Destroys the context, which must be empty. Names bound to it become dangling.
    ///
    /// # Errors
    /// If it is not empty or the server cannot be reached.
    pub fn destroy(&self) -> Result<(), Failure> {
        self.context
            .destroy()
            .map_err(|error| Failure::raised(&[], error.into()))
    }

    /// Destroys the context that is bound to a name, and unbinds the name.
    ///
    /// # Errors
    /// If it is not a context, is not empty, or the server cannot be reached.
    pub fn remove_context(&self, name: &[NameComponent]) -> Result<(), Failure> {
        self.as_object().within_timeout(|| {
            let destroyed = self.context(name)?.destroy();
            destroyed.map_err(|failure| Failure::new(name, failure.reason))?;
            self.unbind(name)
        })
    }

    /// Lists its bindings, `chunk` in each call (1 if that is 0).
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub fn bindings(&self, chunk: u32) -> Result<Bindings, SystemException> {
        self.as_object()
            .within_timeout(|| Bindings::begin(&self.context, chunk))
    }

    /// Returns the context that the server has made, with the timeout of this one.
    fn given(&self, name: &[NameComponent], made: Option<NamingContext>) -> Result<Self, Failure> {
        let made = made.ok_or_else(|| Failure::new(name, FailureReason::Nil))?;
        let made = made.as_object().with_timeout_of(self.as_object());
        Ok(Self {
            context: NamingContext::unchecked_narrow(made),
        })
    }

    /// Calls this context, and those that CannotProceed refers to.
    fn asked<T, E: Into<NamingException>>(
        &self,
        name: &[NameComponent],
        ask: impl Fn(&NamingContext, &[NameComponent]) -> Result<T, E>,
    ) -> Result<T, Failure> {
        let mut context = self.context.clone();
        let mut rest = name.to_vec();
        self.as_object().within_timeout(|| {
            loop {
                match ask(&context, &rest).map_err(Into::into) {
                    Ok(answer) => return Ok(answer),
                    Err(NamingException::CannotProceed(elsewhere)) => match elsewhere.cxt {
                        Some(next) if (1..rest.len()).contains(&elsewhere.rest_of_name.len()) => {
                            context = next;
                            rest = elsewhere.rest_of_name;
                        }
                        _ => return Err(Failure::cannot_proceed(name, elsewhere.rest_of_name)),
                    },
                    Err(raised) => return Err(Failure::raised(name, raised)),
                }
            }
        })
    }
}
