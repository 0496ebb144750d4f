//! `cargo xtask instructions`: counts the instructions of a call and compares them with `instructions.toml`.
//!
//! A count does not depend on the load of the machine, so a change of 2 % is a change of the code.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use xshell::{Shell, cmd};

use crate::metadata::target_folder;
use crate::valgrind::Counted;

/// Counts, and prints the counts as JSON or compared with the baseline; fails if a call costs more than the baseline allows. An update makes
/// the counts the baseline, which keeps what this host cannot count.
pub(crate) fn run(sh: &Shell, json: bool, update: bool) -> anyhow::Result<()> {
    let (calls, uncounted) = count(sh)?;
    let mut counted = Counts {
        compiler: cmd!(sh, "rustc --version").quiet().read()?,
        calls,
    };
    if update {
        if !uncounted.is_empty() && sh.path_exists(FILE) {
            let before: Counts = toml::from_str(&sh.read_file(FILE)?).context(FILE)?;
            counted.keep(&uncounted, before);
        }
        sh.write_file(FILE, counted.to_toml())?;
        println!("{FILE}: {} counts", counted.calls.len());
        return Ok(());
    }
    let text = sh.read_file(FILE);
    let text = text.context("record the file with `cargo xtask instructions --update`")?;
    let baseline: Counts = toml::from_str(&text).context(FILE)?;
    if json {
        println!("{}", serde_json::to_string_pretty(&counted)?);
    } else {
        print!("{}", table(&baseline, &counted));
    }
    judge(&baseline, &counted)
}

/// Fails if a count is too high or has no record.
fn judge(baseline: &Counts, counted: &Counts) -> anyhow::Result<()> {
    let unrecorded = unrecorded(baseline, counted);
    let beyond = beyond(baseline, counted);
    if !beyond.is_empty() && baseline.compiler != counted.compiler {
        eprintln!(
            "{FILE} was recorded with {}; this is {}. Record it anew at a commit that is known to be good.",
            baseline.compiler, counted.compiler
        );
    }
    let mut faults = Vec::new();
    if !unrecorded.is_empty() {
        faults.push(format!(
            "no record yet in {FILE}, so nothing to compare with:\n  {}\nRecord them with `cargo xtask instructions --update`.",
            unrecorded.join("\n  ")
        ));
    }
    if !beyond.is_empty() {
        faults.push(format!(
            "{}\nMake the call cheaper: `valgrind --tool=callgrind` on target/release/{PROGRAM} (for started calls and deferred replies, \
             {LATER_PROGRAM}) shows where the instructions are. \
             If the cost is worth it, run `cargo xtask instructions --update` and give the reason in the commit message.",
            beyond.join("\n")
        ));
    }
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(())
}

/// The instructions of every kind of call, as they stand in the file.
#[derive(Debug, Deserialize, Serialize)]
struct Counts {
    /// The compiler that built the program.
    compiler: String,
    /// By transport, dispatch and operation.
    calls: BTreeMap<String, Count>,
}

impl Counts {
    /// Takes over earlier counts of ways that were not counted.
    fn keep(&mut self, uncounted: &[String], before: Self) {
        let kept = before.calls.into_iter().filter(|(call, _)| {
            let mut ways = uncounted.iter();
            ways.any(|way| {
                call.strip_prefix(way)
                    .is_some_and(|it| it.starts_with(", "))
            })
        });
        self.calls.extend(kept);
    }

    fn to_toml(&self) -> String {
        let mut text = format!(
            "# Instructions a call in user mode, written by `cargo xtask instructions --update`.\ncompiler = \"{}\"\n\n[calls]\n",
            self.compiler
        );
        for (call, count) in &self.calls {
            let Count { client, server } = count;
            writeln!(
                text,
                "\"{call}\" = {{ client = {client}, server = {server} }}"
            )
            .expect("a string takes what is written");
        }
        text
    }
}

/// The instructions of one call; those of the server are 0 if it is collocated.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
struct Count {
    client: u64,
    server: u64,
}

