//! The device that administers a server: what the server has, and its end.

use std::sync::Arc;

use rtorb::Orb;
use rtorb_os::sync::Mutex;

use crate::class::{Class, Model};
use crate::command::Command;
use crate::failure::failed;
use crate::tango::{DevFailed, DevState, DevVarLongStringArray};

/// The model of the device.
pub(crate) struct Admin {
    orb: Orb,
    exported: Arc<Exported>,
}

/// The devices of a server, but the one that administers it, as `CLASS::NAME`.
#[derive(Debug, Default)]
pub(crate) struct Exported {
    devices: Mutex<Vec<(String, String)>>,
}

impl Exported {
    pub(crate) fn add(&self, class: &str, name: &str) {
        let device = (class.to_owned(), name.to_owned());
        self.devices.lock().push(device);
    }

    fn classes(&self) -> Vec<String> {
        let devices = self.devices.lock();
        let mut classes: Vec<_> = devices.iter().map(|(class, _)| class.clone()).collect();
        classes.sort();
        classes.dedup();
        classes
    }

    fn devices(&self) -> Vec<String> {
        let devices = self.devices.lock();
        let devices = devices.iter();
        devices
            .map(|(class, name)| format!("{class}::{name}"))
            .collect()
    }
}

impl Admin {
    pub(crate) fn new(orb: Orb, exported: Arc<Exported>) -> Self {
        Self { orb, exported }
    }
}

impl Model for Admin {
    fn state(&self) -> DevState {
        DevState::On
    }

    fn status(&self) -> String {
        "The device is ON\nThe polling is OFF".to_owned()
    }

    fn init(&self) -> Result<(), DevFailed> {
        Ok(())
    }
}

/// The class of the device. It has the commands of Tango's that have a meaning without database, polling and events.
pub(crate) fn class() -> Class<Admin> {
    Class::new("DServer", "A device server device !!")
        .command(Command::new("QueryClass", |admin: &Admin, ()| {
            Ok(admin.exported.classes())
        }))
        .command(Command::new("QueryDevice", |admin: &Admin, ()| {
            Ok(admin.exported.devices())
        }))
        .command(Command::new("QuerySubDevice", |_: &Admin, ()| {
            Ok(Vec::<String>::new())
        }))
        .command(Command::new("PolledDevice", |_: &Admin, ()| {
            Ok(Vec::<String>::new())
        }))
        .command(Command::new("DevPollStatus", |_: &Admin, _: String| {
            Ok(Vec::<String>::new())
        }))
        .command(Command::new("ZmqEventSubscriptionChange", no_events))
        .command(Command::new("Kill", |admin: &Admin, ()| {
            admin.orb.shutdown();
            Ok(())
        }))
}

/// Refuses a subscription with the reason for which clients poll an attribute by themselves.
fn no_events(_: &Admin, names: Vec<String>) -> Result<DevVarLongStringArray, DevFailed> {
    let attribute = names.get(1).map_or("", String::as_str);
    let desc = format!("This server sends no events: read the attribute {attribute} instead");
    let origin = "rtorb_tango::Admin::no_events";
    Err(failed("API_AttributePollingNotStarted", desc, origin))
}
