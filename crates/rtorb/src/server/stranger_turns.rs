//! The budget of strangers: how many of their turns begin in a period.
//!
//! A stranger is a client that connects, or one of which no message has been served yet. Its turns cost a lane time before anything is known of it.

use super::session::Session;
use crate::Limits;
use crate::clock::{monotonic_ns, nanoseconds, sleep_until};
use crate::server::ServerCore;
use core::cmp::Reverse;
use rtorb_os::sync::Mutex;
use std::collections::BinaryHeap;

/// Bounds the turns of strangers in each period. Periods follow each other without a gap while turns are taken; the first turn after a
/// period without any begins a new series of them.
#[derive(Debug)]
pub(crate) struct StrangerTurns {
    turns_max: u64,
    period_ns: u64,
    /// The begin of the first period of the series.
    begun_ns: u64,
    /// The turns in all periods of the series.
    taken: u64,
    /// The periods of reserved turns that nobody uses, each by its begin. They are no more than threads have waited at a time.
    given_back: BinaryHeap<Reverse<u64>>,
}

/// How long a thread that waits for a turn does not look whether the ORB stops, in nanoseconds.
const STOP_LATENCY_NS: u64 = 100_000_000;

impl StrangerTurns {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            turns_max: limits.stranger_turns_max as u64,
            period_ns: nanoseconds(limits.stranger_period),
            begun_ns: 0,
            taken: 0,
            given_back: BinaryHeap::new(),
        }
    }

    /// Takes a turn that begins now.
    ///
    /// # Errors
    /// The time at which the next turn may begin, if all turns of this period are taken.
    pub(super) fn take(&mut self, now_ns: u64) -> Result<(), u64> {
        #[cfg(simulation)]
        if rtorb_os::simulation::is_planted("budget-ignored") {
            return Ok(());
        }
        let next_ns = self.next_ns(now_ns);
        if next_ns > now_ns {
            return Err(next_ns);
        }
        self.taken += 1;
        Ok(())
    }

    /// Takes the next turn, or one that was [given back](Self::give_back), and returns when it may begin.
    fn reserve(&mut self, now_ns: u64) -> u64 {
        while let Some(Reverse(at_ns)) = self.given_back.pop() {
            // In another period, it would be one too many.
            if now_ns < at_ns.saturating_add(self.period_ns) {
                return at_ns;
            }
        }
        let next_ns = self.next_ns(now_ns);
        self.taken += 1;
        next_ns
    }

    /// Gives a reserved turn back that does not begin: the next one that reserves has it.
    fn give_back(&mut self, at_ns: u64) {
        self.given_back.push(Reverse(at_ns));
    }

    /// Returns when the period of the next turn begins or began.
    fn next_ns(&mut self, now_ns: u64) -> u64 {
        #[cfg(simulation)]
        if self.taken >= self.turns_max && rtorb_os::simulation::is_planted("budget-unrenewed") {
            return now_ns.saturating_add(self.period_ns);
        }
        let periods = self.taken / self.turns_max;
        let next_ns = periods
            .saturating_mul(self.period_ns)
            .saturating_add(self.begun_ns);
        if now_ns < next_ns.saturating_add(self.period_ns) {
            return next_ns;
        }
        (self.begun_ns, self.taken) = (now_ns, 0);
        now_ns
    }
}

/// Waits for a turn of the accepting thread. Returns earlier if the ORB stops.
pub(crate) fn await_turn(orb: &ServerCore, turns: &Mutex<StrangerTurns>) {
    await_reserved(orb, turns, |until_ns| {
        sleep_until(until_ns);
        false
    });
}

/// Waits for a turn of a stranger that has a thread of its own. Returns earlier if the ORB stops, or if the stranger needs no turn: it
/// [goes](Session::goes).
pub(super) fn await_turn_of(session: &Session, turns: &Mutex<StrangerTurns>) {
    if session.goes() {
        return;
    }
    await_reserved(&session.orb, turns, |until_ns| {
        session.await_going(until_ns);
        session.goes()
    });
}

