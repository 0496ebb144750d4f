//! Runs the commands of a page in a shell, in a folder with the project. Servers run beside the commands after them.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::page::{Block, Dialogue, Page, project};
use crate::scratch::Scratch;

/// A shell in a folder of its own, in which the commands of one page run.
#[derive(Debug)]
pub struct Session {
    shell: Child,
    input: ChildStdin,
    folder: PathBuf,
    programs: PathBuf,
    count: usize,
    /// The commands that were left running.
    running: Vec<Run>,
    scratch: Scratch,
}

/// A command that the shell was given, and the files with what it printed.
#[derive(Clone, Debug)]
struct Run {
    command: String,
    files: PathBuf,
}

/// What a command did.
struct Outcome {
    command: String,
    status: i32,
    /// What it printed: its results, or else its errors.
    shown: String,
}

/// How a page is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading<'a> {
    /// The beginnings of commands that are not run.
    pub left_out: &'a [&'a str],
    /// The beginnings of commands whose exit status is a verdict about the host: 0 or 1.
    pub verdicts: &'a [&'a str],
    /// Whether each block of text is an output: of the command before it, or else of the last one that was left running. Otherwise
    /// a block of text is an output if it follows a command directly.
    pub all_texts: bool,
}

impl Session {
    /// Starts a shell. `programs` is the folder of the project's programs. A missing one is built there.
    ///
    /// # Panics
    ///
    /// If the host does not permit it.
    #[must_use]
    pub fn new(programs: &Path) -> Self {
        Self::start(Command::new("bash"), programs)
    }

    /// The same with ports, processes and a folder /run of its own: a page may use fixed ones. All names of hosts in `hosts`, which is in
    /// the form of /etc/hosts, are addresses of its loopback interface. Returns `None` if the host does not permit it, which takes root
    /// and iproute2.
    ///
    /// # Panics
    ///
    /// As [`Self::new`].
    #[must_use]
    pub fn isolated(programs: &Path, hosts: &str) -> Option<Self> {
        let mut trial = Command::new("unshare");
        trial.args(NAMESPACES).args(UP.split(' '));
        if !trial.output().is_ok_and(|it| it.status.success()) {
            return None;
        }
        let mut shell = Command::new("unshare");
        shell.args(NAMESPACES).arg("bash");
        let mut session = Self::start(shell, programs);
        let file = session.scratch.join("hosts");
        fs::write(&file, hosts).expect("a file of our own");
        session.prepare(&format!(
            "{UP} && mount -t tmpfs tmpfs /run && mount --bind {} /etc/hosts",
            file.display()
        ));
        Some(session)
    }

