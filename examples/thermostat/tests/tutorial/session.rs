//! Runs the commands of a page, as a reader does in several terminals.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::page::Page;

/// The commands of one page, in a folder of their own.
pub(crate) struct Session {
    folder: PathBuf,
    running: Vec<Running>,
}

/// A command that a page leaves running, and the file with its output.
struct Running {
    process: Child,
    output: PathBuf,
}

impl Session {
    /// Runs each block of commands, and compares the output with the block of text that follows. A second block of text has the
    /// output of the last command that was left running.
    pub(crate) fn run(page: &Page) {
        let mut session = Self::new();
        let mut output = None;
        for block in page.blocks() {
            match block.language {
                "sh" if block.text.contains("lab run") => output = None,
                "sh" if block.text.contains(KEEP) => {
                    session.start(block.text);
                    output = None;
                }
                "sh" => output = Some(session.finish(block.text)),
                "text" => match output.take() {
                    Some(output) => assert!(
                        fits(block.text, &output),
                        "expected:\n{}\ngot:\n{output}",
                        block.text
                    ),
                    None => session.wait_for(block.text),
                },
                _ => {}
            }
        }
    }

    fn new() -> Self {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        let folder =
            std::env::temp_dir().join(format!("rtorb-tutorial-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder of our own");
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        std::os::unix::fs::symlink(examples, folder.join("examples")).expect("a new name");
        Self {
            folder,
            running: Vec::new(),
        }
    }

    /// Starts a command, and waits for its first line: then it is ready.
    fn start(&mut self, command: &str) {
        let output = self.folder.join(format!("output-{}", self.running.len()));
        let file = File::create(&output).expect("a file of our own");
        let process = self.command(command).stdout(file).spawn();
        let process = process.unwrap_or_else(|e| panic!("{command}: {e}"));
        self.running.push(Running { process, output });
        self.wait_for("...\n...");
    }

    /// Runs a command to its end; returns what it printed: its results, or else its errors.
    fn finish(&self, command: &str) -> String {
        let output: Output = self.command(command).output().expect("it runs");
        let shown = if output.stdout.is_empty() {
            output.stderr
        } else {
            output.stdout
        };
        String::from_utf8(shown).expect("it prints text")
    }

    /// Waits until the output of the last command that was left running fits the pattern.
    fn wait_for(&self, pattern: &str) {
        let running = self.running.last().expect("the page leaves one running");
        let end = Instant::now() + PATIENCE;
        loop {
            let output = fs::read_to_string(&running.output).expect("it is ours");
            if fits(pattern, &output) {
                return;
            }
            assert!(Instant::now() < end, "expected:\n{pattern}\ngot:\n{output}");
            sleep(Duration::from_millis(20));
        }
    }

    fn command(&self, line: &str) -> Command {
        let line = line.split(" #").next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let program = match words.next() {
            Some("rtorb") => rtorb(),
            Some("cargo") => {
                let name = words.by_ref().skip_while(|word| *word != "--bin").nth(1);
                beside(name.expect("the page names a program"))
            }
            other => panic!("{other:?} is neither rtorb nor cargo"),
        };
        let mut command = Command::new(program);
        command
            .args(words)
            .current_dir(&self.folder)
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null());
        command
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for running in &mut self.running {
            // Both fail when it has ended already.
            let _ = running.process.kill();
            let _ = running.process.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Whether a text is the pattern, in which `...` stands for anything.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split("...");
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(place) => rest = &rest[place + part.len()..],
            None => return false,
        }
    }
    true
}

/// A program in the folder of this package's programs.
fn beside(name: &str) -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_thermostat-server")).with_file_name(name)
}

/// The command `rtorb`, which the tests of the whole workspace build. Builds it if only this package is tested.
fn rtorb() -> PathBuf {
    let program = beside("rtorb");
    if !program.exists() {
        let is_release = program
            .components()
            .any(|part| part.as_os_str() == "release");
        let status = Command::new("cargo")
            .args(["build", "-p", "rtorb-cli"])
            .args(is_release.then_some("--release"))
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status();
        assert!(status.is_ok_and(|status| status.success()), "cargo build");
    }
    program
}

/// A command with this comment runs until the page ends.
const KEEP: &str = "# keep it running";
/// How long a command may take to print what the page says.
const PATIENCE: Duration = Duration::from_secs(30);
