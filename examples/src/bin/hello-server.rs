//! Serves a Greeter: prints its reference, and answers until it is stopped.
#![forbid(unsafe_code)]
use rtorb::{Orb, SystemException};
use std::io::{Write, stdout};

rtorb::include_idl!("greeter");

struct Host;

impl GreeterServant for Host {
    fn greet(&self, name: &str) -> Result<String, SystemException> {
        Ok(format!("Hello, {name}!"))
    }
}

fn main() -> anyhow::Result<()> {
    let orb = Orb::builder().args(std::env::args()).build()?;
    let greeter: Greeter = orb.root_poa()?.activate(Host)?;
    writeln!(stdout(), "{greeter}")?;
    orb.run()?;
    Ok(())
}