impl Count {
    fn sides(self) -> [(&'static str, u64); 2] {
        [("client", self.client), ("server", self.server)]
    }
}

/// What the two processes of a row do.
#[derive(Clone, Copy, Debug)]
struct Way {
    name: &'static str,
    dispatch: &'static str,
    /// The program of the server, whose command is `serve`.
    server: &'static str,
    client: ClientRole,
    /// Whether both ends record their calls.
    is_recorded: bool,
}

/// A client's program and its command.
#[derive(Clone, Copy, Debug)]
struct ClientRole {
    program: &'static str,
    command: &'static str,
}

const BLOCKING: ClientRole = ClientRole {
    program: PROGRAM,
    command: "call",
};
const BY_DEADLINE: ClientRole = ClientRole {
    program: PROGRAM,
    command: "call-by-deadline",
};
const STARTED: ClientRole = ClientRole {
    program: LATER_PROGRAM,
    command: "call",
};

const DEFAULT: Way = Way {
    name: "default",
    dispatch: "thread_per_connection",
    server: PROGRAM,
    client: BLOCKING,
    is_recorded: false,
};
const LANES: Way = Way {
    name: "lanes",
    dispatch: "lanes",
    ..DEFAULT
};

/// The rows of each transport.
const WAYS: [Way; 8] = [
    DEFAULT,
    LANES,
    Way {
        name: "default, deadline",
        client: BY_DEADLINE,
        ..DEFAULT
    },
    Way {
        name: "lanes, deadline",
        client: BY_DEADLINE,
        ..LANES
    },
    Way {
        name: "default, recorded",
        is_recorded: true,
        ..DEFAULT
    },
    Way {
        name: "lanes, recorded",
        is_recorded: true,
        ..LANES
    },
    Way {
        name: "default, started",
        client: STARTED,
        ..DEFAULT
    },
    Way {
        name: "default, deferred",
        server: LATER_PROGRAM,
        ..DEFAULT
    },
];

/// Counts the instructions of each call. Returns the ways, too, that this host cannot count.
fn count(sh: &Shell) -> anyhow::Result<(BTreeMap<String, Count>, Vec<String>)> {
    let programs = build(sh)?;
    let scratch = sh.create_dir(target_folder(sh)?.join("instructions"))?;
    let (mut calls, mut uncounted) = (BTreeMap::new(), Vec::new());
    for transport in ["tcp", "unix"] {
        for way in WAYS {
            let name = format!("{transport}, {}", way.name);
            if way.is_recorded && !has_counter_clock() {
                // The recorder then reads the clock by system calls, which is another count.
                eprintln!("{name}: not counted, the clock source of this host is not `tsc`");
                uncounted.push(name);
                continue;
            }
            let pair = Pair {
                sh,
                programs: &programs,
                scratch: &scratch,
                transport,
                way,
            };
            calls.extend(of_each_operation(&name, |calls| pair.count(calls))?);
        }
    }
    for (name, way) in [
        ("collocated", "direct"),
        ("collocated requests", "requests"),
    ] {
        calls.extend(of_each_operation(name, |calls| {
            count_collocated(&programs.join(PROGRAM), &scratch, way, calls)
        })?);
    }
    Ok((calls, uncounted))
}

/// The instructions of one call of each operation. `count` counts the instructions of all calls, given the number of each operation.
fn of_each_operation(
    way: &str,
    count: impl Fn([u64; 3]) -> anyhow::Result<Count>,
) -> anyhow::Result<Vec<(String, Count)>> {
    let context = || way.to_owned();
    let base = count([CALLS; 3]).with_context(context)?;
    let operations = ["void", "long", "1 KiB"].into_iter().enumerate();
    let of_one = |(at, operation): (usize, &str)| {
        let mut twice = [CALLS; 3];
        twice[at] *= 2;
        let twice = count(twice).with_context(context)?;
        let a_call = Count {
            client: a_call(base.client, twice.client).with_context(context)?,
            server: match base.server {
                0 => 0,
                base => a_call(base, twice.server).with_context(context)?,
            },
        };
        Ok((format!("{way}, {operation}"), a_call))
    };
    operations.map(of_one).collect()
}

/// All instructions of a process that makes these numbers of calls to its own object: the least of two runs. There is no server.
fn count_collocated(
    program: &Path,
    scratch: &Path,
    way: &str,
    calls: [u64; 3],
) -> anyhow::Result<Count> {
    let calls = calls.map(|n| n.to_string());
    let arguments = ["call-own", way, &calls[0], &calls[1], &calls[2]];
    let count_once = || {
        let process = Counted::start(program, &arguments, scratch.join("own.log"))?;
        process.instructions().context("collocated")
    };
    Ok(Count {
        client: count_once()?.min(count_once()?),
        server: 0,
    })
}

/// The instructions of one call, from the difference that N calls more make. Start, warm-up and end cancel.
fn a_call(once: u64, twice: u64) -> anyhow::Result<u64> {
    ensure!(
        twice > once,
        "not measured: {CALLS} calls took {once} instructions, and twice as many took {twice}; run it again on a quiet machine"
    );
    Ok((twice - once).div_ceil(CALLS))
}

/// A server and a client to count.
struct Pair<'a> {
    sh: &'a Shell,
    /// The folder of the programs.
    programs: &'a Path,
    scratch: &'a Path,
    transport: &'a str,
    way: Way,
}

