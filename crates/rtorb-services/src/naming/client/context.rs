//! A naming context of any server.

use super::bindings::Bindings;
use super::failure::{Failure, FailureReason};
use crate::naming::exception::NamingException;
use crate::stubs::naming::cos_naming::{NameComponent, NamingContext};
use rtorb::{ObjectRef, SystemException};

/// A naming context; cheap to clone.
///
/// What a server answers with CannotProceed is asked of the context that it names instead, as long as the rest of the name
/// gets shorter each time.
#[derive(Clone, Debug)]
pub struct Context {
    context: NamingContext,
}

/// What shall happen to a name that is bound already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and who binds is told AlreadyBound.
    #[default]
    Keep,
    /// It is bound anew. By the standard, an object does not take the place of a context, nor a context that of an object;
    /// omniNames lets it.
    Replace,
}

impl Context {
    /// The object as a naming context, if it is one: asks it if its reference does not say.
    ///
    /// # Errors
    /// When it is not one, or could not be asked.
    pub fn narrow(object: &ObjectRef) -> Result<Self, Failure> {
        let narrowed = NamingContext::narrow(object);
        let context = narrowed.map_err(|exception| Failure::about_context(object, exception))?;
        Ok(Self { context })
    }

    /// Its reference.
    pub fn as_object(&self) -> &ObjectRef {
        self.context.as_object()
    }

    /// What is bound to the name; `None` when that is the nil reference. The empty name is the context itself.
    ///
    /// # Errors
    /// When nothing is bound to it, or the server could not be asked.
    pub fn resolve(&self, name: &[NameComponent]) -> Result<Option<ObjectRef>, Failure> {
        if name.is_empty() {
            return Ok(Some(self.as_object().clone()));
        }
        self.asked(name, NamingContext::resolve)
    }

    /// The context that is bound to the name. The empty name is the context itself.
    ///
    /// # Errors
    /// When nothing, or no context, is bound to it, or the server could not be asked.
    pub fn context(&self, name: &[NameComponent]) -> Result<Self, Failure> {
        if name.is_empty() {
            return Ok(self.clone());
        }
        let object = self.resolve(name)?;
        let object = object.ok_or_else(|| Failure::new(name, FailureReason::Nil))?;
        Self::narrow(&object).map_err(|failure| Failure::new(name, failure.reason))
    }

    /// Binds an object to the name.
    ///
    /// # Errors
    /// When the name is bound and shall stay so, or leads through what is no context, or the server could not be asked.
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

    /// Binds a context to the name, which may be of another server: names then go on there.
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

    /// Takes the name away; what it was bound to stays as it is.
    ///
    /// # Errors
    /// When nothing is bound to it, or the server could not be asked.
    pub fn unbind(&self, name: &[NameComponent]) -> Result<(), Failure> {
        self.asked(name, NamingContext::unbind)
    }

    /// Makes a context of the same server, bound to no name.
    ///
    /// # Errors
    /// What the server raises, or that it could not be asked.
    pub fn new_context(&self) -> Result<Self, Failure> {
        let made = self.context.new_context();
        given(&[], made.map_err(NamingException::System))
    }

    /// Makes a context and binds it to the name.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub fn bind_new_context(&self, name: &[NameComponent]) -> Result<Self, Failure> {
        let made = self.asked(name, NamingContext::bind_new_context)?;
        given(name, Ok(made))
    }

    /// Makes a context of each beginning of the name that is not bound, so that the name itself can be bound.
    ///
    /// # Errors
    /// When a beginning of it is no context, or the server could not be asked.
    pub fn make_parents(&self, name: &[NameComponent]) -> Result<(), Failure> {
        for length in 1..name.len() {
            match self.bind_new_context(&name[..length]) {
                Ok(_) => {}
                Err(failure) if failure.reason == FailureReason::AlreadyBound => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    /// Ends the context, which must be empty. Names that are bound to it are bound to nothing from then on.
    ///
    /// # Errors
    /// When something is bound in it, or the server could not be asked.
    pub fn destroy(&self) -> Result<(), Failure> {
        self.context
            .destroy()
            .map_err(|error| Failure::raised(&[], error.into()))
    }

    /// Ends the context that is bound to the name, and takes the name away.
    ///
    /// # Errors
    /// When it is no context, or something is bound in it, or the server could not be asked.
    pub fn remove_context(&self, name: &[NameComponent]) -> Result<(), Failure> {
        let destroyed = self.context(name)?.destroy();
        destroyed.map_err(|failure| Failure::new(name, failure.reason))?;
        self.unbind(name)
    }

    /// What is bound in it, asked for `chunk` at a time (1 when that is 0).
    ///
    /// # Errors
    /// When the server could not be asked.
    pub fn bindings(&self, chunk: u32) -> Result<Bindings, SystemException> {
        Bindings::begin(&self.context, chunk)
    }

    /// Asks this context, and those that it refers to.
    fn asked<T, E: Into<NamingException>>(
        &self,
        name: &[NameComponent],
        ask: impl Fn(&NamingContext, &[NameComponent]) -> Result<T, E>,
    ) -> Result<T, Failure> {
        let mut context = self.context.clone();
        let mut rest = name.to_vec();
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
    }
}

/// A context that a server must have made.
fn given(
    name: &[NameComponent],
    made: Result<Option<NamingContext>, NamingException>,
) -> Result<Context, Failure> {
    let made = made.map_err(|raised| Failure::raised(name, raised))?;
    let context = made.ok_or_else(|| Failure::new(name, FailureReason::Nil))?;
    Ok(Context { context })
}
