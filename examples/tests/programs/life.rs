//! The life of the service of docs/how-to/service.md: it is started, ended by SIGTERM, killed, and started again.

use rtorb::{ObjectRef, Orb};
use rtorb_services::naming::client::{Context, FailureReason, parse_name};
use rtorb_services::naming::{NamingConfig, NamingService};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

rtorb::include_idl!("greeter");

/// A naming service in this process, and its root as a client has it.
struct Names {
    orb: Orb,
    serving: Option<JoinHandle<()>>,
    root: Context,
}

impl Names {
    fn serve() -> Self {
        let orb = Orb::builder().build().expect("an ORB");
        let service = NamingService::serve(&orb, NamingConfig::default()).expect("names");
        let server = orb.clone();
        let serving = thread::spawn(move || server.run().expect("it serves"));
        let patience = Some(Duration::from_secs(30));
        let client = Orb::builder().round_trip_timeout(patience).build();
        let client = client.expect("an ORB");
        let root = client.string_to_object(&service.reference().as_object().to_string());
        let root = Context::narrow(&root.expect("a reference")).expect("a context");
        Self {
            orb,
            serving: Some(serving),
            root,
        }
    }

    /// The object with the name of the example; `None` if the name is not bound.
    fn bound(&self) -> Option<ObjectRef> {
        match self.root.resolve(&parse_name(NAME).expect("a name")) {
            Ok(object) => Some(object.expect("not nil")),
            Err(failure) => {
                let is_missing = matches!(failure.reason, FailureReason::MissingNode(_));
                assert!(is_missing, "{failure}");
                None
            }
        }
    }

    fn greeter(&self) -> Greeter {
        Greeter::narrow(&self.bound().expect("the name is bound")).expect("a greeter")
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        self.orb.shutdown();
        if let Some(serving) = self.serving.take() {
            let ended = serving.join();
            assert!(ended.is_ok() || thread::panicking());
        }
    }
}

/// The running example, killed when it is dropped.
struct Server {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Server {
    /// Starts it and waits until its name is bound.
    fn start(names: &Names) -> Self {
        let place = format!("NameService={}", names.root.as_object());
        let mut command = Command::new(env!("CARGO_BIN_EXE_named-server"));
        command.args(["-ORBInitRef", &place]).stdout(Stdio::piped());
        let mut process = command.spawn().expect("the server runs");
        let output = process.stdout.take().expect("standard output is piped");
        let lines = BufReader::new(output).lines();
        let mut server = Self { process, lines };
        assert_eq!(server.line(), "ready");
        server
    }

    fn line(&mut self) -> String {
        let line = self.lines.next().expect("the server prints a line");
        line.expect("the line is text")
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("it runs");
    }

    fn ended(&mut self) -> Option<i32> {
        self.process.wait().expect("it is ours").code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail if the server has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_service_ends_in_order_and_a_restart_binds_its_name_again() {
    let names = Names::serve();
    for _ in 0..2 {
        let mut server = Server::start(&names);
        let greeter = names.greeter();
        let call = thread::spawn(move || greeter.greet("Ada"));
        assert_eq!(server.line(), "Ada has come");
        server.signal(Signal::TERM);
        let answer = call.join().expect("no panic");
        assert_eq!(answer.as_deref(), Ok("Hello, Ada!"));
        assert_eq!(server.line(), "ended");
        assert_eq!(server.ended(), Some(0));
        assert_eq!(names.bound(), None);
    }
}

#[test]
fn the_name_of_a_killed_service_stays_bound_until_the_restart() {
    let names = Names::serve();
    let mut server = Server::start(&names);
    server.signal(Signal::KILL);
    assert_eq!(server.ended(), None, "the signal ended it");
    let gone = names.bound().expect("nobody has unbound it");
    let _server = Server::start(&names);
    assert_ne!(names.bound(), Some(gone));
    let answer = names.greeter().greet("Ada");
    assert_eq!(answer.as_deref(), Ok("Hello, Ada!"));
}

#[test]
fn the_page_shows_the_example_as_it_is() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |path: &str| {
        fs::read_to_string(workspace.join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
    };
    let block = format!(
        "```rust,ignore\n{}```\n",
        read("examples/src/bin/named-server.rs")
    );
    assert!(read("docs/how-to/service.md").contains(&block));
}

/// The name that the example binds.
const NAME: &str = "plant/greeter";
