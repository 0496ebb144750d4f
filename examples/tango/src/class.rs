//! What a kind of device has: attributes and commands, and the model on which they act.

use crate::attribute::Attribute;
use crate::command::{Command, state_name};
use crate::failure::failed;
use crate::tango::{DevFailed, DevState};

/// What a device is behind its attributes and commands. Several threads may call it at once.
pub trait Model: Send + Sync + 'static {
    /// The state of the device.
    fn state(&self) -> DevState;

    /// The state in words.
    fn status(&self) -> String {
        format!("The device is in {} state.", state_name(self.state()))
    }

    /// Brings the device into its first state, which is what the command `Init` does.
    ///
    /// # Errors
    /// When that is impossible.
    fn init(&self) -> Result<(), DevFailed>;
}

/// The attributes and commands of a device with model `M`.
pub struct Class<M> {
    pub(crate) name: String,
    pub(crate) description: String,
    attributes: Vec<Attribute<M>>,
    commands: Vec<Command<M>>,
}

impl<M: Model> Class<M> {
    /// A class with what every device has: the attributes `State` and `Status`, and the commands `Init`, `State` and `Status`.
    #[must_use]
    pub fn new(name: &str, description: &str) -> Self {
        Self {
            name: name.to_owned(),
            description: description.to_owned(),
            attributes: vec![
                Attribute::state(M::state),
                Attribute::readable("Status", |model: &M| Ok(model.status())),
            ],
            commands: vec![
                Command::new("Init", |model: &M, ()| model.init()),
                Command::new("State", |model: &M, ()| Ok(model.state())).output("Device state"),
                Command::new("Status", |model: &M, ()| Ok(model.status())).output("Device status"),
            ],
        }
    }

    /// Adds an attribute. Names differ in more than upper and lower case.
    #[must_use]
    pub fn attribute(mut self, attribute: Attribute<M>) -> Self {
        // Clients show State and Status last.
        let place = self.attributes.len() - 2;
        self.attributes.insert(place, attribute);
        self
    }

    /// Adds a command. Names differ in more than upper and lower case.
    #[must_use]
    pub fn command(mut self, command: Command<M>) -> Self {
        self.commands.push(command);
        self
    }

    pub(crate) fn attributes(&self) -> &[Attribute<M>] {
        &self.attributes
    }

    pub(crate) fn commands(&self) -> &[Command<M>] {
        &self.commands
    }

    /// The attribute with that name.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn find_attribute(&self, name: &str) -> Result<&Attribute<M>, DevFailed> {
        let mut attributes = self.attributes.iter();
        let found = attributes.find(|it| it.config().name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let desc = format!("{name} attribute not found");
            failed(
                "API_AttrNotFound",
                desc,
                "rtorb_tango::Class::find_attribute",
            )
        })
    }

    /// The command with that name.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn find_command(&self, name: &str) -> Result<&Command<M>, DevFailed> {
        let mut commands = self.commands.iter();
        let found = commands.find(|it| it.info().cmd_name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let desc = format!("Command {name} not found");
            failed(
                "API_CommandNotFound",
                desc,
                "rtorb_tango::Class::find_command",
            )
        })
    }
}