impl Pair<'_> {
    /// All instructions of both processes for these numbers of calls: the least of two runs, because threads that meet in an unusual
    /// order only add instructions.
    fn count(&self, calls: [u64; 3]) -> anyhow::Result<Count> {
        let (one, other) = (self.count_once(calls)?, self.count_once(calls)?);
        Ok(Count {
            client: one.client.min(other.client),
            server: one.server.min(other.server),
        })
    }

    fn count_once(&self, calls: [u64; 3]) -> anyhow::Result<Count> {
        let [reference, socket, served, called] =
            ["reference", "socket", "server.log", "client.log"].map(|name| self.scratch.join(name));
        for old in [&reference, &socket] {
            // It is there only if an earlier run was interrupted.
            self.sh.remove_path(old)?;
        }
        let endpoint = match self.transport {
            "tcp" => "iiop://127.0.0.1:0".to_owned(),
            _ => format!("uiop://{}", socket.display()),
        };
        let ready = reference.display().to_string();
        let Way { server, client, .. } = self.way;
        let options: &[&str] = if self.way.is_recorded {
            &["-ORBRecorder", "yes"]
        } else {
            &[]
        };
        let serve = ["serve", &ready, &endpoint, self.way.dispatch];
        let arguments = [&serve[..], options].concat();
        let mut server = Counted::start(&self.programs.join(server), &arguments, served)?;
        let written = server.until_written(&reference).context("server")?;
        let calls = calls.map(|n| n.to_string());
        let call = [client.command, &written, &calls[0], &calls[1], &calls[2]];
        let arguments = [&call[..], options].concat();
        let client = Counted::start(&self.programs.join(client.program), &arguments, called)?;
        let count = Count {
            client: client.instructions().context("client")?,
            server: server.instructions().context("server")?,
        };
        Ok(count)
    }
}

/// Returns true if the kernel's clock is the time stamp counter, which the recorder reads then.
fn has_counter_clock() -> bool {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    std::fs::read_to_string(path).is_ok_and(|source| source.trim() == "tsc")
}

/// Builds the measured programs as a release is built, and returns their folder.
fn build(sh: &Shell) -> anyhow::Result<PathBuf> {
    cmd!(sh, "cargo build --release --package {PACKAGE}").run()?;
    Ok(target_folder(sh)?.join("release"))
}

fn table(baseline: &Counts, counted: &Counts) -> String {
    let mut text = format!(
        "{:<32}{:>10}{:>10}{:>9}{:>10}{:>10}{:>9}\n",
        "instructions a call", "client", "baseline", "change", "server", "baseline", "change"
    );
    for (call, now) in &counted.calls {
        write!(text, "{call:<32}").expect("a string takes what is written");
        let before = baseline.calls.get(call).map(|count| count.sides());
        for (at, (_, now)) in now.sides().into_iter().enumerate() {
            match before.map(|sides| sides[at].1) {
                Some(before) => write!(text, "{now:>10}{before:>10}{:>+8.2}%", change(before, now)),
                None => write!(text, "{now:>10}{:>10}{:>9}", "no record", "-"),
            }
            .expect("a string takes what is written");
        }
        text.push('\n');
    }
    text
}

/// The calls that the baseline does not have.
fn unrecorded<'c>(baseline: &Counts, counted: &'c Counts) -> Vec<&'c str> {
    let calls = counted.calls.keys().map(String::as_str);
    calls
        .filter(|call| !baseline.calls.contains_key(*call))
        .collect()
}

/// A line for each count that is too high.
fn beyond(baseline: &Counts, counted: &Counts) -> Vec<String> {
    let mut beyond = Vec::new();
    for (call, now) in &counted.calls {
        let Some(before) = baseline.calls.get(call) else {
            continue;
        };
        for ((side, before), (_, now)) in before.sides().into_iter().zip(now.sides()) {
            if now * 100 > before * (100 + PERCENT_MAX) {
                let change = change(before, now);
                beyond.push(format!(
                    "{call}, {side}: {now} instructions, {change:+.2} % of {before}; {PERCENT_MAX} % are allowed"
                ));
            }
        }
    }
    beyond
}

