//! A room with a heater, as an object.
#![forbid(unsafe_code)]
use rtorb::{ExceptionKind, SystemException};
use rtorb_os::sync::Mutex;

rtorb::include_idl!("thermostat");
use home::{Display, OutOfRange, ThermostatServant, ThermostatSetTargetError};

/// The servant of a thermostat. Its heater changes the temperature by a tenth of a degree in each step.
#[derive(Debug)]
pub struct Room {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    temperature: f64,
    target: f64,
    displays: Vec<Display>,
}

impl Room {
    /// A room of 20 degrees.
    pub fn new() -> Self {
        Self {
            state: Mutex::new(State {
                temperature: 20.0,
                target: 20.0,
                displays: Vec::with_capacity(DISPLAYS_MAX),
            }),
        }
    }

    /// Heats or cools a little, and shows the new temperature on all displays. A display that cannot be called is forgotten.
    pub fn step(&self) {
        let Some((temperature, displays)) = self.change() else {
            return;
        };
        // The mutex is free during these calls: a display that hangs delays no call to the thermostat.
        for display in displays {
            if display.show(temperature).is_err() {
                self.state.lock().displays.retain(|other| *other != display);
            }
        }
    }

    /// The new temperature, and who wants to know it; `None` if nothing changes.
    fn change(&self) -> Option<(f64, Vec<Display>)> {
        let mut state = self.state.lock();
        let difference = state.target - state.temperature;
        if difference.abs() < STEP / 2.0 {
            return None;
        }
        state.temperature += STEP.copysign(difference);
        Some((state.temperature, state.displays.clone()))
    }
}

impl Default for Room {
    fn default() -> Self {
        Self::new()
    }
}

impl ThermostatServant for Room {
    fn temperature(&self) -> Result<f64, SystemException> {
        Ok(self.state.lock().temperature)
    }

    fn target(&self) -> Result<f64, SystemException> {
        Ok(self.state.lock().target)
    }

    fn set_target(&self, value: f64) -> Result<(), ThermostatSetTargetError> {
        if !(LOWEST..=HIGHEST).contains(&value) {
            let limits = OutOfRange {
                lowest: LOWEST,
                highest: HIGHEST,
            };
            return Err(limits.into());
        }
        self.state.lock().target = value;
        Ok(())
    }

    fn attach(&self, display: Option<&Display>) -> Result<(), SystemException> {
        let display = display.ok_or(ExceptionKind::BadParam)?;
        let displays = &mut self.state.lock().displays;
        if displays.len() == DISPLAYS_MAX {
            return Err(ExceptionKind::NoResources.into());
        }
        displays.push(display.clone());
        Ok(())
    }

    fn shut_off(&self) -> Result<(), SystemException> {
        self.state.lock().target = LOWEST;
        Ok(())
    }
}

const LOWEST: f64 = 5.0;
const HIGHEST: f64 = 30.0;
const STEP: f64 = 0.1;
const DISPLAYS_MAX: usize = 8;
