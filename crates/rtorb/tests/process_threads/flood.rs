//! A flood of strangers, each of which has a thread of its own.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use rtorb::{DispatchStrategy, Limits, Orb};
use rtorb_tests::good::Good;
use rtorb_tests::ours::Ours;
use rtorb_tests::running::until;

use super::connections::named;

const STRANGERS: u64 = 600;
const CONNECTIONS: usize = 8;
const TURNS: usize = 2;

/// As many as may be told to go and have not gone yet, as `Limits::connections_max` says.
const LEAVING: usize = 64;

fn serve() -> Ours {
    let limits = Limits::with(|limits| {
        limits.connections_max = CONNECTIONS;
        limits.stranger_turns_max = TURNS;
        limits.stranger_period = Duration::from_millis(5);
    });
    let dispatch = DispatchStrategy::ThreadPerConnection;
    Ours::serve_as(Orb::builder().dispatch(dispatch).limits(limits))
}

/// A client that connects and sends one byte.
fn stranger(ours: &Ours) -> TcpStream {
    let mut stranger = TcpStream::connect(ours.address()).expect("the server listens");
    // It may have been told to go.
    let _ = stranger.write_all(b"G");
    stranger
}

fn threads() -> usize {
    named("rtorb-conn-").len()
}

pub(crate) fn a_flood_of_strangers_has_no_more_threads_than_the_limit_says() {
    let ours = serve();
    let (mut kept, mut most) = (Vec::new(), 0);
    for number in 0..STRANGERS {
        let stranger = stranger(&ours);
        match number % 4 {
            0 => {}
            1 => _ = stranger.shutdown(Shutdown::Write),
            _ => kept.push(stranger),
        }
        // Some of them send a byte now and then.
        for stranger in kept.iter_mut().rev().take(4 * CONNECTIONS).step_by(3) {
            let _ = stranger.write(b"\0");
        }
        most = most.max(threads());
    }
    until("all are accepted", || {
        most = most.max(threads());
        (ours.orb.connection_counts().accepted == STRANGERS).then_some(())
    });
    assert!(most <= CONNECTIONS + LEAVING, "{most} threads");
    // One that gives way may not have sent its request yet, and connects again.
    until("a client that does nothing wrong is served", || {
        Good::to(&ours).try_call()
    });
    until("those that gave way have gone", || {
        kept.iter_mut().for_each(|it| drop(it.write(b"\0")));
        (threads() <= CONNECTIONS).then_some(())
    });
    let counts = ours.orb.connection_counts();
    assert_eq!(counts.refused, 0, "{counts:?}");
}
