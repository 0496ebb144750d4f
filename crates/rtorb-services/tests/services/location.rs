//! The locator: clients find servers that move, and servers that do not run are started.

use rtorb::{ExceptionKind, ObjectRef, Orb, PoaPolicies, SystemException};
use rtorb_services::location::{LocatorConfig, LocatorEvent, serve};
use rtorb_tests::fake::{FakeServer, Peer};
use rtorb_tests::loopback::own_endpoint;
use rtorb_tests::running::until;
use rtorb_tests::scratch::Scratch;
use rtorb_tests::servants::Counter;
use rtorb_tests::stubs::exchange::Desk;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// An ORB that runs, until it is ended.
struct Running {
    orb: Orb,
    thread: JoinHandle<()>,
}

impl Running {
    fn new() -> Self {
        let orb = Orb::builder().listen(&own_endpoint()).build();
        let orb = orb.expect("an ORB");
        orb.root_poa().expect("it listens");
        let serving = orb.clone();
        let thread = thread::spawn(move || serving.run().expect("it serves"));
        Self { orb, thread }
    }

    /// A server of the object `Plant/a/b`, which writes its reference.
    fn server(reference: &Path) -> Self {
        let server = Self::new();
        let poa = server.orb.root_poa().expect("it listens");
        let poa = poa.create_poa("Plant", PoaPolicies::PERSISTENT);
        let poa = poa.expect("a new name");
        let served: Result<Desk, _> = poa.activate_with_id("a/b", Counter::default());
        let served = served.expect("a new id");
        let bound = server.orb.bind_object_key("Plant", served.as_object());
        bound.expect("a free key");
        fs::write(reference, served.as_object().to_string()).expect("a file");
        server
    }

    fn end(self) {
        self.orb.shutdown();
        self.thread.join().expect("no panic");
    }
}

/// A locator, and what it has told.
struct Locator {
    running: Running,
    told: Arc<Mutex<Vec<LocatorEvent>>>,
}

impl Locator {
    fn of(servers: &str) -> Self {
        let running = Running::new();
        let config = LocatorConfig::parse(servers).expect("a right file");
        let told = Arc::new(Mutex::new(Vec::new()));
        let own = Arc::clone(&told);
        let tell = move |event| own.lock().expect("no panic").push(event);
        serve(&running.orb, &config, tell).expect("it serves");
        Self { running, told }
    }

    /// The object with that key, as a client sees it that knows the locator.
    fn object(&self, key: &str) -> ObjectRef {
        let endpoint = self.running.orb.endpoints()[0].to_string();
        let place = endpoint.trim_start_matches("iiop://");
        let client = Orb::builder().build().expect("an ORB");
        client
            .string_to_object(&format!("corbaloc:iiop:1.2@{place}/{key}"))
            .expect("a reference")
    }

    fn told(&self) -> Vec<String> {
        let told = self.told.lock().expect("no panic");
        told.iter().map(ToString::to_string).collect()
    }
}

fn entry(reference: &Path, more: &str) -> String {
    format!(
        "[[server]]\nname = \"plant\"\nadapters = [\"Plant\"]\nkeys = [\"Plant\"]\nreference = {:?}\n{more}",
        reference.display().to_string()
    )
}

fn call(object: &ObjectRef) -> Result<i32, SystemException> {
    Desk::unchecked_narrow(object.clone()).level()
}

#[test]
fn a_reference_by_the_locator_follows_its_server() {
    let scratch = Scratch::new();
    let file = scratch.join("plant.ior");
    let mut server = Running::server(&file);
    let locator = Locator::of(&entry(&file, ""));
    // An id with a slash, and a key that the server has bound.
    let objects = ["Plant/a%252Fb", "Plant"].map(|key| locator.object(key));
    for _ in 0..3 {
        for object in &objects {
            assert_eq!(call(object), Ok(0), "{object}");
            assert_eq!(object.is_a("IDL:Exchange/Desk:1.0"), Ok(true), "{object}");
            assert_eq!(object.validate_connection(), Ok(()), "{object}");
        }
        server.end();
        let next = Running::server(&file);
        server = next;
    }
    let nobody = locator.object("Plant/nobody");
    assert_eq!(nobody.non_existent(), Ok(true));
    server.end();
    assert_eq!(locator.told(), [""; 0]);
    locator.running.end();
}

#[test]
fn a_server_that_does_not_run_is_started_by_its_first_clients() {
    let scratch = Scratch::new();
    let (prepared, file) = (scratch.join("prepared.ior"), scratch.join("plant.ior"));
    let server = Running::server(&prepared);
    let start = format!(
        "start = [\"mv\", {:?}, {:?}]\n",
        prepared.display().to_string(),
        file.display().to_string()
    );
    let locator = Locator::of(&entry(&file, &start));
    thread::scope(|scope| {
        for _ in 0..4 {
            let object = locator.object("Plant/a%252Fb");
            scope.spawn(move || assert_eq!(call(&object), Ok(0)));
        }
    });
    let told = locator.told();
    assert!(told[0].starts_with("plant: being started"), "{told:?}");
    assert_eq!(told[1..], ["plant: started"]);
    server.end();
    locator.running.end();
}

