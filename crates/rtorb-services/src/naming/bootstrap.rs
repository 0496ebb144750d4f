//! The bootstrap object of the JDK's ORB, which omniORB calls a bootstrap agent: it leads a client that knows the host and the port
//! to the root context.

use super::context::ROOT_KEY;
use super::error::NamingError;
use crate::stubs::initial_references::initial_references::{ObjectId, ObjectIdList};
use crate::stubs::initial_references::{InitialReferences, InitialReferencesServant};
use rtorb::{ObjectRef, Orb, Poa, SystemException};

/// The active bootstrap object. Dropping it deactivates the object and frees its key.
#[derive(Debug)]
pub(super) struct Bootstrap {
    orb: Orb,
    poa: Poa,
    object: ObjectRef,
}

impl Bootstrap {
    /// Serves the object for the root context.
    pub(super) fn serve(orb: &Orb, root: ObjectRef) -> Result<Self, NamingError> {
        let poa = orb.root_poa()?;
        let object: InitialReferences = poa.activate(BootstrapServant { root })?;
        let object = object.as_object().clone();
        let bound = orb.bind_object_key(BOOTSTRAP_KEY, &object);
        bound.inspect_err(|_| drop(poa.deactivate(&object)))?;
        Ok(Self {
            orb: orb.clone(),
            poa,
            object,
        })
    }
}

impl Drop for Bootstrap {
    fn drop(&mut self) {
        self.orb.unbind_object_key(BOOTSTRAP_KEY);
        // It fails if the adapter is destroyed, and the object with it.
        let _ = self.poa.deactivate(&self.object);
    }
}

#[derive(Debug)]
struct BootstrapServant {
    root: ObjectRef,
}

impl InitialReferencesServant for BootstrapServant {
    fn get(&self, id: &str) -> Result<Option<ObjectRef>, SystemException> {
        // The JDK's ORB raises InvalidName for nil.
        Ok((id == ROOT_KEY).then(|| self.root.clone()))
    }

    fn list(&self) -> Result<ObjectIdList, SystemException> {
        Ok(vec![ObjectId::from(ROOT_KEY)])
    }
}

/// The object key that clients know.
pub(super) const BOOTSTRAP_KEY: &str = "INIT";
