//! A server, and a client that calls it so many times: two processes for whoever counts what a call costs.
//!
//! `warm-calls serve FILE ENDPOINT [DISPATCH]` writes FILE when it is ready; `warm-calls call REFERENCE N` ends it, and so does
//! `warm-calls send REFERENCE N`, which sends oneways that wait for nothing.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fs;

use rtorb::rt::Policy;
use rtorb::{ConnectionStrategy, Orb, OrbBuilder, Strategies, SyncScope, WaitStrategy};
use rtorb_interop::servants::Cubes;
use rtorb_interop::stubs::Cubit;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", file, endpoint] => serve(file, Orb::builder().listen(endpoint)?),
        ["serve", file, endpoint, dispatch] => serve(
            file,
            Orb::builder().listen(endpoint)?.dispatch(dispatch.parse()?),
        ),
        ["call", reference, calls] => call(reference, calls.parse()?),
        ["send", reference, oneways] => send(reference, oneways.parse()?),
        _ => Err("usage: warm-calls serve FILE ENDPOINT [DISPATCH] | call|send REFERENCE N".into()),
    }
}

fn serve(file: &str, builder: OrbBuilder) -> Result<(), Box<dyn Error>> {
    let orb = builder.build()?;
    let cubit: Cubit = orb.root_poa()?.activate(Cubes { orb: orb.clone() })?;
    let draft = format!("{file}.draft");
    fs::write(&draft, orb.object_to_string(cubit.as_object()))?;
    fs::rename(draft, file)?;
    Ok(orb.run()?)
}

fn call(reference: &str, calls: i32) -> Result<(), Box<dyn Error>> {
    let orb = Orb::builder().build()?;
    let cubit = Cubit::narrow(&orb.string_to_object(reference)?)?;
    for n in 0..calls {
        if cubit.cube_long(n)? != n.wrapping_pow(3) {
            return Err(format!("cube_long({n}) is wrong").into());
        }
    }
    Ok(cubit.shutdown()?)
}

/// So few at once that the sockets have room for them.
const AT_ONCE: u32 = 100;

fn send(reference: &str, oneways: u32) -> Result<(), Box<dyn Error>> {
    let mut strategies = Strategies::default();
    (strategies.connection, strategies.wait) =
        (ConnectionStrategy::Multiplexed, WaitStrategy::Read);
    let orb = Orb::builder().strategies(strategies).build()?;
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
