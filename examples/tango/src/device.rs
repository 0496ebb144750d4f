//! A device: its class and model under a name, and the operations that all releases of Tango's interface share.

use std::sync::Arc;

use rtorb::any::Any;

use crate::attribute::{Attribute, unread};
use crate::black_box::BlackBox;
use crate::class::{Class, Model};
use crate::command::Command;
use crate::failure::{failed, named};
use crate::tango::{
    AttrValUnion, AttributeConfig5, AttributeValue5, DevCmdInfo2, DevFailed, DevInfo3,
    MultiDevFailed, PipeConfig,
};

/// A device of a server.
pub(crate) struct Device<M> {
    pub(crate) name: String,
    pub(crate) class: Class<M>,
    pub(crate) model: M,
    pub(crate) identity: Arc<Identity>,
    pub(crate) black_box: BlackBox,
}

/// What the devices of a server say of it.
#[derive(Debug)]
pub(crate) struct Identity {
    /// `EXECUTABLE/INSTANCE`.
    pub(crate) server: String,
    pub(crate) host: String,
}

impl Identity {
    /// The name of the device that administers the server.
    pub(crate) fn admin_name(&self) -> String {
        format!("dserver/{}", self.server)
    }
}

impl<M: Model> Device<M> {
    pub(crate) fn info(&self) -> DevInfo3 {
        DevInfo3 {
            dev_class: self.class.name.clone(),
            server_id: self.identity.server.clone(),
            server_host: self.identity.host.clone(),
            server_version: INTERFACE_VERSION,
            doc_url: "Doc URL = https://www.tango-controls.org".to_owned(),
            dev_type: "Uninitialised".to_owned(),
        }
    }

    pub(crate) fn execute(&self, command: &str, argument: &Any) -> Result<Any, DevFailed> {
        let command = self.class.find_command(command)?;
        command.execute(&self.model, self.model.state(), argument)
    }

    pub(crate) fn commands(&self) -> Vec<DevCmdInfo2> {
        let commands = self.class.commands().iter();
        commands.map(|command| command.info().clone()).collect()
    }

    pub(crate) fn command(&self, name: &str) -> Result<DevCmdInfo2, DevFailed> {
        self.class.find_command(name).map(Command::info).cloned()
    }

    /// The configurations of attributes.
    ///
    /// # Errors
    /// When there is no attribute with one of the names.
    pub(crate) fn configs(&self, names: &[String]) -> Result<Vec<AttributeConfig5>, DevFailed> {
        let names = self.attribute_names(names)?;
        let found = names
            .into_iter()
            .map(|name| self.class.find_attribute(name));
        found.map(|it| it.map(Attribute::config).cloned()).collect()
    }

    /// The values of attributes. An attribute that cannot be read, or has no room in the reply, has its failure instead of a
    /// value.
    ///
    /// # Errors
    /// When there are too many names.
    pub(crate) fn read(&self, names: &[String]) -> Result<Vec<AttributeValue5>, DevFailed> {
        let names = self.attribute_names(names)?;
        // A short request that repeats a name shall not make a long reply.
        let mut bytes_left = REPLY_BYTES_MAX;
        let mut read = |name: &str| {
            let value = self.class.find_attribute(name)?.read(&self.model)?;
            bytes_left = bytes_left
                .checked_sub(value.value.bytes_max())
                .ok_or_else(no_room)?;
            Ok(value)
        };
        let values = names.into_iter();
        Ok(values
            .map(|name| read(name).unwrap_or_else(|failure| unread(name, failure)))
            .collect())
    }

    /// Writes attributes, each whether or not others fail.
    ///
    /// # Errors
    /// The failures of all that were not written.
    pub(crate) fn write<'v>(
        &self,
        values: impl IntoIterator<Item = (&'v str, Option<AttrValUnion>)>,
    ) -> Result<(), MultiDevFailed> {
        let write = |name: &str, value: Option<AttrValUnion>| {
            let value = value.ok_or_else(|| {
                let desc = format!("The value for attribute {name} is of no type of attributes");
                failed(
                    "API_IncompatibleAttrDataType",
                    desc,
                    "rtorb_tango::Device::write",
                )
            })?;
            self.class.find_attribute(name)?.write(&self.model, &value)
        };
        let failures = values
            .into_iter()
            .enumerate()
            .filter_map(|(index, (name, value))| {
                let failure = write(name, value).err()?;
                Some(named(name, index, failure))
            });
        let errors: Vec<_> = failures.collect();
        if errors.is_empty() {
            Ok(())
        } else {
            Err(MultiDevFailed { errors })
        }
    }

    /// The configurations of pipes: there are none.
    ///
    /// # Errors
    /// When one is asked for by its name.
    pub(crate) fn pipes(&self, names: &[String]) -> Result<Vec<PipeConfig>, DevFailed> {
        match names.iter().find(|name| !name.starts_with("All pipes")) {
            None => Ok(Vec::new()),
            Some(name) => Err(no_pipe(name)),
        }
    }

    fn attribute_names<'n>(&'n self, names: &'n [String]) -> Result<Vec<&'n str>, DevFailed> {
        let all = || {
            self.class
                .attributes()
                .iter()
                .map(|it| it.config().name.as_str())
        };
        if names.len() > ATTRIBUTES_MAX {
            let desc = format!(
                "A call has at most {ATTRIBUTES_MAX} attributes, not {}",
                names.len()
            );
            return Err(failed("API_TooManyAttributes", desc, "rtorb_tango::Device"));
        }
        Ok(match names {
            [name] if name.starts_with("All attributes") => all().collect(),
            names => names.iter().map(String::as_str).collect(),
        })
    }
}

fn no_room() -> DevFailed {
    let desc =
        format!("The values of a call have at most {REPLY_BYTES_MAX} bytes: read fewer at once");
    failed("API_TooManyAttributes", desc, "rtorb_tango::Device::read")
}

/// The failure of an operation on a pipe.
pub(crate) fn no_pipe(name: &str) -> DevFailed {
    let desc = format!("{name} pipe not found");
    failed("API_PipeNotFound", desc, "rtorb_tango::Device")
}

/// The failure of a question for stored values: nothing polls.
pub(crate) fn not_polled(reason: &str, what: &str) -> DevFailed {
    failed(reason, format!("{what} not polled"), "rtorb_tango::Device")
}

/// The failure of a change of an attribute's configuration.
pub(crate) fn fixed_configuration() -> DevFailed {
    let desc = "The configuration of the attributes of this server is part of its program";
    failed("API_NotSupported", desc, "rtorb_tango::Device")
}

/// The release of the interface: `Device_5`.
const INTERFACE_VERSION: i32 = 5;
const ATTRIBUTES_MAX: usize = 10_000;
/// All values of a reply together.
const REPLY_BYTES_MAX: usize = 4 << 20;