    fn start(mut shell: Command, programs: &Path) -> Self {
        let scratch = Scratch::new();
        let folder = scratch.join("rtorb");
        fs::create_dir(&folder).expect("a folder of our own");
        for name in ["crates", "examples"] {
            let place = project().canonicalize().expect("it exists").join(name);
            std::os::unix::fs::symlink(place, folder.join(name)).expect("a new name");
        }
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = shell
            .current_dir(&folder)
            .env("HOME", &*scratch)
            .env("PATH", format!("{}:{path}", programs.display()))
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::piped())
            .spawn()
            .expect("there is a shell");
        let input = shell.stdin.take().expect("it is a pipe");
        Self {
            shell,
            input,
            folder,
            programs: programs.to_owned(),
            count: 0,
            running: Vec::new(),
            scratch,
        }
    }

    /// Runs the commands of a page in order, and compares what they print with what the page says.
    ///
    /// # Panics
    ///
    /// If a command ends with another exit status, prints something else, or takes longer than [`PATIENCE`]; or if one that is kept running
    /// has ended.
    pub fn follow(&mut self, page: &Page, reading: &Reading<'_>) {
        self.write_files(page);
        let mut last = None;
        for block in page.blocks() {
            let dialogues = block.commands();
            if !dialogues.is_empty() {
                let line = format!("cd {}\n", self.folder.display());
                self.write(&line);
                last = None;
            }
            for dialogue in &dialogues {
                last = if reading.leaves_out(&dialogue.command) {
                    None
                } else {
                    self.run(dialogue, reading.has_verdict(&dialogue.command))
                };
            }
            if block.language == "text" && (reading.all_texts || block.follows_directly()) {
                match last.take() {
                    Some(outcome) => outcome.expect(block.text),
                    None => self.wait_for(block.text),
                }
            }
        }
        for place in 0..self.running.len() {
            self.prepare(&format!("kill -0 $kept_{place}"));
        }
    }

    /// Writes the files that the blocks of a page are.
    ///
    /// # Panics
    ///
    /// If it cannot write.
    pub fn write_files(&self, page: &Page) {
        for block in page.blocks() {
            if let Some(name) = block.file() {
                fs::write(self.folder.join(name), block.text).expect("a file of our own");
            }
        }
    }

    /// Runs a command that no page shows.
    ///
    /// # Panics
    ///
    /// If it fails.
    pub fn prepare(&mut self, command: &str) {
        for dialogue in (Block {
            language: "sh",
            text: command,
            before: "",
        })
        .commands()
        {
            self.run(&dialogue, false);
        }
    }

    /// Runs a command to its end, and compares what it printed and its exit status with what the page says. If the command is one
    /// that the reader keeps running, waits until it is ready: until its first line, and until the file of its `--ior-file`.
    fn run(&mut self, dialogue: &Dialogue, has_verdict: bool) -> Option<Outcome> {
        let command = self.of_this_session(&dialogue.command);
        if dialogue.is_kept_running() {
            let place = self.running.len();
            let run = self.enter(&format!("{command} & kept_{place}=$!"));
            self.running.push(run.clone());
            run.until_it_shows("...\n...");
            if let Some((_, rest)) = command.split_once("--ior-file ") {
                let name = rest.split_whitespace().next().unwrap_or_default();
                let file = self.folder.join(name);
                run.until("the file of its reference", || file.exists());
            }
            if let Some(text) = dialogue.printed() {
                run.until_it_shows(&format!("{text}\n..."));
            }
            return None;
        }
        let run = self.enter(&command);
        let outcome = run.outcome();
        if !(has_verdict && matches!(outcome.status, 0 | 1)) {
            outcome.expect_status(dialogue.status());
        }
        if let Some(text) = dialogue.printed() {
            outcome.expect(&format!("{text}\n"));
        }
        if let Some(output) = &dialogue.output {
            outcome.expect(output);
        }
        Some(outcome)
    }

    /// Waits until the output of the command that was left running last fits the pattern.
    fn wait_for(&self, pattern: &str) {
        let running = self.running.last().expect("the page leaves one running");
        running.until_it_shows(pattern);
    }

    /// A command with the program that `cargo run` would run, and with the reference that the last server printed.
    fn of_this_session(&self, command: &str) -> String {
        let mut command = match command.strip_prefix("cargo run -p ") {
            Some(rest) => self.without_cargo(rest),
            None => command.to_owned(),
        };
        if command.starts_with("rtorb ") {
            self.build("rtorb-cli", "rtorb");
        }
        if command.contains(REFERENCE) {
            let server = self.running.last().expect("a server runs");
            let output = server.shown();
            let reference = output
                .split_whitespace()
                .find(|it| it.starts_with("IOR:0100"));
            command = command.replace(REFERENCE, reference.expect("it printed a reference"));
        }
        command
    }

    /// The command for `cargo run -p` with these words.
    fn without_cargo(&self, words: &str) -> String {
        let (package, rest) = words.split_once(' ').unwrap_or((words, ""));
        let (name, rest) = match rest.strip_prefix("--bin ") {
            Some(rest) => rest.split_once(' ').unwrap_or((rest, "")),
            None => (only_program(package), rest),
        };
        self.build(package, name);
        format!("{name} {}", rest.strip_prefix("-- ").unwrap_or(rest))
    }

    /// Builds a program if it is missing: the tests of the whole workspace build all, but those of a single package do not.
    fn build(&self, package: &str, name: &str) {
        if self.programs.join(name).exists() {
            return;
        }
        let is_release = self.programs.ends_with("release");
        let status = Command::new("cargo")
            .args(["build", "-p", package])
            .args(is_release.then_some("--release"))
            .current_dir(project())
            .status();
        assert!(
            status.is_ok_and(|it| it.success()),
            "cargo build -p {package}"
        );
    }

    /// Gives a command to the shell.
    fn enter(&mut self, command: &str) -> Run {
        let files = self.scratch.join(format!("run-{}", self.count));
        self.count += 1;
        let place = files.display();
        self.write(&format!(
            "{{ {command}\n}} </dev/null >{place}.out 2>{place}.err; echo $? >{place}.new; mv {place}.new {place}.status\n"
        ));
        Run {
            command: command.to_owned(),
            files,
        }
    }

    fn write(&mut self, line: &str) {
        let written = self.input.write_all(line.as_bytes());
        written.expect("the shell reads");
    }
}

