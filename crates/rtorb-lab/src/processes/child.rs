//! What the hidden subcommand `child` does: this program again, as one of the processes that are measured.
//!
//! ```text
//! rtorb child --parent PID [--cpu N] [--fifo PRIORITY] [--network PID] ROLE ARGUMENT...
//! ```
//!
//! A child first takes the placement of its options and enters the network namespace of the process that they name. Then it plays
//! its role: a server prints `ready ADDRESS` and serves until its standard input ends; a client prints `ready` and answers questions.
//! One that needs what the host forbids or lacks prints `refused WHY` instead.
//! A role stands beside the code that it runs; [`crate::roles`] lists them.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::str::FromStr;

use rtorb_host::placement::Placement;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::processes::tools::exec_tool;

/// What a child can be.
#[derive(Clone, Copy)]
pub struct Role {
    /// The word by which it is asked for.
    pub(crate) name: &'static str,
    /// Whether any laboratory may have an agent start it with these arguments.
    pub(crate) on_agent: fn(&[&str]) -> bool,
    /// Plays it with these arguments until it ends.
    pub(crate) play: fn(&[&str]) -> Result<(), String>,
}

impl Role {
    /// A role for processes of this host alone.
    pub(crate) const fn here(name: &'static str, play: fn(&[&str]) -> Result<(), String>) -> Self {
        Self {
            name,
            on_agent: |_| false,
            play,
        }
    }

    /// A server that an agent starts too, with arguments that `on_agent` allows.
    pub(crate) const fn on_agent(self, on_agent: fn(&[&str]) -> bool) -> Self {
        Self { on_agent, ..self }
    }
}

impl fmt::Debug for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

/// The roles that run no code of an experiment.
pub(crate) const ROLES: &[Role] = &[
    Role::here("exec", |words| {
        let ([program], others) = arguments_and_rest(words)?;
        Err(Command::new(program).args(others).exec().to_string())
    }),
    Role::here("tool", |words| {
        let ([program], others) = arguments_and_rest(words)?;
        Err(exec_tool(program, others).to_string())
    }),
];

/// Finds the role that the arguments after `child` name, and plays it. Errors go to the laboratory on standard output.
pub(crate) fn run<'a>(roles: impl Iterator<Item = &'a Role>, arguments: &[String]) -> ExitCode {
    match parse(arguments)
        .and_then(|(beginning, role)| beginning.take().and_then(|()| play(roles, role)))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The laboratory may be gone, and then nobody wants to hear it.
            let _ = writeln!(io::stdout(), "error {}", error.replace('\n', " "));
            ExitCode::FAILURE
        }
    }
}

/// What a child does before it plays its role.
#[derive(Debug, Default, PartialEq, Eq)]
struct Beginning {
    parent: i32,
    placement: Placement,
    /// A process whose network namespace it enters.
    network: Option<i32>,
}

fn parse(arguments: &[String]) -> Result<(Beginning, &[String]), String> {
    let mut beginning = Beginning::default();
    let placement = &mut beginning.placement;
    let mut rest = arguments;
    while let [option, value, tail @ ..] = rest
        && option.starts_with("--")
    {
        let number: i32 = value
            .parse()
            .map_err(|_| format!("{option} takes a number, not {value:?}"))?;
        match option.as_str() {
            "--parent" => beginning.parent = number,
            "--network" => beginning.network = Some(number),
            "--cpu" => placement.cpu = usize::try_from(number).ok(),
            "--fifo" => placement.fifo = u8::try_from(number).ok(),
            _ => return Err(format!("a child has no option {option}")),
        }
        rest = tail;
    }
    Ok((beginning, rest))
}

impl Beginning {
    /// Ties this process's life to the laboratory's, enters the namespace, and takes the placement. All of it survives `exec`.
    fn take(&self) -> Result<(), String> {
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.to_string())?;
        // It may have died before the line above; then nobody would ever send the signal.
        if getppid() != Pid::from_raw(self.parent) {
            return Err("the laboratory that started this process is gone".to_owned());
        }
        self.network.map_or(Ok(()), enter_network)?;
        self.placement.apply()
    }
}

/// Moves this thread, the only one yet, into the network namespace of a process. Tells the laboratory if the host forbids it.
fn enter_network(process: i32) -> Result<(), String> {
    let path = format!("/proc/{process}/ns/net");
    let entered = File::open(&path).and_then(|namespace| {
        let kind = Some(LinkNameSpaceType::Network);
        Ok(move_into_link_name_space(namespace.as_fd(), kind)?)
    });
    entered.map_err(|error| {
        let what = format!("{path} cannot be entered: {error}");
        if is_forbidden(&error) {
            refused(&what);
        }
        what
    })
}

fn is_forbidden(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::PermissionDenied | ErrorKind::Unsupported
    )
}

