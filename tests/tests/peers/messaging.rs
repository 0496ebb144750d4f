//! Calls of CORBA Messaging to other ORBs, which see no difference.

use std::fmt::Debug;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use rtorb::any::Any;
use rtorb::{ConnectionStrategy, Orb, SystemException, WaitStrategy};
use rtorb_tests::peers::jacorb::jacorb;
use rtorb_tests::peers::omniorb::{Endpoint, omniorb};
use rtorb_tests::scratch::Scratch;
use rtorb_tests::stubs::{AmiCubitHandler, Cubit, Many, Oneof};

/// Says what it was told.
struct Log(Mutex<Sender<String>>);

impl Log {
    fn note(&self, told: impl Debug) {
        let told = format!("{told:?}");
        let sender = self.0.lock().expect("nobody panics under it");
        sender.send(told).expect("the test listens");
    }
}

/// A handler that notes all results and exceptions.
macro_rules! noting {
    ($($operation:ident $excep:ident ($($result:ty)?),)*) => {
        impl AmiCubitHandler for Log {
            $(
                noting!(@ $operation $($result)?);
                fn $excep(&self, excep_holder: SystemException) {
                    self.note(excep_holder);
                }
            )*
        }
    };
    (@ $operation:ident $result:ty) => {
        fn $operation(&self, result: $result) {
            self.note(result);
        }
    };
    (@ $operation:ident) => {
        fn $operation(&self) {
            self.note(());
        }
    };
}

noting! {
    cube_void cube_void_excep (),
    cube_octet cube_octet_excep (u8),
    cube_short cube_short_excep (i16),
    cube_long cube_long_excep (i32),
    cube_struct cube_struct_excep (Many),
    cube_union cube_union_excep (Oneof),
    cube_any cube_any_excep (Any),
    cube_long_sequence cube_long_sequence_excep (Vec<i32>),
    cube_octet_sequence cube_octet_sequence_excep (Vec<u8>),
    cube_many_sequence cube_many_sequence_excep (Vec<Many>),
}

/// Sends calls to the Cubit, and compares the replies with those of calls that wait.
fn check(reference: &str) {
    let orb = Orb::builder().connection(ConnectionStrategy::Multiplexed {
        wait: WaitStrategy::LeaderFollowers,
    });
    let orb = orb.build().expect("the ORB can be built");
    let cubit: Cubit = orb.string_to_reference(reference).expect("it is a Cubit");
    let replies = orb.reply_driver().expect("leaders read");
    let (sender, told) = channel();
    let log = Arc::new(Log(Mutex::new(sender)));
    let many = Many { o: 2, l: 3, s: 4 };
    let (longs, manys) = ([1, 2, 3], vec![many; 3]);
    cubit.sendc_cube_void(&log).expect("it is sent");
    cubit.sendc_cube_long(&log, 7).expect("it is sent");
    cubit.sendc_cube_struct(&log, &many).expect("it is sent");
    let union = Oneof::Cm(many);
    cubit.sendc_cube_union(&log, &union).expect("it is sent");
    cubit
        .sendc_cube_long_sequence(&log, &longs)
        .expect("it is sent");
    let mut polled = cubit.sendp_cube_many_sequence(&manys);
    let mut expected = vec![
        "()".to_owned(),
        "343".to_owned(),
        format!("{:?}", cubit.cube_struct(&many).expect("it replies")),
        format!("{:?}", cubit.cube_union(&union).expect("it replies")),
        "[1, 8, 27]".to_owned(),
    ];
    let mut all = Vec::new();
    while all.len() < expected.len() {
        replies.run_once(None);
        all.extend(told.try_iter());
    }
    // A server with many threads may reply in another order.
    all.sort();
    expected.sort();
    assert_eq!(all, expected);
    let polled = polled.cube_many_sequence(None);
    assert_eq!(polled, cubit.cube_many_sequence(&manys));
}

#[test]
fn omniorb_serves_calls_of_handlers_and_pollers() {
    let Some(omniorb) = omniorb() else { return };
    let scratch = Scratch::new();
    let (_server, reference) = omniorb.serve("cubit_server", &scratch, Endpoint::Tcp, &[]);
    check(&reference);
}

#[test]
fn jacorb_serves_calls_of_handlers_and_pollers() {
    let Some(jacorb) = jacorb() else { return };
    let scratch = Scratch::new();
    let (_server, reference) = jacorb.serve("CubitServer", &scratch);
    check(&reference);
}
