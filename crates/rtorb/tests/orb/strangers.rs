//! Clients of which no message has been served yet: a flood of them takes so much of a server's time and no more, and a new client that
//! does nothing wrong is served.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rtorb::rt::LanedThreadpool;
use rtorb::{DispatchStrategy, Limits, Orb};
use rtorb_tests::good::Good;
use rtorb_tests::ours::Ours;
use rtorb_tests::raw::{Connection, REPLY, Request};
use rtorb_tests::running::until;
use rtorb_tests::scheduling::TimeSharing;

use super::pools::{Pooled, lane, raw_client, set_level};

/// Bytes that are no GIOP.
const GARBAGE: &[u8] = b"GET / HTTP/1.1\r\n\r\n";

fn limits(turns_max: usize, period: Duration) -> Limits {
    Limits::with(|limits| {
        limits.stranger_turns_max = turns_max;
        limits.stranger_period = period;
    })
}

#[test]
fn a_flood_gets_so_many_turns_in_a_period_and_keeps_nobody_out() {
    const STRANGERS: usize = 200;
    const TURNS: usize = 50;
    const PERIOD: Duration = Duration::from_millis(100);
    for (name, dispatch) in DispatchStrategy::ALL {
        let builder = Orb::builder().limits(limits(TURNS, PERIOD));
        let ours = Ours::serve_as(builder.dispatch(dispatch));
        let mut good = Good::to(&ours);
        good.call();
        let begun = Instant::now();
        // Half of them send one byte at a time.
        let mut flood: Vec<_> = (0..STRANGERS).map(|_| stranger(&ours)).collect();
        for (number, stranger) in flood.iter_mut().enumerate() {
            let bytes = if number % 2 == 0 { GARBAGE } else { b"G" };
            stranger.write_all(bytes).expect("there is room");
        }
        until("all garbage is read", || {
            good.call();
            let slow = flood.iter_mut().skip(1).step_by(2);
            slow.for_each(|stranger| drop(stranger.write(b"\0")));
            (ours.orb.connection_counts().malformed >= STRANGERS as u64 / 2).then_some(())
        });
        // All but one were accepted before the last one was read. The first period and the last are not whole.
        let periods = (STRANGERS - 1) / TURNS - 1;
        let least = PERIOD * u32::try_from(periods).expect("few");
        assert!(begun.elapsed() >= least, "{name}: {:?}", begun.elapsed());
        let mut new = Good::to(&ours);
        new.call();
        good.call();
        let held_back = ours.orb.connection_counts().held_back;
        assert!(held_back > 0, "{name}");
        drop(flood);
    }
}

#[test]
fn requests_that_a_new_client_pipelines_wait_for_no_period() {
    const REQUESTS: u32 = 40;
    for (name, dispatch) in DispatchStrategy::ALL {
        // One turn accepts it, and one reads it.
        let builder = Orb::builder().limits(limits(2, Duration::from_secs(1)));
        let ours = Ours::serve_as(builder.dispatch(dispatch));
        let key = ours.key(ours.cubit.as_object());
        let request = |id| {
            let request = Request::two_way(&key, "cube_long");
            Request { id, ..request }.of_long(3)
        };
        let mut client = Connection::to(ours.address());
        client.send(&(0..REQUESTS).flat_map(request).collect::<Vec<_>>());
        let served: BTreeSet<_> = (0..REQUESTS)
            .map(|_| {
                let answer = client.answer().expect("it is served");
                assert_eq!((answer.kind, answer.long()), (REPLY, 27), "{name}");
                answer.id
            })
            .collect();
        assert!(served.into_iter().eq(0..REQUESTS), "{name}");
        // Until its first reply, it is a stranger.
        let held_back = ours.orb.connection_counts().held_back;
        assert!(held_back <= 5, "{name}: {held_back}");
    }
}

#[test]
fn new_clients_of_lanes_that_borrow_threads_wait_in_turn() {
    let builder = Orb::builder().limits(limits(1, Duration::from_millis(1)));
    let pool = Pooled::start(
        builder.priority_mapping(TimeSharing),
        LanedThreadpool {
            lanes: vec![lane(1, 1), lane(2, 1)],
            allow_borrowing: true,
            ..LanedThreadpool::default()
        },
    );
    let parties = [1, 2].map(|number| pool.party(number));
    parties.iter().for_each(|(_, gate)| gate.open());
    let mut clients: Vec<_> = (0..20)
        .map(|number| raw_client(&parties[number % 2].0))
        .collect();
    for round in 0..3 {
        for (number, client) in clients.iter_mut().enumerate() {
            let requests =
                (3 * round..3 * round + 3).flat_map(|id| set_level(&parties[number % 2].0, id));
            client.send(&requests.collect::<Vec<_>>());
        }
        for client in &mut clients {
            assert_eq!(client.answers(3), (3 * round..3 * round + 3).collect());
        }
    }
}

fn stranger(ours: &Ours) -> TcpStream {
    TcpStream::connect(ours.address()).expect("the server listens")
}
