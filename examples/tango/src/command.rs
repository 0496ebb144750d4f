//! A command of a device: its description, and what it does.

use rtorb::any::Any;

use crate::failure::failed;
use crate::tango::{DevCmdInfo2, DevFailed, DevState, DispLevel};
use crate::value::Value;

/// A command of devices with model `M`.
pub struct Command<M> {
    info: DevCmdInfo2,
    execute: Box<Execute<M>>,
    /// The states in which it is allowed; none for all.
    states: &'static [DevState],
}

type Execute<M> = dyn Fn(&M, &Any) -> Result<Any, DevFailed> + Send + Sync;

impl<M: 'static> Command<M> {
    /// A command with an argument and a result of these types; `()` is none.
    #[must_use]
    pub fn new<A: Value, R: Value>(
        name: &str,
        execute: impl Fn(&M, A) -> Result<R, DevFailed> + Send + Sync + 'static,
    ) -> Self {
        let info = DevCmdInfo2 {
            cmd_name: name.to_owned(),
            level: DispLevel::Operator,
            cmd_tag: 0,
            in_type: A::TYPE,
            out_type: R::TYPE,
            in_type_desc: UNDESCRIBED.to_owned(),
            out_type_desc: UNDESCRIBED.to_owned(),
        };
        let execute = move |model: &M, argument: &Any| {
            let argument = A::from_any(argument).ok_or_else(wrong_type::<A>)?;
            execute(model, argument)?.to_any()
        };
        Self {
            info,
            execute: Box::new(execute),
            states: &[],
        }
    }

    /// Sets the description of the argument.
    #[must_use]
    pub fn input(mut self, description: &str) -> Self {
        description.clone_into(&mut self.info.in_type_desc);
        self
    }

    /// Sets the description of the result.
    #[must_use]
    pub fn output(mut self, description: &str) -> Self {
        description.clone_into(&mut self.info.out_type_desc);
        self
    }

    /// Allows the command only in these states of the device.
    #[must_use]
    pub fn only_in(mut self, states: &'static [DevState]) -> Self {
        self.states = states;
        self
    }

    /// The description, as clients get it.
    #[must_use]
    pub fn info(&self) -> &DevCmdInfo2 {
        &self.info
    }

    /// Executes the command in a device in that state.
    ///
    /// # Errors
    /// When the state does not allow it, the argument is of another type, or the model raises it.
    pub(crate) fn execute(
        &self,
        model: &M,
        state: DevState,
        argument: &Any,
    ) -> Result<Any, DevFailed> {
        if !self.states.is_empty() && !self.states.contains(&state) {
            let desc = format!(
                "Command {} not allowed when the device is in {} state",
                self.info.cmd_name,
                state_name(state)
            );
            return Err(failed("API_CommandNotAllowed", desc, EXECUTE));
        }
        (self.execute)(model, argument)
    }
}

/// The name of a state, as Tango writes it.
pub(crate) fn state_name(state: DevState) -> String {
    format!("{state:?}").to_uppercase()
}

fn wrong_type<A: Value>() -> DevFailed {
    let desc = format!(
        "Incompatible command argument type, expected type is : Tango::{}",
        A::NAME
    );
    failed("API_IncompatibleCmdArgumentType", desc, EXECUTE)
}

const UNDESCRIBED: &str = "Uninitialised";
const EXECUTE: &str = "rtorb_tango::Command::execute";
