//! The README's server and client are these examples, and they work.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

#[test]
fn the_server_serves_and_the_client_is_greeted() {
    let mut server = Server::start(&[]);
    let reference = server.line();
    assert!(reference.starts_with("IOR:"), "{reference}");
    for (arguments, greeting) in [
        (vec![], "Hello, world!\n"),
        (vec!["J\u{f6}rg"], "Hello, J\u{f6}rg!\n"),
    ] {
        let mut client = Command::new(env!("CARGO_BIN_EXE_hello-client"));
        let output = client
            .arg(&reference)
            .args(arguments)
            .output()
            .expect("the client runs");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert_eq!(String::from_utf8_lossy(&output.stdout), greeting);
    }
}

#[test]
fn a_client_without_a_server_says_what_is_wrong_and_what_to_do() {
    // At an address of its own: elsewhere the next server of another test may get its port, and answers.
    let [.., high, low] = std::process::id().to_be_bytes();
    let endpoint = format!("iiop://127.{high}.{low}.1:0");
    let reference = Server::start(&["-ORBListenEndpoints", &endpoint]).line();
    let client = Command::new(env!("CARGO_BIN_EXE_hello-client"))
        .arg(&reference)
        .output();
    let client = client.expect("the client runs");
    let said = String::from_utf8_lossy(&client.stderr).into_owned();
    assert!(!client.status.success());
    assert!(
        said.contains("Transient") || said.contains("TRANSIENT"),
        "{said}"
    );
}

#[test]
fn the_readme_shows_the_examples_as_they_are() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |path: &str| {
        fs::read_to_string(workspace.join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
    };
    let readme = read("README.md");
    for (language, path) in [
        ("idl", "examples/idl/greeter.idl"),
        ("rust", "examples/build.rs"),
        ("rust", "examples/src/bin/hello-server.rs"),
        ("rust", "examples/src/bin/hello-client.rs"),
    ] {
        let block = format!("```{language}\n{}```\n", read(path));
        assert!(
            readme.contains(&block),
            "README.md does not show {path} as it is"
        );
    }
}

/// A running server, killed by its id when dropped.
struct Server(Child);

impl Server {
    fn start(options: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hello-server"));
        Self(
            command
                .args(options)
                .stdout(Stdio::piped())
                .spawn()
                .expect("the server runs"),
        )
    }

    /// The first line that it prints.
    fn line(&mut self) -> String {
        let output = self.0.stdout.take().expect("standard output is piped");
        let line = BufReader::new(output)
            .lines()
            .next()
            .expect("the server prints a line");
        line.expect("the line is text")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail when the server has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
