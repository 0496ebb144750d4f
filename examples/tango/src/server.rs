//! A device server: exports devices under the names by which clients find them without a database.

use std::sync::Arc;

use rtorb::{ObjectKeyError, Orb, PoaError, SystemException};

use crate::admin::{self, Admin, Exported};
use crate::black_box::BlackBox;
use crate::class::{Class, Model};
use crate::device::{Device, Identity};
use crate::tango::Device5;

/// A device server on an ORB: its devices, and the device that administers it.
pub struct DeviceServer {
    orb: Orb,
    identity: Arc<Identity>,
    exported: Arc<Exported>,
}

/// The reason why a device cannot be exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The name is not that of a device.
    #[error("`{0}` is no name of a device: it has three parts, as in test/motor/1")]
    Name(String),
    /// Another device of the server has the name, perhaps with other capitals.
    #[error("device {0}: another device of this server has the name")]
    Taken(String),
    /// The name cannot be an object key.
    #[error("device {name}: {error}")]
    Key {
        /// The name.
        name: String,
        /// What is wrong with it.
        error: ObjectKeyError,
    },
    /// The adapter refuses the device.
    #[error(transparent)]
    Adapter(#[from] PoaError),
    /// The ORB cannot serve.
    #[error(transparent)]
    Orb(#[from] SystemException),
}

impl DeviceServer {
    /// A server with no device but `dserver/EXECUTABLE/INSTANCE`, which administers it.
    ///
    /// # Errors
    /// When the ORB cannot serve, or the names cannot be parts of the name of a device.
    pub fn new(orb: &Orb, executable: &str, instance: &str) -> Result<Self, ServerError> {
        let host = rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned();
        let identity = Identity {
            server: format!("{executable}/{instance}"),
            host,
        };
        let server = Self {
            orb: orb.clone(),
            identity: Arc::new(identity),
            exported: Arc::default(),
        };
        let admin = Admin::new(orb.clone(), Arc::clone(&server.exported));
        server.serve(&server.identity.admin_name(), admin::class(), admin)?;
        Ok(server)
    }

    /// Exports a device as `name`, which has the form `domain/family/member`.
    ///
    /// # Errors
    /// When the name has another form or is taken, or the ORB refuses one more object.
    pub fn export<M: Model>(
        &self,
        name: &str,
        class: Class<M>,
        model: M,
    ) -> Result<Device5, ServerError> {
        let class_name = class.name.clone();
        let device = self.serve(name, class, model)?;
        self.exported.add(&class_name, name);
        Ok(device)
    }

    fn serve<M: Model>(
        &self,
        name: &str,
        class: Class<M>,
        model: M,
    ) -> Result<Device5, ServerError> {
        let parts = name.split('/');
        if parts.clone().count() != 3 || parts.clone().any(str::is_empty) {
            return Err(ServerError::Name(name.to_owned()));
        }
        let device: Device5 = self.orb.root_poa()?.activate(Device {
            name: name.to_owned(),
            class,
            model,
            identity: Arc::clone(&self.identity),
            black_box: BlackBox::default(),
        })?;
        // Case does not matter in names of devices: clients ask for them in lower case.
        let key = name.to_lowercase();
        if let Err(error) = self.orb.bind_object_key(key, device.as_object()) {
            self.orb.root_poa()?.deactivate(device.as_object())?;
            let name = name.to_owned();
            return Err(match error {
                ObjectKeyError::Taken => ServerError::Taken(name),
                error => ServerError::Key { name, error },
            });
        }
        Ok(device)
    }
}
