//! Asks the Greeter whose reference is the first argument to greet the second.
#![forbid(unsafe_code)]
use anyhow::Context;
use rtorb::Orb;
use std::io::{Write, stdout};

rtorb::include_idl!("greeter");

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let reference = arguments
        .next()
        .context("usage: hello-client REFERENCE [NAME]")?;
    let name = arguments.next().unwrap_or("world".to_owned());

    let orb = Orb::builder().build()?;
    let greeter: Greeter = orb.string_to_reference(&reference)?;
    writeln!(stdout(), "{}", greeter.greet(&name)?)?;
    Ok(())
}
