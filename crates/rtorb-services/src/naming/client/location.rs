//! Where the naming service is, when nobody said: the standard's bootstrap.

use super::context::Context;
use super::failure::{Failure, FailureReason};
use rtorb::{ObjectRef, Orb, SystemException};

/// The port that the standard gives to naming services.
pub const PORT: u16 = 2809;

/// Where a naming service was looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceLocation {
    /// The ORB's initial reference `NameService`: from `-ORBInitRef`, a file, or registered.
    Initial,
    /// The usual port of this host.
    Usual,
}

impl ServiceLocation {
    /// Where this ORB's naming service is.
    pub fn of(orb: &Orb) -> Self {
        match orb.list_initial_services().iter().any(|name| name == NAME) {
            true => Self::Initial,
            false => Self::Usual,
        }
    }

    /// The reference that stands for it, of which nothing is asked yet.
    ///
    /// # Errors
    /// What the ORB says of the initial reference.
    pub fn object(&self, orb: &Orb) -> Result<ObjectRef, SystemException> {
        match self {
            Self::Initial => orb.resolve_initial_references(NAME),
            Self::Usual => orb.string_to_object(&usual()),
        }
    }
}

impl Context {
    /// The root context of the naming service that the ORB's initial reference `NameService` stands for, or else of that
    /// on the usual port of this host.
    ///
    /// # Errors
    /// When it does not answer, or is none.
    pub fn root(orb: &Orb) -> Result<Self, Failure> {
        let object = ServiceLocation::of(orb).object(orb);
        Self::narrow(
            &object.map_err(|exception| Failure::new(&[], FailureReason::System(exception)))?,
        )
    }
}

impl core::fmt::Display for ServiceLocation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Initial => write!(f, "the initial reference {NAME}"),
            Self::Usual => f.write_str(&usual()),
        }
    }
}

fn usual() -> String {
    format!("corbaloc:iiop:1.2@localhost:{PORT}/{NAME}")
}

/// The initial reference of naming services, and the key of their root contexts.
const NAME: &str = "NameService";