impl Reading<'_> {
    fn leaves_out(&self, command: &str) -> bool {
        self.left_out.iter().any(|it| command.starts_with(it))
    }

    fn has_verdict(&self, command: &str) -> bool {
        self.verdicts.iter().any(|it| command.starts_with(it))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // All of this fails if the shell has ended already. In a namespace of processes the others end with it.
        let _ = self.input.write_all(b"kill $(jobs -p) 2>/dev/null; exit\n");
        let end = Instant::now() + Duration::from_secs(2);
        while matches!(self.shell.try_wait(), Ok(None)) && Instant::now() < end {
            sleep(STEP);
        }
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

impl Run {
    fn outcome(&self) -> Outcome {
        let mut status = None;
        self.until("its end", || {
            let text = fs::read_to_string(self.files.with_extension("status"));
            status = text.ok().and_then(|text| text.trim().parse().ok());
            status.is_some()
        });
        Outcome {
            status: status.expect("it has ended"),
            shown: self.shown(),
            command: self.command.clone(),
        }
    }

    /// What it has printed: its results, or else its errors.
    fn shown(&self) -> String {
        let read =
            |ending| fs::read_to_string(self.files.with_extension(ending)).unwrap_or_default();
        let results = read("out");
        if results.is_empty() {
            read("err")
        } else {
            results
        }
    }

    fn until_it_shows(&self, pattern: &str) {
        self.until(pattern, || fits(pattern, &self.shown()));
    }

    fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let end = Instant::now() + PATIENCE;
        while !is_so() {
            let has_time = Instant::now() < end;
            assert!(
                has_time,
                "{}\nexpected:\n{what}\ngot:\n{}",
                self.command,
                self.shown()
            );
            sleep(STEP);
        }
    }
}

impl Outcome {
    fn expect_status(&self, status: i32) {
        let Self { command, shown, .. } = self;
        assert_eq!(self.status, status, "the exit status of {command}\n{shown}");
    }

    fn expect(&self, pattern: &str) {
        let Self { command, shown, .. } = self;
        assert!(
            fits(pattern, shown),
            "{command}\nexpected:\n{pattern}\ngot:\n{shown}"
        );
    }
}

/// The program of a package that has one.
fn only_program(package: &str) -> &str {
    match package {
        "rtorb-tango" => "tango-motor",
        other => other,
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

/// Where a page shortens a reference, a command has the one that the last server printed.
const REFERENCE: &str = "IOR:0100...";
/// Namespaces of the network, of mounts and of processes, which end with the first process in them.
const NAMESPACES: [&str; 6] = [
    "--net",
    "--mount",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
];
/// Brings the loopback interface up.
const UP: &str = "ip link set lo up";
/// How long a command may take to end, or to print what the page says.
const PATIENCE: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_millis(10);