#[test]
fn a_server_that_cannot_be_started_is_a_transient_exception() {
    let scratch = Scratch::new();
    let (file, count) = (scratch.join("plant.ior"), scratch.join("count"));
    for (start, reason) in [
        ("start = [\"false\"]", "exit status: 1"),
        ("start = [\"/nowhere\"]", "cannot be run"),
        (
            "start = [\"true\"]\nstart_timeout_ms = 100",
            "was started and does not reply",
        ),
        ("", "plant.ior"),
    ] {
        let locator = Locator::of(&entry(&file, start));
        let object = locator.object("Plant/a%252Fb");
        let failed = call(&object).expect_err("nobody serves it");
        assert_eq!(failed.kind, ExceptionKind::Transient, "{start}");
        let told = locator.told();
        let last = told.last().expect("the reason is told");
        assert!(last.contains(reason), "{start}: {told:?}");
        locator.running.end();
    }
    // Each start is counted.
    let start = format!(
        "start = [\"sh\", \"-c\", \"echo 1 >> {}; exit 1\"]",
        count.display()
    );
    let locator = Locator::of(&entry(&file, &start));
    let object = locator.object("Plant");
    let before = rtorb_os::clock::monotonic_ns();
    let mut calls = 0;
    until("it was started again", || {
        call(&object).expect_err("nobody serves it");
        calls += 1;
        let starts = fs::read_to_string(&count)
            .unwrap_or_default()
            .lines()
            .count();
        (starts > 1).then_some(())
    });
    let took_ns = rtorb_os::clock::monotonic_ns() - before;
    assert!(took_ns >= 1_000_000_000, "{calls} calls, {took_ns} ns");
    locator.running.end();
}

#[test]
fn a_server_that_hangs_is_not_started_once_more_and_the_end_of_the_locator_waits_for_no_start() {
    let scratch = Scratch::new();
    let (file, count) = (scratch.join("plant.ior"), scratch.join("count"));
    let start = format!(
        "start = [\"sh\", \"-c\", \"echo 1 >> {}; exec sleep 600\"]\nstart_timeout_ms = 600000",
        count.display()
    );
    let locator = Locator::of(&entry(&file, &start));
    // One takes connections, and replies to nothing. The other has no room.
    let close = *b"GIOP\x01\x02\x01\x05\0\0\0\0";
    let hanging = FakeServer::new(|_, mut peer: Peer| peer.wait_for_end());
    let full = FakeServer::new(move |_, mut peer: Peer| peer.send(&close));
    for server in [hanging, full] {
        fs::write(&file, server.reference()).expect("a file");
        let failed = call(&locator.object("Plant")).expect_err("nobody replies");
        assert_eq!(failed.kind, ExceptionKind::Transient);
        assert!(!count.exists(), "{:?}", locator.told());
    }
    let object = locator.object("Plant");
    fs::remove_file(&file).expect("it is there");
    thread::scope(|scope| {
        scope.spawn(|| call(&object).expect_err("it never replies"));
        let process = until("it is started", || {
            let told = locator.told.lock().expect("no panic");
            told.iter().find_map(|event| match event {
                LocatorEvent::Starting { process, .. } => Some(*process),
                _ => None,
            })
        });
        locator.running.end();
        let ended = Command::new("kill").arg(process.to_string()).status();
        assert!(ended.is_ok_and(|status| status.success()));
    });
}

#[test]
fn wrong_servers_are_refused_with_their_names() {
    let refused = |text: &str| {
        let running = Running::new();
        let config = LocatorConfig::parse(text);
        let served = config.and_then(|config| serve(&running.orb, &config, |_| {}));
        running.end();
        served.expect_err("it is wrong").to_string()
    };
    let one = "[[server]]\nname = \"a\"\nreference = \"/a.ior\"\n";
    let with = |more: &str| format!("{one}{more}\n");
    for (text, words) in [
        (one.to_owned(), "has no object"),
        (
            with("keys = [\"k\"]\nstart_timeout_ms = 0"),
            "from 1 to 600000",
        ),
        (with("adapter = \"a\""), "unknown field `adapter`"),
        (with("adapters = [\"a//b\"]"), "adapter \"a//b\""),
        (with("keys = [\"k\"]").repeat(2), "the name of another one"),
        (with("keys = [\"k\", \"k\"]"), "the key \"k\" stands twice"),
        (
            with("keys = [\"k\"]").replace("/a.ior", "a.ior"),
            "absolute path",
        ),
        (with("adapters = [\"x\", \"x\"]"), "adapter \"x\""),
        (with("keys = [\"\"]"), "1 to 255 bytes"),
    ] {
        let said = refused(&text);
        assert!(said.contains(words), "{text}: {said}");
    }
}
