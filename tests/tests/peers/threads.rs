//! Every thread of a running server, as the kernel lists it: the names, policies and priorities of the configuration, and
//! no thread besides.

use std::fs;
use std::net::TcpStream;
use std::process::Command;

use rtorb::Orb;
use rtorb::rt::ThreadpoolLane;
use rtorb_services::scheduling::{Description, Schedule};
use rtorb_tests::raw::{Connection, Request};
use rtorb_tests::relay::{has_priorities, way};
use rtorb_tests::running::{Running, until};
use rtorb_tests::scheduling::{Task, tasks};
use rtorb_tests::scratch::Scratch;
use rtorb_tests::stubs::Relay;

/// The thread that runs the ORB; the kernel shows 15 octets of a name, and these are fewer.
const MAIN: &str = "rt-server";

#[test]
fn the_default_has_a_thread_for_each_connection() {
    let server = Server::start(&[]);
    let _clients = [server.client(), server.client()];
    server.has(&[(MAIN, 0), ("rtorb-conn-1", 0), ("rtorb-conn-2", 0)]);
}

#[test]
fn a_reactive_server_has_no_thread_but_its_own() {
    let server = Server::start(&["-ORBDispatch", "reactive"]);
    let _clients = [server.client(), server.client()];
    server.has(&[(MAIN, 0)]);
}

#[test]
fn corbaplus_has_an_io_thread_and_workers() {
    let server = Server::start(&["-ORBPreset", "corbaplus", "-ORBPoolThreads", "3"]);
    let _clients = [server.client(), server.client()];
    server.has(&[
        (MAIN, 0),
        ("rtorb-io", 0),
        ("rtorb-worker-1", 0),
        ("rtorb-worker-2", 0),
        ("rtorb-worker-3", 0),
    ]);
}

#[test]
fn minicool_has_a_pool_of_leader_and_followers() {
    let server = Server::start(&["-ORBPreset", "minicool", "-ORBPoolThreads", "3"]);
    let _clients = [server.client(), server.client()];
    server.has(&[
        (MAIN, 0),
        ("rtorb-lf-1", 0),
        ("rtorb-lf-2", 0),
        ("rtorb-lf-3", 0),
    ]);
}

#[test]
fn mt_orbix_has_an_io_thread_and_one_for_each_priority() {
    if !has_priorities() {
        return;
    }
    let server = Server::start(&["-ORBPreset", "mt_orbix", "-ORBLanes", "10:1,30:2"]);
    let _clients = [server.client(), server.client()];
    server.has(&[
        (MAIN, 0),
        // Less urgent than a lane, it would keep that lane's requests waiting.
        ("rtorb-io", 30),
        ("rtorb-s10-1", 10),
        ("rtorb-s30-1", 30),
        ("rtorb-s30-2", 30),
    ]);
}

#[test]
fn tao_has_the_threads_of_its_lanes() {
    if !has_priorities() {
        return;
    }
    let server = Server::start(&["-ORBPreset", "tao", "-ORBLanes", "10:1,30:2"]);
    let _clients = [server.client(), server.client()];
    server.has(&[
        (MAIN, 0),
        ("rtorb-p0l0-1", 10),
        ("rtorb-p0l1-1", 30),
        ("rtorb-p0l1-2", 30),
    ]);
}

#[test]
fn a_computed_schedule_gives_an_orb_its_lanes() {
    if !has_priorities() {
        return;
    }
    let scratch = Scratch::new();
    let (described, computed) = (scratch.join("schedule.toml"), scratch.join("computed.toml"));
    fs::write(&described, RATES).expect("the scratch folder can be written");
    let description = Description::read(&described).expect("a description");
    let computation = Schedule::compute(&description).expect("a schedule");
    let written = computation.schedule.write(&computed);
    written.expect("the scratch folder can be written");
    let lanes = Schedule::read(&computed).expect("it was written").lanes();
    let option = |lane: &ThreadpoolLane| {
        let priority = lane.lane_priority.get();
        format!("{priority}:{}", lane.static_threads)
    };
    let lanes: Vec<String> = lanes.iter().map(option).collect();
    let server = Server::start(&["-ORBDispatch", "lanes", "-ORBLanes", &lanes.join(",")]);
    let _clients = [server.client(), server.client()];
    server.has(&[
        (MAIN, 0),
        // Two threads that sampling asks for, and one for the filter.
        ("rtorb-p0l0-1", 40),
        ("rtorb-p0l0-2", 40),
        ("rtorb-p0l0-3", 40),
        // Showing asks for none, and a lane has one at least.
        ("rtorb-p0l1-1", 39),
    ]);
}

/// Two rates, so two levels of rate-monotonic scheduling.
const RATES: &str = r#"
[priorities]
least_urgent = 10
most_urgent = 40

[[operation]]
name = "sample"
period = "10ms"
worst = "1ms"
threads = 2