fn play<'a>(mut roles: impl Iterator<Item = &'a Role>, role: &[String]) -> Result<(), String> {
    let words: Vec<&str> = role.iter().map(String::as_str).collect();
    let Some((name, arguments)) = words.split_first() else {
        return Err("a child has a role".to_owned());
    };
    let role = roles.find(|role| role.name == *name);
    let role = role.ok_or_else(|| format!("a child has no role {name:?}"))?;
    (role.play)(arguments).map_err(|error| format!("{}: {error}", words.join(" ")))
}

/// A number among the words of a role or a question.
pub(crate) fn number<N: FromStr<Err: fmt::Display>>(word: &str) -> Result<N, String> {
    word.parse()
        .map_err(|error| format!("not a number: {word:?}: {error}"))
}

/// The word of a role for a value: JSON.
pub(crate) fn word(value: impl Serialize) -> String {
    json!(value).to_string()
}

/// The value of a [`word`].
pub(crate) fn value<V: DeserializeOwned>(word: &str) -> Result<V, String> {
    serde_json::from_str(word).map_err(|error| format!("not understood: {word:?}: {error}"))
}

/// Whether a server of this endpoint listens over TCP, as those of an agent do.
pub(crate) fn is_tcp(endpoint: &str) -> bool {
    endpoint.starts_with("iiop://")
}

/// Tells the laboratory that this process can be used.
pub(crate) fn ready(text: &str) {
    tell("ready", text);
}

/// Tells the laboratory that the host forbids or lacks what this process needs, before it ends: what needs it is not measured.
pub(crate) fn refused(what: &str) {
    tell("refused", what);
}

fn tell(word: &str, text: &str) {
    // The laboratory may be gone; the death signal then ends this process.
    let _ = writeln!(io::stdout(), "{word} {text}");
    let _ = io::stdout().flush();
}

/// Locks the memory of this process. If the host refuses, its findings say so.
pub(crate) fn lock_memory() {
    let _ = rtorb_os::memory::lock_all();
}

/// Ends this process when the laboratory closes its input, whatever the role is doing.
pub(crate) fn end_with_input() -> Result<(), String> {
    let watch = || {
        let mut ignored = [0; 64];
        while matches!(io::stdin().read(&mut ignored), Ok(count) if count > 0) {}
        std::process::exit(0);
    };
    rtorb_os::thread::spawn("end-of-input", &Default::default(), watch)
        .map(drop)
        .map_err(|error| error.to_string())
}

/// Returns the arguments of a role that takes exactly `N`.
pub(crate) fn arguments<'a, const N: usize>(words: &[&'a str]) -> Result<[&'a str; N], String> {
    words.try_into().map_err(|_| NOT_ITS_ARGUMENTS.to_owned())
}

/// The first arguments of a role, and the others.
pub(crate) fn arguments_and_rest<'w, 'a, const N: usize>(
    words: &'w [&'a str],
) -> Result<([&'a str; N], &'w [&'a str]), String> {
    let (first, rest) = words.split_first_chunk().ok_or(NOT_ITS_ARGUMENTS)?;
    Ok((*first, rest))
}

/// Why a role is not played.
pub(crate) const NOT_ITS_ARGUMENTS: &str = "these are not its arguments";

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn options_come_before_the_role() {
        let arguments = words("--parent 7 --cpu 1 --fifo 50 --network 8 exec true --fifo 3");
        let (beginning, role) = parse(&arguments).unwrap();
        let expected = Beginning {
            parent: 7,
            placement: Placement {
                cpu: Some(1),
                fifo: Some(50),
            },
            network: Some(8),
        };
        assert_eq!(beginning, expected);
        assert_eq!(role, words("exec true --fifo 3"));
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(
            parse(&words("--cpu one raw-server"))
                .unwrap_err()
                .contains("--cpu")
        );
        assert!(
            parse(&words("--color 1 raw-server"))
                .unwrap_err()
                .contains("--color")
        );
        assert!(enter_network(-1).unwrap_err().contains("/proc/-1/ns/net"));
        let why = play(ROLES.iter(), &words("pigeon")).unwrap_err();
        assert!(why.contains("pigeon"), "{why}");
    }

    #[test]
    fn only_the_host_refuses_a_network() {
        let of = |errno: Errno| is_forbidden(&errno.into());
        assert!(of(Errno::PERM) && of(Errno::ACCESS) && of(Errno::NOSYS));
        // Its process is gone, or it is no namespace.
        assert!(!of(Errno::NOENT) && !of(Errno::INVAL));
    }

    #[test]
    fn a_child_of_nobody_does_not_begin() {
        let of_nobody = Beginning {
            parent: i32::MAX,
            ..Beginning::default()
        };
        assert!(of_nobody.take().unwrap_err().contains("gone"));
        set_parent_process_death_signal(None).unwrap();
    }
}
