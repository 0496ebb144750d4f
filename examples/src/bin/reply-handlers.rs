//! Turns a spindle by calls of CORBA Messaging: a handler is told their replies, and a poller asks for one.
#![forbid(unsafe_code)]
use rtorb::{Collocation, ConnectionStrategy, Orb, WaitStrategy};
use rtorb_examples::Serving;
use std::io::{Write as _, stdout};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

rtorb::include_idl!("spindle");
use machine::{AmiSpindleHandler, Spindle, SpindleServant, SpindleTurnError, Stuck};

/// The spindle does not turn more than this at a time.
const DEGREES_MAX: i32 = 180;

struct Motor(AtomicI32);

impl SpindleServant for Motor {
    fn turn(&self, degrees: i32) -> Result<i32, SpindleTurnError> {
        if degrees > DEGREES_MAX {
            let position = self.0.load(Ordering::Relaxed);
            return Err(Stuck { position }.into());
        }
        Ok(self.0.fetch_add(degrees, Ordering::Relaxed) + degrees)
    }
}

/// Notes where the spindle was after each call.
#[derive(Default)]
struct Positions(Mutex<Vec<String>>);

impl AmiSpindleHandler for Positions {
    fn turn(&self, ami_return_val: i32) {
        self.note(format!("at {ami_return_val}"));
    }

    fn turn_excep(&self, excep_holder: SpindleTurnError) {
        match excep_holder {
            SpindleTurnError::Stuck(stuck) => self.note(format!("stuck at {}", stuck.position)),
            SpindleTurnError::System(exception) => self.note(exception.to_string()),
        }
    }
}

impl Positions {
    fn note(&self, position: String) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        noted.push(position);
    }

    fn all(&self) -> Vec<String> {
        let noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        noted.clone()
    }
}

fn main() -> anyhow::Result<()> {
    let server = Orb::builder().collocation(Collocation::Transport).build()?;
    let served: Spindle = server.root_poa()?.activate(Motor(AtomicI32::new(0)))?;
    let serving = Serving::start(&server);
    let shared = ConnectionStrategy::Multiplexed {
        wait: WaitStrategy::LeaderFollowers,
    };
    let client = Orb::builder().connection(shared).build()?;
    let spindle: Spindle = client.string_to_reference(&served.to_string())?;

    let replies = client.reply_driver()?;
    let positions = Arc::new(Positions::default());
    for degrees in [90, 200, 30] {
        spindle.sendc_turn(&positions, degrees)?;
    }
    while positions.all().len() < 3 {
        replies.run_once(None);
    }

    let mut poller = spindle.sendp_turn(60);
    let position = poller.turn(Duration::from_secs(5))?;
    let told = positions.all().join(", ");
    writeln!(
        stdout(),
        "the handler was told that the spindle is {told}; the poller, that it is at {position}"
    )?;
    client.destroy()?;
    serving.end()
}
