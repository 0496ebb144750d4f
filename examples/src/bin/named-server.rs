//! Serves a Greeter under a name, until SIGTERM or SIGINT: then its name is unbound, and calls in progress end.
#![forbid(unsafe_code)]

use rtorb::{Orb, SystemException};
use rtorb_services::naming::client::{Context, Existing, parse_name};
use std::io::{Write, stderr, stdout};
use std::thread;
use std::time::Duration;

rtorb::include_idl!("greeter");

struct Host;

impl GreeterServant for Host {
    /// Takes its time, so that a signal may come during a call.
    fn greet(&self, name: &str) -> Result<String, SystemException> {
        let _ = writeln!(stdout(), "{name} has come");
        thread::sleep(Duration::from_secs(1));
        Ok(format!("Hello, {name}!"))
    }
}

fn main() -> anyhow::Result<()> {
    let orb = Orb::builder().args(std::env::args()).build()?;
    let greeter: Greeter = orb.root_poa()?.activate(Host)?;
    let (names, name) = (Context::root(&orb)?, parse_name("plant/greeter")?);

    names.make_parents(&name)?;
    // After a crash the name is still bound to the former process.
    names.bind(&name, greeter.as_object(), Existing::Replace)?;
    // A signal before this line ends the process as a crash does: the next start binds the name again.
    orb.shutdown_on_signals(move || {
        if let Err(failure) = names.unbind(&name) {
            let _ = writeln!(stderr(), "the name stays bound: {failure}");
        }
    })?;
    writeln!(stdout(), "ready")?;
    orb.run()?;
    writeln!(stdout(), "ended")?;
    Ok(())
}
