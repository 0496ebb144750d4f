//! Everything from a seed: strategies, versions, byte orders, fragments, sizes, deadlines, how bytes are split and delayed, and
//! where connections break. No outcome of a call contradicts what the server did. `cargo xtask simulate` runs many seeds.

use super::network::{Conditions, Cut, Direction, Fault, connections, cut_next, reset_all};
use super::random::Random;
use super::servant::{DEADLINE, Job, Worker};
use super::world::{Sending, Server, World, client_strategies};
use crate::ObjectRef;
use crate::clock::monotonic_ns;
use crate::giop::Version;
use crate::{CompletionStatus, ExceptionKind, Limits, Orb, OrbBuilder, SystemException};
use core::time::Duration;
use rtorb_wire::ByteOrder;
use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How the calls of all runs ended.
#[derive(Debug, Default)]
struct Tally {
    done: u64,
    timed_out: u64,
    not_done: u64,
    unknown: u64,
    connections: usize,
}

/// `RTORB_SIMULATE_SEEDS` seeds, 300 by default, from `RTORB_SIMULATE_FROM` or the seed of all random tests.
#[test]
fn every_call_has_one_truthful_outcome() {
    let seeds = number("RTORB_SIMULATE_SEEDS").unwrap_or(300);
    let from = number("RTORB_SIMULATE_FROM")
        .or(number("PROPTEST_RNG_SEED"))
        .unwrap_or(0);
    let mut tally = Tally::default();
    let mut failures = 0;
    let mut hash = 0u64;
    for seed in (0..seeds).map(|n| from.wrapping_add(n)) {
        match catch_unwind(AssertUnwindSafe(|| run(seed, &mut tally))) {
            Ok(of_seed) => hash = hash.rotate_left(5) ^ of_seed,
            Err(_) => {
                failures += 1;
                eprintln!("seed {seed} fails: cargo xtask simulate --seeds 1 --from {seed}");
            }
        }
        assert!(failures < 10, "ten seeds failed");
    }
    println!("{seeds} seeds from {from}, {failures} failures, hash {hash:016x}");
    println!("{tally:?}");
    assert_eq!(failures, 0);
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().expect("a number"))
}

/// A reference whose calls have a timeout or a deadline, and how long that is.
fn random_worker(object: &ObjectRef, random: &mut Random) -> (Worker, Duration) {
    let timeout = random_timeout(random);
    let bounded = if random.one_in(2) {
        object.with_timeout(timeout)
    } else {
        object.with_deadline(timeout)
    };
    (Worker(bounded), timeout)
}

/// Runs a seed; returns a hash of all outcomes and their times.
fn run(seed: u64, tally: &mut Tally) -> u64 {
    let mut random = Random(seed);
    let conditions = Conditions {
        delay_ns_max: random.choose([0, 1_000, 1_000_000]),
        pipe_bytes_max: 16 + random.below(20_000),
        splits: random.one_in(2),
        late_wakeups: random.one_in(2),
    };
    let world = World::new(random.next(), conditions);
    let sending = random.choose([Sending::Waiting, Sending::ByEventLoop]);
    let send_timeout = Duration::from_millis(random.choose([1, 10, 1000]));
    let limits = Limits::with(|limits| limits.send_timeout = send_timeout);
    let server = world.serve(
        random_builder(&mut random, Orb::builder().limits(limits)),
        sending,
    );
    let (_, strategy) = random.choose(client_strategies());
    let builder = random_builder(&mut random, strategy());
    let orb = world.client(builder.max_giop_version(random.choose(VERSIONS)));
    let object = orb
        .string_to_object(&server.reference)
        .expect("a reference");
    if random.one_in(2) {
        cut_next(std::iter::repeat_with(|| random_cut(&mut random)).take(8));
    }
    let mut hash = seed;
    let mut calls = Vec::new();
    for number in 0..1 + random.below(24) as u32 {
        let bytes_max = conditions.pipe_bytes_max * 100;
        let job = random_job(&mut random, number, bytes_max.min(30_000));
        let (worker, timeout) = random_worker(&object, &mut random);
        let begun_ns = monotonic_ns();
        let (done, is_oneway) = match random.below(10) {
            0 => (worker.note(job), true),
            1 => (worker.note_at_once(job), true),
            _ => (worker.work(job), false),
        };
        let bound = if is_oneway {
            timeout
        } else {
            timeout.min(DEADLINE)
        };
        check_time(begun_ns, bound, &done);
        calls.push((done, is_oneway));
        check(&server, &calls);
        let tag = calls[number as usize]
            .0
            .as_ref()
            .err()
            .map_or(0, |failed| failed.kind as u64 + 1);
        hash = (hash ^ monotonic_ns() ^ tag << 48).wrapping_mul(0x0100_0000_01b3);
        match random.below(20) {
            0 => server.close_connections(),
            1 => reset_all(),
            2..6 => world.pass(Duration::from_micros(random.below(5_000) as u64)),
            _ => {}
        }
    }
    // What the server received before is carried out now: it must not contradict the outcomes.
    world.pass(Duration::from_secs(2));
    check(&server, &calls);
    tally.connections += connections();
    for (done, _) in calls {
        *match done.map_err(|failed| (failed.kind, failed.completed)) {
            Ok(()) => &mut tally.done,
            Err((ExceptionKind::Timeout, _)) => &mut tally.timed_out,
            Err((_, CompletionStatus::No)) => &mut tally.not_done,
            Err(_) => &mut tally.unknown,
        } += 1;
    }
    hash
}

