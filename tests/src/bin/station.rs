//! A server of one Relay: a station of a distributable thread on its way through several processes.
//!
//! `station DISPATCH FILE [NEXT]` writes FILE when it is ready, and ends on `shutdown`. NEXT is the reference of the Relay that it calls.
//! A station without one keeps each distributable thread until that is cancelled: it writes the thread's identity to FILE.arrived
//! then, and to FILE.cancelled afterwards. It does the same as a Party that is asked for its level, whose reference is in FILE.party.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fs;

use rtorb::rt::{EarliestDeadlineFirst, SchedulingCurrent};
use rtorb::{Orb, SystemException};
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_tests::stubs::exchange::{Party, PartyServant};
use rtorb_tests::stubs::{Relay, RelayServant, Seen};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [dispatch, file] => serve(dispatch, file, None),
        [dispatch, file, next] => serve(dispatch, file, Some(next)),
        _ => Err("usage: station DISPATCH FILE [NEXT]".into()),
    }
}

fn serve(dispatch: &str, file: &str, next: Option<&str>) -> Result<(), Box<dyn Error>> {
    let orb = Orb::builder().dispatch(dispatch.parse()?).build()?;
    let next = match next {
        Some(reference) => Some(Relay::unchecked_narrow(orb.string_to_object(reference)?)),
        None => None,
    };
    let root = orb.root_poa()?;
    let station = |next| Station {
        current: orb.scheduling_current(EarliestDeadlineFirst),
        orb: orb.clone(),
        file: file.to_owned(),
        next,
    };
    let party: Party = root.activate(station(None))?;
    write(
        &format!("{file}.party"),
        &orb.object_to_string(party.as_object()),
    )?;
    let relay: Relay = root.activate(station(next))?;
    // A test counts its threads: all are there when it is ready.
    orb.run_with(|| Ok(write(file, &orb.object_to_string(relay.as_object()))?))
}

#[derive(Debug)]
struct Station {
    current: SchedulingCurrent,
    orb: Orb,
    file: String,
    next: Option<Relay>,
}

impl RelayServant for Station {
    fn pass_on(&self) -> Result<Vec<Seen>, SystemException> {
        if let Some(next) = &self.next {
            return next.pass_on();
        }
        self.keep_thread().map(|()| Vec::new())
    }

    fn shutdown(&self) -> Result<(), SystemException> {
        self.orb.shutdown();
        Ok(())
    }
}

impl PartyServant for Station {
    fn name(&self) -> Result<String, SystemException> {
        Ok(self.file.clone())
    }

    fn level(&self) -> Result<i32, SystemException> {
        self.keep_thread().map(|()| 0)
    }

    fn set_level(&self, _: i32) -> Result<(), SystemException> {
        Ok(())
    }
}

impl Station {
    /// Keeps the distributable thread of the request, if that has one, until it is cancelled.
    fn keep_thread(&self) -> Result<(), SystemException> {
        let Some(id) = self.current.id() else {
            return Ok(());
        };
        self.tell("arrived", &id.to_string());
        loop {
            if let Err(cancelled) = self.current.check() {
                self.tell("cancelled", &id.to_string());
                return Err(cancelled);
            }
            sleep_until(monotonic_ns() + CHECK_NS);
        }
    }

    fn tell(&self, what: &str, text: &str) {
        write(&format!("{}.{what}", self.file), text).expect("there is room");
    }
}

/// How often the station asks whether its thread is cancelled, in nanoseconds.
const CHECK_NS: u64 = 100_000;

fn write(file: &str, text: &str) -> std::io::Result<()> {
    let draft = format!("{file}.draft");
    fs::write(&draft, text)?;
    fs::rename(draft, file)
}
