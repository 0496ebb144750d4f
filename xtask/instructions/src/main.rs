//! A server and a client that makes a given number of calls: `cargo xtask instructions` counts the instructions of both.
//!
//! `rtorb-instructions serve FILE ENDPOINT DISPATCH` writes its reference to FILE when it is ready.
//! `rtorb-instructions call REFERENCE VOID LONG OCTETS` makes so many calls of each kind and then ends the server.
//! `rtorb-instructions call-by-deadline REFERENCE VOID LONG OCTETS` does the same with a deadline for each call.
//! `rtorb-instructions call-own direct|requests VOID LONG OCTETS` makes so many calls of an object of its own ORB: of its servant, or by
//! requests, as an object with a key that the application chose gets them. `serve` and `call` take the options of an ORB.
//!
//! Started calls and deferred replies are in a program of their own, `later.rs`, so that their code does not change the counts of these.
#![forbid(unsafe_code)]

mod published;

use std::error::Error;
use std::time::Duration;

use rtorb::any::Any;
use rtorb::{Orb, OrbBuilder, PoaPolicies, SystemException};

/// Code generated from the IDL.
mod stubs {
    rtorb::include_idl!("cubit");
}

use stubs::{Cubit, CubitServant, Many, Oneof};

fn main() -> Result<(), Box<dyn Error>> {
    let builder = Orb::builder().args(std::env::args());
    let arguments = builder.remaining_arguments()[1..].to_vec();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", file, endpoint, dispatch] => serve(builder, file, endpoint, dispatch),
        ["call", reference, void, long, octets] => {
            call(builder, reference, None, [void, long, octets])
        }
        ["call-by-deadline", reference, void, long, octets] => {
            call(builder, reference, Some(DEADLINE), [void, long, octets])
        }
        ["call-own", way, void, long, octets] => {
            call_own(way, void.parse()?, long.parse()?, octets.parse()?)
        }
        _ => Err("usage: rtorb-instructions serve FILE ENDPOINT DISPATCH | \
                  call REFERENCE VOID LONG OCTETS | call-by-deadline REFERENCE VOID LONG OCTETS | \
                  call-own direct|requests VOID LONG OCTETS"
            .into()),
    }
}

fn serve(
    builder: OrbBuilder,
    file: &str,
    endpoint: &str,
    dispatch: &str,
) -> Result<(), Box<dyn Error>> {
    let orb = builder
        .listen(endpoint)
        .dispatch(dispatch.parse()?)
        .build()?;
    let cubit: Cubit = orb.root_poa()?.activate(Echo { orb: orb.clone() })?;
    published::write(file, &orb.object_to_string(cubit.as_object()))?;
    Ok(orb.run()?)
}

fn call(
    builder: OrbBuilder,
    reference: &str,
    deadline: Option<Duration>,
    [void, long, octets]: [&str; 3],
) -> Result<(), Box<dyn Error>> {
    let orb = builder.build()?;
    let cubit: Cubit = orb.string_to_reference(reference)?;
    let called = deadline.map_or_else(|| cubit.clone(), |ends| cubit.with_deadline(ends));
    make_calls(&called, void.parse()?, long.parse()?, octets.parse()?)?;
    Ok(cubit.shutdown()?)
}

/// Under valgrind no call takes so long.
const DEADLINE: Duration = Duration::from_secs(20);

fn call_own(way: &str, void: usize, long: i32, octets: usize) -> Result<(), Box<dyn Error>> {
    let orb = Orb::builder().build()?;
    let (root, echo) = (orb.root_poa()?, Echo { orb: orb.clone() });
    let cubit: Cubit = match way {
        "direct" => root.activate(echo)?,
        "requests" => root
            .create_poa("named", PoaPolicies::PERSISTENT)?
            .activate_with_id("cubit", echo)?,
        _ => return Err(format!("`{way}` is neither `direct` nor `requests`").into()),
    };
    make_calls(&cubit, void, long, octets)?;
    Ok(orb.destroy()?)
}

fn make_calls(cubit: &Cubit, void: usize, long: i32, octets: usize) -> Result<(), Box<dyn Error>> {
    for _ in 0..void {
        cubit.cube_void()?;
    }
    for n in 0..long {
        if cubit.cube_long(n)? != n {
            return Err(format!("cube_long({n}) is wrong").into());
        }
    }
    let sent = [7; OCTETS];
    for _ in 0..octets {
        if cubit.cube_octet_sequence(&sent)? != sent {
            return Err("cube_octet_sequence is wrong".into());
        }
    }
    Ok(())
}

/// The length of the measured sequence.
const OCTETS: usize = 1024;

/// Returns its argument without cubing it: the count is that of the ORB.
#[derive(Debug)]
struct Echo {
    orb: Orb,
}

impl CubitServant for Echo {
    fn cube_oneway(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn cube_void(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn cube_octet(&self, o: u8) -> Result<u8, SystemException> {
        Ok(o)
    }

    fn cube_short(&self, s: i16) -> Result<i16, SystemException> {
        Ok(s)
    }

    fn cube_long(&self, l: i32) -> Result<i32, SystemException> {
        Ok(l)
    }

    fn cube_struct(&self, values: &Many) -> Result<Many, SystemException> {
        Ok(*values)
    }

    fn cube_union(&self, values: &Oneof) -> Result<Oneof, SystemException> {
        Ok(*values)
    }

    fn cube_any(&self, values: &Any) -> Result<Any, SystemException> {
        Ok(values.clone())
    }

    fn cube_long_sequence(&self, input: &[i32]) -> Result<Vec<i32>, SystemException> {
        Ok(input.to_vec())
    }

    fn cube_octet_sequence(&self, input: &[u8]) -> Result<Vec<u8>, SystemException> {
        Ok(input.to_vec())
    }

    fn cube_many_sequence(&self, input: &[Many]) -> Result<Vec<Many>, SystemException> {
        Ok(input.to_vec())
    }

    fn shutdown(&self) -> Result<(), SystemException> {
        self.orb.shutdown();
        Ok(())
    }
}
