//! Calls the Greeter whose reference is the first argument with the CORBA priority that is the second.
#![forbid(unsafe_code)]
use anyhow::Context;
use rtorb::Orb;
use rtorb::rt::Priority;
use std::io::{Write, stdout};

rtorb::include_idl!("greeter");

fn main() -> anyhow::Result<()> {
    let builder = Orb::builder().args(std::env::args().skip(1));
    let mut arguments = builder.remaining_arguments().to_vec().into_iter();
    let usage = "usage: lanes-client REFERENCE PRIORITY";
    let reference = arguments.next().context(usage)?;
    let priority: i16 = arguments.next().context(usage)?.parse()?;

    let orb = builder.build()?;
    // This thread and its calls: everything that a call meets on its way has this priority.
    orb.rt_current()
        .set_the_priority(Priority::new(priority)?)?;
    let greeter: Greeter = orb.string_to_reference(&reference)?;
    writeln!(stdout(), "{}", greeter.greet("world")?)?;
    Ok(())
}
