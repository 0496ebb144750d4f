//! A server that defers its replies, and a client that starts its calls: `cargo xtask instructions` counts each with `rtorb-instructions` at the
//! other end.
//!
//! `rtorb-instructions-later serve FILE ENDPOINT DISPATCH` defers each reply, and writes its reference to FILE when it is ready.
//! `rtorb-instructions-later call REFERENCE VOID LONG OCTETS` starts so many calls of each kind, waits for each, and then ends the server.
#![forbid(unsafe_code)]

mod published;

use std::error::Error;

use rtorb::any::Any;
use rtorb::{
    ConnectionStrategy, Deferring, Orb, OrbBuilder, Responder, SystemException, WaitStrategy,
};

/// Code generated from the IDL.
mod stubs {
    rtorb::include_idl!("cubit");
}

use stubs::{Cubit, CubitDeferredServant, Many, Oneof};

fn main() -> Result<(), Box<dyn Error>> {
    let builder = Orb::builder().args(std::env::args());
    let arguments = builder.remaining_arguments()[1..].to_vec();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", file, endpoint, dispatch] => serve(builder, file, endpoint, dispatch),
        ["call", reference, void, long, octets] => call(
            builder,
            reference,
            [void.parse()?, long.parse()?, octets.parse()?],
        ),
        _ => Err(
            "usage: rtorb-instructions-later serve FILE ENDPOINT DISPATCH | \
                  call REFERENCE VOID LONG OCTETS"
                .into(),
        ),
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
    let echo = Deferring(LateEcho { orb: orb.clone() });
    let cubit: Cubit = orb.root_poa()?.activate(echo)?;
    published::write(file, &orb.object_to_string(cubit.as_object()))?;
    Ok(orb.run()?)
}

/// Starts one call at a time. The thread that waits reads the reply itself, so no other thread's instructions count.
fn call(
    builder: OrbBuilder,
    reference: &str,
    [void, long, octets]: [i32; 3],
) -> Result<(), Box<dyn Error>> {
    let shared = ConnectionStrategy::Multiplexed {
        wait: WaitStrategy::LeaderFollowers,
    };
    let orb = builder.connection(shared).build()?;
    let cubit: Cubit = orb.string_to_reference(reference)?;
    for _ in 0..void {
        cubit.start().cube_void().wait()?;
    }
    for n in 0..long {
        if cubit.start().cube_long(n).wait()? != n {
            return Err(format!("cube_long({n}) is wrong").into());
        }
    }
    let sent = [7; OCTETS];
    for _ in 0..octets {
        if cubit.start().cube_octet_sequence(&sent).wait()? != sent {
            return Err("cube_octet_sequence is wrong".into());
        }
    }
    Ok(cubit.shutdown()?)
}

/// The length of the measured sequence.
const OCTETS: usize = 1024;

/// Answers each call by its responder, with the argument without cubing it: the count is that of the ORB.
///
/// The servant's own thread answers. From another thread, the ORB sends the reply in the same way, but what the application does to get there
/// would count too, and differs from run to run.
#[derive(Debug)]
struct LateEcho {
    orb: Orb,
}

impl CubitDeferredServant for LateEcho {
    fn cube_oneway(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn cube_void(&self, responder: Responder<()>) {
        responder.reply(());
    }

    fn cube_octet(&self, responder: Responder<u8>, o: u8) {
        responder.reply(o);
    }

    fn cube_short(&self, responder: Responder<i16>, s: i16) {
        responder.reply(s);
    }

    fn cube_long(&self, responder: Responder<i32>, l: i32) {
        responder.reply(l);
    }

    fn cube_struct(&self, responder: Responder<Many>, values: Many) {
        responder.reply(values);
    }

    fn cube_union(&self, responder: Responder<Oneof>, values: Oneof) {
        responder.reply(values);
    }

    fn cube_any(&self, responder: Responder<Any>, values: Any) {
        responder.reply(values);
    }

    fn cube_long_sequence(&self, responder: Responder<Vec<i32>>, input: Vec<i32>) {
        responder.reply(input);
    }

    fn cube_octet_sequence(&self, responder: Responder<Vec<u8>>, input: Vec<u8>) {
        responder.reply(input);
    }

    fn cube_many_sequence(&self, responder: Responder<Vec<Many>>, input: Vec<Many>) {
        responder.reply(input);
    }

    fn shutdown(&self) -> Result<(), SystemException> {
        self.orb.shutdown();
        Ok(())
    }
}