/// Reserves a turn, and waits until it begins or the ORB stops. `wait` waits until a time at the latest; if it returns true, the turn is not
/// needed, and another stranger gets it.
fn await_reserved(
    orb: &ServerCore,
    turns: &Mutex<StrangerTurns>,
    mut wait: impl FnMut(u64) -> bool,
) {
    let mut now_ns = monotonic_ns();
    let at_ns = turns.lock().reserve(now_ns);
    if at_ns > now_ns {
        orb.state.note_held_back();
    }
    while at_ns > now_ns && !orb.is_stopping() {
        if wait(at_ns.min(now_ns + STOP_LATENCY_NS)) {
            return turns.lock().give_back(at_ns);
        }
        now_ns = monotonic_ns();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Orb;
    use crate::endpoint::Endpoint;
    use crate::server::{Admission, ServedConnection};
    use core::time::Duration;
    use std::io::Write;
    use std::net::{Shutdown, TcpStream};
    use std::sync::{Arc, mpsc};
    use std::thread;

    const PERIOD_NS: u64 = 10_000_000;

    fn turns(turns_max: usize) -> StrangerTurns {
        StrangerTurns::new(&Limits::with(|limits| {
            limits.stranger_turns_max = turns_max;
            limits.stranger_period = Duration::from_nanos(PERIOD_NS);
        }))
    }

    #[test]
    fn as_many_turns_begin_in_each_period_as_the_limit_says() {
        for turns_max in [1, 2, 25] {
            let mut turns = turns(turns_max);
            let begun_ns = 7 * PERIOD_NS + 1;
            // Asked each 100 us, for ten periods, and more often than turns may begin.
            let mut begun = [0; 10];
            for step in 0..1000 {
                let now_ns = begun_ns + step * PERIOD_NS / 100;
                let taken = turns.take(now_ns);
                let period = (now_ns - begun_ns) / PERIOD_NS;
                let next_ns = begun_ns + (period + 1) * PERIOD_NS;
                assert!(taken.is_ok() || taken == Err(next_ns), "{taken:?}");
                begun[period as usize] += usize::from(taken.is_ok());
            }
            assert_eq!(begun, [turns_max; 10]);
        }
    }

    #[test]
    fn a_period_begins_with_its_first_turn() {
        let mut turns = turns(2);
        assert_eq!(turns.take(PERIOD_NS), Ok(()));
        // The period of the first turn is over, and nothing of its budget is left for the next one.
        for now_ns in [2 * PERIOD_NS + 5, 2 * PERIOD_NS + 6] {
            assert_eq!(turns.take(now_ns), Ok(()));
        }
        assert_eq!(turns.take(3 * PERIOD_NS), Err(3 * PERIOD_NS + 5));
        assert_eq!(turns.take(3 * PERIOD_NS + 5), Ok(()));
    }

    #[test]
    fn reserved_turns_begin_in_their_order_and_so_many_in_each_period() {
        let mut turns = turns(3);
        let reserved: Vec<_> = (0..10)
            .map(|_| turns.reserve(PERIOD_NS) / PERIOD_NS)
            .collect();
        assert_eq!(reserved, [1, 1, 1, 2, 2, 2, 3, 3, 3, 4]);
        assert_eq!(turns.take(2 * PERIOD_NS), Err(4 * PERIOD_NS));
    }

    #[test]
    fn a_turn_that_is_given_back_is_the_next_one_unless_its_period_has_passed() {
        let mut turns = turns(2);
        let reserve = |turns: &mut StrangerTurns, period: u64| {
            turns.reserve(period * PERIOD_NS + period % 2) / PERIOD_NS
        };
        let reserved: Vec<_> = (0..6).map(|_| reserve(&mut turns, 1)).collect();
        assert_eq!(reserved, [1, 1, 2, 2, 3, 3]);
        for period in [3, 1, 2] {
            turns.give_back(period * PERIOD_NS + 1);
        }
        let reserved = [1, 2, 2].map(|period| reserve(&mut turns, period));
        assert_eq!(reserved, [1, 2, 3]);
        assert_eq!(reserve(&mut turns, 2), 4, "nothing is left of them");
        turns.give_back(2 * PERIOD_NS + 1);
        assert_eq!(reserve(&mut turns, 4), 4, "it has passed");
    }

    /// A client that is connected, and its connection at the server.
    fn connected(orb: &Orb) -> (TcpStream, ServedConnection) {
        orb.root_poa().expect("it listens");
        let core = &orb.core.adapters.server;
        let server = core.server().expect("it is open");
        let Endpoint::Tcp { port, .. } = server.listeners[0].bound.clone() else {
            panic!("the default endpoint is TCP");
        };
        let client = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        let Admission::Accepted(accepted) = server.accept(core, &server.listeners[0]) else {
            panic!("a client waits");
        };
        (client, accepted)
    }

    /// A client does something, while its connection waits for a turn that does not come.
    fn wait_while(act: impl FnOnce(TcpStream, &Session)) {
        let limits = Limits::with(|limits| {
            limits.stranger_turns_max = 1;
            limits.stranger_period = Duration::from_hours(1);
        });
        let turns = Arc::new(Mutex::new(StrangerTurns::new(&limits)));
        turns.lock().reserve(monotonic_ns());
        let orb = Orb::builder().listen("iiop://127.0.0.1:0");
        let orb = orb.build().expect("an ORB");
        let (client, served) = connected(&orb);
        let (done, is_done) = mpsc::channel();
        let session = Arc::clone(&served.session);
        let (waiting, waited) = (Arc::clone(&session), Arc::clone(&turns));
        let waits = thread::spawn(move || {
            await_turn_of(&waiting, &waited);
            let _ = done.send(());
        });
        while orb.connection_counts().held_back == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        act(client, &session);
        let ended = is_done.recv_timeout(Duration::from_mins(1));
        assert_eq!(ended, Ok(()), "it waits for its turn");
        waits.join().expect("it does not panic");
        assert_eq!(turns.lock().given_back.len(), 1, "another one has its turn");
    }

    #[test]
    fn a_stranger_whose_connection_gives_way_waits_for_no_turn() {
        wait_while(|client, session| {
            session.give_way();
            drop(client);
        });
    }

    #[test]
    fn a_stranger_that_is_gone_waits_for_no_turn() {
        wait_while(|client, _| drop(client));
    }

    #[test]
    fn a_stranger_that_has_sent_all_waits_until_its_connection_gives_way() {
        wait_while(|mut client, session| {
            client.write_all(b"G").expect("there is room");
            client.shutdown(Shutdown::Write).expect("it is open");
            let soon_ns = monotonic_ns() + 60_000_000_000;
            assert_eq!(session.stream.await_hangup(soon_ns), Ok(true));
            assert!(!session.goes(), "what it has sent is to be read");
            session.give_way();
        });
    }
}
