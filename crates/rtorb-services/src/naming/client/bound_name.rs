//! A name that a server binds at its start and unbinds at its end.

use rtorb::ObjectRef;

use super::{Context, Existing, Failure, Name};

/// A name that is bound to the object of a server.
#[derive(Debug)]
pub struct BoundName {
    context: Context,
    name: Name,
}

impl BoundName {
    /// Binds a name in a context to an object, whatever it was bound to before. If `makes_parents`, makes the missing contexts of the
    /// name. The timeout of one call bounds all of it.
    ///
    /// # Errors
    /// If the naming service refuses or cannot be reached.
    pub fn bind(
        context: Context,
        name: Name,
        object: &ObjectRef,
        makes_parents: bool,
    ) -> Result<Self, Failure> {
        context.as_object().within_timeout(|| {
            if makes_parents {
                context.make_parents(&name)?;
            }
            context.bind(&name, object, Existing::Replace)
        })?;
        Ok(Self { context, name })
    }

    /// Unbinds the name.
    ///
    /// # Errors
    /// If the naming service refuses or cannot be reached.
    pub fn unbind(self) -> Result<(), Failure> {
        self.context.unbind(&self.name)
    }
}
