//! A server, and a client that calls it so many times: two processes for whoever counts what a call costs.
//!
//! All take the options of an ORB. `warm-calls serve FILE ENDPOINT [DISPATCH]` writes FILE when it is ready; `warm-calls call REFERENCE N` ends it, and so does
//! `warm-calls send REFERENCE N`, which sends oneways that wait for nothing. `warm-calls serve-timed FILE ENDPOINT cpu|elapsed` writes
//! two references, of an object with annotated operations and of the one that ends it, for
//! `warm-calls call-timed REFERENCE REFERENCE N`. `warm-calls serve-ledger FILE ENDPOINT DISPATCH COUNT` counts its calls in the file COUNT, and
//! ends on SIGTERM; `warm-calls note REFERENCE` calls it until a call fails.
//! `warm-calls call-own N` calls an object of its own ORB.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fs;
use std::path::Path;

use rtorb::rt::Policy;
use rtorb::timing::ExecutionClock;
use rtorb::{ConnectionStrategy, Orb, OrbBuilder, PoaPolicies, SyncScope, WaitStrategy};
use rtorb_tests::clockwork::Works;
use rtorb_tests::ledger::Notes;
use rtorb_tests::servants::Cubes;
use rtorb_tests::stubs::Cubit;
use rtorb_tests::stubs::ledgers::Ledger;
use rtorb_tests::stubs::timing::Clockwork;

fn main() -> Result<(), Box<dyn Error>> {
    let builder = Orb::builder().args(std::env::args());
    let arguments = builder.remaining_arguments()[1..].to_vec();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", file, endpoint] => serve(file, builder.listen(endpoint)),
        ["serve", file, endpoint, dispatch] => {
            serve(file, builder.listen(endpoint).dispatch(dispatch.parse()?))
        }
        ["serve-ledger", file, endpoint, dispatch, count] => {
            let builder = builder.listen(endpoint).dispatch(dispatch.parse()?);
            serve_ledger(file, builder, Path::new(count))
        }
        ["note", reference] => note(builder, reference),
        ["serve-timed", file, endpoint, clock] => {
            let builder = builder.listen(endpoint).execution_clock(match clock {
                "cpu" => ExecutionClock::Cpu,
                _ => ExecutionClock::Elapsed,
            });
            serve_timed(file, builder)
        }
        ["call-timed", clockwork, cubit, calls] => call_timed([clockwork, cubit], calls.parse()?),
        ["call", reference, calls] => call(builder, reference, calls.parse()?),
        ["call-own", calls] => call_own(builder, calls.parse()?),
        ["send", reference, oneways] => send(reference, oneways.parse()?),
        _ => Err("usage: warm-calls serve FILE ENDPOINT [DISPATCH] | call|send REFERENCE N".into()),
    }
}

fn serve(file: &str, builder: OrbBuilder) -> Result<(), Box<dyn Error>> {
    let orb = builder.build()?;
    let cubit: Cubit = orb.root_poa()?.activate(Cubes { orb: orb.clone() })?;
    publish(file, &orb.object_to_string(cubit.as_object()))?;
    Ok(orb.run()?)
}

fn serve_ledger(file: &str, builder: OrbBuilder, count: &Path) -> Result<(), Box<dyn Error>> {
    let orb = builder.build()?;
    orb.shutdown_on_signals(|| {})?;
    // Its reference is good for the server's next run too.
    let kept = orb
        .root_poa()?
        .create_poa("Kept", PoaPolicies::PERSISTENT)?;
    let ledger: Ledger = kept.activate_with_id("ledger", Notes::open(count))?;
    publish(file, &orb.object_to_string(ledger.as_object()))?;
    Ok(orb.run()?)
}

/// Calls a ledger until a call fails.
fn note(builder: OrbBuilder, reference: &str) -> Result<(), Box<dyn Error>> {
    let orb = builder.build()?;
    let ledger = Ledger::unchecked_narrow(orb.string_to_object(reference)?);
    loop {
        ledger.note(1)?;
    }
}

/// Writes the file, which is whole as soon as it is there.
fn publish(file: &str, text: &str) -> Result<(), Box<dyn Error>> {
    let draft = format!("{file}.draft");
    fs::write(&draft, text)?;
    Ok(fs::rename(draft, file)?)
}

fn serve_timed(file: &str, builder: OrbBuilder) -> Result<(), Box<dyn Error>> {
    let orb = builder.build()?;
    let clockwork: Clockwork = orb.root_poa()?.activate(Works::default())?;
    let cubit: Cubit = orb.root_poa()?.activate(Cubes { orb: orb.clone() })?;
    publish(
        file,
        &format!("{} {}", clockwork.as_object(), cubit.as_object()),
    )?;
    Ok(orb.run()?)
}

fn call_timed([clockwork, cubit]: [&str; 2], calls: i32) -> Result<(), Box<dyn Error>> {
    let orb = Orb::builder().build()?;
    let clockwork = Clockwork::unchecked_narrow(orb.string_to_object(clockwork)?);
    for n in 0..calls {
        if clockwork.cube(n)? != n.wrapping_pow(3) {
            return Err(format!("cube({n}) is wrong").into());
        }
    }
    Ok(Cubit::unchecked_narrow(orb.string_to_object(cubit)?).shutdown()?)
}

fn call(builder: OrbBuilder, reference: &str, calls: i32) -> Result<(), Box<dyn Error>> {
    let orb = builder.build()?;
    let cubit: Cubit = orb.string_to_reference(reference)?;
    for n in 0..calls {
        if cubit.cube_long(n)? != n.wrapping_pow(3) {
            return Err(format!("cube_long({n}) is wrong").into());
        }
    }
    Ok(cubit.shutdown()?)
}

fn call_own(builder: OrbBuilder, calls: i32) -> Result<(), Box<dyn Error>> {
    let orb = builder.build()?;
    let cubit: Cubit = orb.root_poa()?.activate(Cubes { orb: orb.clone() })?;
    for n in 0..calls {
        if cubit.cube_long(n)? != n.wrapping_pow(3) {
            return Err(format!("cube_long({n}) is wrong").into());
        }
    }
    Ok(orb.destroy()?)
}

/// So few at once that the sockets have room for them.
const AT_ONCE: u32 = 100;

fn send(reference: &str, oneways: u32) -> Result<(), Box<dyn Error>> {
    let wait = WaitStrategy::Read;
    let connection = ConnectionStrategy::Multiplexed { wait };
    let orb = Orb::builder().connection(connection).build()?;
    let object = orb.string_to_object(reference)?;
    let object = object.set_policy_overrides(&[Policy::PrivateConnection])?;
    let cubit = Cubit::narrow(&object.with_sync_scope(SyncScope::None))?;
    cubit.cube_void()?;
    for n in 0..oneways {
        if !cubit.as_object().flush()? {
            return Err("the server does not read".into());
        }
        cubit.cube_oneway()?;
        if n % AT_ONCE == 0 {
            cubit.cube_void()?;
        }
    }
    Ok(cubit.shutdown()?)
}