const VERSIONS: [Version; 3] = [Version::V1_0, Version::V1_1, Version::V1_2];

fn random_builder(random: &mut Random, builder: OrbBuilder) -> OrbBuilder {
    let builder = builder.byte_order(random.choose([ByteOrder::Big, ByteOrder::Little]));
    if random.one_in(2) {
        builder.fragment_bytes(64 + random.below(2_000))
    } else {
        builder
    }
}

fn random_cut(random: &mut Random) -> Option<Cut> {
    (!random.one_in(3)).then(|| Cut {
        direction: random.choose([Direction::ToServer, Direction::ToClient]),
        received: match random.below(3) {
            0 => random.below(100),
            1 => random.below(1_000),
            _ => random.below(50_000),
        },
        fault: random.choose([Fault::Reset, Fault::HalfClose, Fault::Silence]),
    })
}

fn random_job(random: &mut Random, number: u32, bytes_max: usize) -> Job {
    Job {
        number,
        bytes: match random.below(4) {
            0 => 0,
            1 | 2 => random.below(200),
            _ => random.below(bytes_max),
        },
        duration_ns: match random.below(4) {
            0 => random.below(2_000_000) as u64,
            _ => 0,
        },
    }
}

/// Every call has one: what is sent into silence is lost for ever.
fn random_timeout(random: &mut Random) -> Duration {
    let ns = match random.below(3) {
        0 => random.below(1_000_000),
        1 => random.below(20_000_000),
        _ => random.below(3_000_000_000),
    };
    Duration::from_nanos(1 + ns as u64)
}

/// What the server did never contradicts what the client was told.
fn check(server: &Server, calls: &[(Result<(), SystemException>, bool)]) {
    for (number, (done, is_oneway)) in calls.iter().enumerate() {
        let ran = server.log.count(number as u32);
        let completed = done
            .as_ref()
            .map_or_else(|failed| failed.completed, |()| CompletionStatus::Yes);
        match completed {
            CompletionStatus::Yes if !is_oneway => assert_eq!(ran, 1, "call {number}: {done:?}"),
            CompletionStatus::No => assert_eq!(ran, 0, "call {number}: {done:?}"),
            _ => assert!(ran <= 1, "call {number} ran {ran} times: {done:?}"),
        }
    }
}

/// A call ends by its deadline, and gives up at no other time.
fn check_time(begun_ns: u64, timeout: Duration, done: &Result<(), SystemException>) {
    let elapsed = Duration::from_nanos(monotonic_ns() - begun_ns);
    // A retry on a new connection has a deadline of its own. And while the server waits, in a servant or for its client, the
    // client cannot go on: it has the same thread.
    let latest = 3 * timeout + Duration::from_millis(1100);
    assert!(elapsed <= latest, "{elapsed:?} of {timeout:?}: {done:?}");
    if done
        .as_ref()
        .is_err_and(|failed| failed.kind == ExceptionKind::Timeout)
    {
        let tick = Duration::from_millis(4);
        assert!(
            elapsed + tick >= timeout,
            "{elapsed:?} of {timeout:?}: {done:?}"
        );
    }
}
