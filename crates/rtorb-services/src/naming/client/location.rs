//! The default location of the naming service: the standard's bootstrap.

use super::context::Context;
use super::failure::{Failure, FailureReason};
use rtorb::{ObjectRef, Orb, SystemException};

/// The standard port of naming services.
pub const PORT: u16 = 2809;

/// The location of a naming service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceLocation {
    /// The ORB's initial reference `NameService`: from `-ORBInitRef`, a file, or registered.
    Initial,
    /// The standard port on this host.
    Usual,
}

impl ServiceLocation {
    /// The location for an ORB.
    pub fn of(orb: &Orb) -> Self {
        if orb.list_initial_services().iter().any(|name| name == NAME) {
            Self::Initial
        } else {
            Self::Usual
        }
    }

    /// Its reference; this makes no call.
    ///
    /// # Errors
    /// If the initial reference cannot be resolved.
    pub fn object(&self, orb: &Orb) -> Result<ObjectRef, SystemException> {
        match self {
            Self::Initial => orb.resolve_initial_references(NAME),
            Self::Usual => orb.string_to_object(&usual()),
        }
    }
}

impl Context {
    /// The root context of the naming service: the ORB's initial reference `NameService`, or else the service on the standard
    /// port of this host.
    ///
    /// # Errors
    /// If it does not answer or is not a naming context.
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