[[operation]]
name = "filter"
period = "10ms"
worst = "1ms"
threads = 1

[[operation]]
name = "show"
period = "100ms"
worst = "5ms"
"#;

#[test]
fn a_pool_has_the_threads_of_its_lanes() {
    if !has_priorities() {
        return;
    }
    for preset in ["default", "corbaplus", "minicool", "mt_orbix", "tao"] {
        let options = ["--lanes", "5:2,50:1", "-ORBPreset", preset];
        let server = Server::start(&options);
        let _client = server.client();
        // They are all there before the server serves.
        let all = tasks(server.process.id());
        let of_pool = all.iter().filter(|task| task.name.starts_with("rtorb-p1"));
        let expected = [
            ("rtorb-p1l0-1", 5),
            ("rtorb-p1l0-2", 5),
            ("rtorb-p1l1-1", 50),
        ];
        assert!(of_pool.eq(&named(&expected)), "{preset}: {all:?}");
    }
}

#[test]
fn round_robin_takes_the_place_of_fifo() {
    if !has_priorities() {
        return;
    }
    let options = [
        "--lanes",
        "5:1",
        "-ORBDispatch",
        "reactive",
        "-ORBSchedPolicy",
        "SCHED_RR",
    ];
    let server = Server::start(&options);
    let lane = Task {
        name: "rtorb-p1l0-1".to_owned(),
        policy: "SCHED_RR".to_owned(),
        priority: 5,
    };
    assert_eq!(tasks(server.process.id()), [Task::new(MAIN, 0), lane]);
}

#[test]
fn a_thread_that_took_a_calls_priority_gives_it_back() {
    if !has_priorities() {
        return;
    }
    for (dispatch, threads) in [
        ("worker_pool", &["rtorb-io", "rtorb-worker-1"][..]),
        ("leader_followers", &["rtorb-lf-1"]),
        ("reactive", &[]),
    ] {
        let server = Server::start(&["-ORBDispatch", dispatch, "-ORBPoolThreads", "1"]);
        let mut resting = vec![(MAIN, 0)];
        resting.extend(threads.iter().map(|name| (*name, 0)));
        server.has(&resting);
        for number in [7, 40, 0, 3] {
            let seen = way(Orb::builder(), &server.relay(), Some(number));
            assert_eq!(seen, Ok(vec![(number, number)]), "{dispatch}");
            server.has(&resting);
        }
    }
}

/// A server in a process of its own.
struct Server {
    process: Running,
    cubit: String,
    relay: String,
    _scratch: Scratch,
}

impl Server {
    fn start(options: &[&str]) -> Self {
        let scratch = Scratch::new();
        let file = scratch.join("references");
        let mut command = Command::new(env!("CARGO_BIN_EXE_rt-server"));
        command.arg(&file).args(options);
        let (process, references) = Running::until_written(&mut command, &file);
        let mut references = references.lines().map(str::to_owned);
        let mut next = || references.next().expect("it writes two");
        Self {
            process,
            cubit: next(),
            relay: next(),
            _scratch: scratch,
        }
    }

    /// A client that has called, and keeps its connection.
    fn client(&self) -> Connection {
        let orb = Orb::builder().build().expect("the ORB can be built");
        let object = orb.string_to_object(&self.cubit).expect("a reference");
        let profile = object
            .ior()
            .iiop_profiles()
            .next()
            .expect("an IIOP profile");
        let socket = TcpStream::connect((profile.host.as_str(), profile.port));
        let mut connection = Connection::over(socket.expect("the server listens"));
        let request = Request::two_way(&profile.object_key, "cube_long").of_long(3);
        let answer = connection.ask(&request).expect("an answer");
        assert_eq!(answer.long(), 27);
        connection
    }

    /// That the threads are these of SCHED_FIFO, or of SCHED_OTHER where the priority is 0.
    fn has(&self, expected: &[(&str, u32)]) {
        assert_eq!(self.settled(&named(expected)), named(expected));
    }

    /// Its threads, as soon as they are as expected, or after a while: a server that serves already may still be starting
    /// some, and one that begins has the name and the policy of the thread that makes it.
    fn settled(&self, expected: &[Task]) -> Vec<Task> {
        let mut tries = 0..2000;
        until("its threads are listed", || {
            let tasks = tasks(self.process.id());
            (tasks == expected || tries.next().is_none()).then_some(tasks)
        })
    }

    fn relay(&self) -> Relay {
        let orb = Orb::builder().build().expect("the ORB can be built");
        Relay::unchecked_narrow(orb.string_to_object(&self.relay).expect("a reference"))
    }
}

fn named(threads: &[(&str, u32)]) -> Vec<Task> {
    let mut tasks: Vec<_> = threads
        .iter()
        .map(|(name, priority)| Task::new(name, *priority))
        .collect();
    tasks.sort();
    tasks
}