fn change(before: u64, now: u64) -> f64 {
    if before == now {
        return 0.0;
    }
    (now as f64 / before as f64 - 1.0) * 100.0
}

const FILE: &str = "instructions.toml";
const PACKAGE: &str = "rtorb-instructions";
/// Blocking calls, and replies that a servant returns.
const PROGRAM: &str = "rtorb-instructions";
/// Started calls and deferred replies, whose code must not change the counts of the other program.
const LATER_PROGRAM: &str = "rtorb-instructions-later";
/// N: the difference between N and 2 N calls is that of N calls.
const CALLS: u64 = 1000;
/// The growth that fails.
const PERCENT_MAX: u64 = 2;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{CALLS, Count, Counts, WAYS, a_call, beyond, judge, table, unrecorded};

    fn counts(client: u64, server: u64) -> Counts {
        let call = ("tcp, default, void".to_owned(), Count { client, server });
        Counts {
            compiler: "rustc".to_owned(),
            calls: BTreeMap::from([call]),
        }
    }

    #[test]
    fn growth_beyond_two_percent_fails_on_either_side() {
        let baseline = counts(1000, 1000);
        assert!(beyond(&baseline, &counts(1020, 900)).is_empty());
        assert_eq!(beyond(&baseline, &counts(1021, 1021)).len(), 2);
    }

    #[test]
    fn a_call_without_record_fails_and_is_told_from_one_that_costs_more() {
        let mut baseline = counts(1000, 1000);
        baseline.calls.clear();
        let counted = counts(1, 1);
        assert_eq!(unrecorded(&baseline, &counted), ["tcp, default, void"]);
        assert!(beyond(&baseline, &counted).is_empty());
        let fault = judge(&baseline, &counted).expect_err("it has no record");
        let fault = fault.to_string();
        assert!(fault.starts_with("no record yet"), "{fault}");
        assert!(fault.contains("\n  tcp, default, void\n"), "{fault}");
        assert!(fault.contains("--update"), "{fault}");
        assert!(!fault.contains("cheaper"), "{fault}");
        let row = table(&baseline, &counted);
        let row = row.lines().last().expect("a row");
        assert_eq!(row.matches("no record").count(), 2, "{row}");
        assert!(!table(&counted, &counted).contains("no record"));
        assert!(judge(&counted, &counted).is_ok());
    }

    #[test]
    fn every_row_has_a_name_of_its_own() {
        for (at, way) in WAYS.iter().enumerate() {
            let is_taken = WAYS[..at].iter().any(|other| other.name == way.name);
            assert!(!is_taken, "{way:?}");
        }
    }

    #[test]
    fn calls_that_cost_nothing_were_not_measured() {
        assert_eq!(a_call(10, 10 + CALLS * 7).expect("a count"), 7);
        assert!(a_call(10, 10).is_err());
        assert!(a_call(10, 9).is_err());
    }

    #[test]
    fn an_update_keeps_what_this_host_cannot_count_and_nothing_else() {
        let count = |client| Count { client, server: 1 };
        let calls = |calls: &[(&str, u64)]| -> BTreeMap<String, Count> {
            let calls = calls.iter();
            calls
                .map(|(call, client)| ((*call).to_owned(), count(*client)))
                .collect()
        };
        let mut counted = Counts {
            calls: calls(&[("tcp, default, void", 2)]),
            ..counts(0, 0)
        };
        let before = Counts {
            calls: calls(&[
                ("tcp, default, void", 3),
                ("tcp, default, recorded, void", 4),
                ("tcp, gone, void", 5),
                ("unix, default, recorded, void", 6),
            ]),
            ..counts(0, 0)
        };
        let uncounted = ["tcp, default, recorded", "unix, default, recorded"];
        counted.keep(&uncounted.map(str::to_owned), before);
        let expected = calls(&[
            ("tcp, default, recorded, void", 4),
            ("tcp, default, void", 2),
            ("unix, default, recorded, void", 6),
        ]);
        assert_eq!(counted.calls, expected);
    }

    #[test]
    fn what_is_written_is_read() {
        let counted = counts(1, 2);
        let read: Counts = toml::from_str(&counted.to_toml()).expect("TOML");
        assert_eq!(read.calls, counted.calls);
    }
}
