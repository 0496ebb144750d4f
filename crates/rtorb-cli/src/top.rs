//! `rtorb top`: what running processes call and serve, live.

use std::cmp::Reverse;
use std::fs;
use std::io::{self, IsTerminal, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;
use indicatif::HumanBytes;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Style, Stylize as _};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Paragraph, Row, Table};
use ratatui::{DefaultTerminal, Frame};
use rtorb::recorder::ProcessSnapshot;
use rtorb_host::connections::{self, ConnectionRow, TcpCounters};
use rtorb_recording::counters::{LaneRow, OperationRow, ProcessCounters, UnservedRequests};
use rtorb_sched::model::rounded;
use rtorb_services::recorder::{self, Recorder};
use serde::Serialize;

use crate::orb_options::usage;
use crate::output::{line, print_json, printable};
use crate::reference::{self, CallOptions};
use crate::trace::processes;

/// Show what running processes call and serve: calls a second, times, failures and queues of each operation.
///
/// The processes have -ORBRecorder yes among the options of their ORBs. They are neither stopped nor delayed: their recorders are memory
/// that this command reads. A process on another host is called for its counters: it serves them by rtorb_services::recorder, as serve,
/// record, naming serve, events serve and scheduling serve do. Times are the upper ends of buckets, at most a quarter above the times themselves; the longest is exact.
///
/// The connections of a process of this host are those that the kernel knows: the bytes in each direction and the segments sent again over TCP, and
/// the bytes that wait in its sockets. `rtorb events list` shows the counters of an event channel.
///
/// Exit status 0: shown. 1: no such process, or one without a recorder; the call failed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Top {
    /// Process id, the name of processes, or a reference such as corbaloc::HOST:PORT/Recorder; without any, all processes of this host
    /// that have a recorder.
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// Print the counters since the recorders were started, and end.
    #[arg(long)]
    once: bool,
    /// Print a JSON array with an object for each process, and end; with --once.
    #[arg(long, requires = "once")]
    json: bool,
    /// Seconds between two looks.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    every: u64,
    #[command(flatten)]
    calling: CallOptions,
}

impl Top {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        if !self.once && !stdout().is_terminal() {
            return Err(usage(
                "the live screen needs a terminal: print the counters with --once, or --once --json",
            ));
        }
        let mut watched = self.watched()?;
        if self.once {
            let looks = watched.look()?;
            if self.json {
                print_json(&looks)?;
            } else {
                looks.iter().flat_map(lines).try_for_each(line)?;
            }
        } else {
            let ended = show(&mut watched, Duration::from_secs(self.every));
            ratatui::restore();
            ended?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The processes that are watched, each with the last look at it.
struct Watched {
    processes: Vec<(CounterSource, Option<ProcessSnapshot>)>,
}

/// Where the counters of a process come from.
enum CounterSource {
    /// The memory of a process of this host.
    Memory(u32),
    /// An object of the process.
    Object(Recorder),
}

/// A look at a process.
#[derive(Serialize)]
struct Look {
    #[serde(flatten)]
    counters: ProcessCounters,
    /// Its TCP and UNIX connections; `None` if they are not known.
    connections: Option<Vec<ConnectionRow>>,
    /// Why they are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    connections_unknown: Option<String>,
}

impl CounterSource {
    /// Returns the process, if it is one of this host.
    fn local(&self) -> Option<u32> {
        match self {
            Self::Memory(process) => Some(*process),
            Self::Object(_) => None,
        }
    }

    fn read(&self) -> anyhow::Result<ProcessSnapshot> {
        Ok(match self {
            Self::Memory(process) => ProcessSnapshot::counters_of_process(*process)?,
            Self::Object(recorder) => recorder::counters(recorder)?,
        })
    }

    /// Returns true for a process of this host that has ended.
    fn has_ended(&self) -> bool {
        match self {
            Self::Memory(process) => is_gone(&fs::read_link(format!("/proc/{process}/exe"))),
            Self::Object(_) => false,
        }
    }
}

/// Returns true if the process has ended. Its folder stays in /proc until its parent waits for it, but then has no program. For the process
/// of another user the kernel refuses the answer, and that is no end.
fn is_gone(program: &io::Result<PathBuf>) -> bool {
    let is_gone = |error: &io::Error| error.kind() != io::ErrorKind::PermissionDenied;
    program.as_ref().is_err_and(is_gone)
}

impl Top {
    /// Returns the processes, each of which was read once. Without targets, these are the ones that can be read: others have ended meanwhile,
    /// have another version of the recorder, or only a file of its name.
    fn watched(&self) -> anyhow::Result<Watched> {
        let (references, targets): (Vec<_>, Vec<_>) = self
            .targets
            .iter()
            .cloned()
            .partition(|it| it.contains(':'));
        let found = if self.targets.is_empty() {
            ProcessSnapshot::processes()
        } else {
            processes(&targets)?
        };
        let mut sources: Vec<CounterSource> =
            found.into_iter().map(CounterSource::Memory).collect();
        if !references.is_empty() {
            let orb = self.calling.orb()?;
            for text in &references {
                let object = reference::object(&orb, text)?;
                sources.push(CounterSource::Object(Recorder::unchecked_narrow(object)));
            }
        }
        if self.targets.is_empty() {
            sources.retain(|source| source.read().is_ok());
        } else {
            sources
                .iter()
                .try_for_each(|source| source.read().map(drop))?;
        }
        if sources.is_empty() {
            bail!("no process that you may read has a recorder: start one with -ORBRecorder yes");
        }
        let unread = sources.into_iter().map(|source| (source, None));
        Ok(Watched {
            processes: unread.collect(),
        })
    }
}

impl Watched {
    /// Returns the counters since the look before. What cannot be read is left out; it is an error if nothing can, unless all processes
    /// have ended.
    fn look(&mut self) -> anyhow::Result<Vec<Look>> {
        let mut looks = Vec::with_capacity(self.processes.len());
        let mut failed = None;
        let local = self.processes.iter();
        let local: Vec<u32> = local.filter_map(|(source, _)| source.local()).collect();
        let mut of_local = connections::of_processes(&local).into_iter();
        for (source, before) in &mut self.processes {
            let known = source.local().and_then(|_| of_local.next());
            let connections = match known {
                Some(known) => known.map_err(|error| error.to_string()),
                None => Err("only the host of the process can tell".to_owned()),
            };
            match source.read() {
                Ok(now) => {
                    looks.push(Look {
                        counters: ProcessCounters::of(&now, before.as_ref()),
                        connections_unknown: connections.as_ref().err().cloned(),
                        connections: connections.ok(),
                    });
                    *before = Some(now);
                }
                Err(_) if source.has_ended() => {}
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) if looks.is_empty() => Err(error),
            _ => Ok(looks),
        }
    }
}

/// Shows the counters until somebody ends it by `q`, Escape or Ctrl-C, or all processes have ended.
fn show(watched: &mut Watched, every: Duration) -> anyhow::Result<()> {
    let mut terminal = ratatui::try_init()?;
    loop {
        let looks = watched.look()?;
        if looks.is_empty() {
            return Ok(());
        }
        terminal.draw(|frame| draw(frame, &looks))?;
        if is_ended_within(every, &mut terminal, &looks)? {
            return Ok(());
        }
    }
}

/// Waits for the next look. Returns true if somebody ends the command.
fn is_ended_within(
    every: Duration,
    terminal: &mut DefaultTerminal,
    looks: &[Look],
) -> anyhow::Result<bool> {
    let until = Instant::now() + every;
    while let left = until.saturating_duration_since(Instant::now())
        && !left.is_zero()
    {
        if event::poll(left)? {
            match event::read()? {
                Event::Key(key) if ends(key) => return Ok(true),
                Event::Resize(..) => {
                    terminal.draw(|frame| draw(frame, looks))?;
                }
                _ => {}
            }
        }
    }
    Ok(false)
}

fn ends(key: KeyEvent) -> bool {
    let is_interrupt =
        key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    is_interrupt || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
}

/// Draws the processes below each other, as far as there is room.
fn draw(frame: &mut Frame<'_>, looks: &[Look]) {
    let height = |lines: usize| u16::try_from(lines).unwrap_or(u16::MAX);
    let parts: Vec<[Vec<String>; 2]> = looks
        .iter()
        .map(|look| [titles(&look.counters), connection_lines(look)])
        .collect();
    // A line has the names of columns.
    let rows = |look: &Look| look.counters.operations.len() + 1;
    let heights = looks
        .iter()
        .zip(&parts)
        .map(|(look, [titles, connections])| {
            // And a free line.
            Constraint::Max(height(titles.len() + rows(look) + connections.len() + 1))
        });
    let constraints: Vec<Constraint> = heights
        .chain([Constraint::Fill(1), Constraint::Length(1)])
        .collect();
    let areas = Layout::vertical(constraints).split(frame.area());
    for ((look, [titles, connections]), area) in looks.iter().zip(parts).zip(areas.iter()) {
        // Without room for all, the connections are cut first.
        let [title, table, below] = Layout::vertical([
            Constraint::Length(height(titles.len())),
            Constraint::Length(height(rows(look))),
            Constraint::Fill(1),
        ])
        .areas(*area);
        let lines = |texts: Vec<String>| texts.into_iter().map(Line::from).collect::<Vec<_>>();
        let mut titles = lines(titles);
        if let Some(heading) = titles.first_mut() {
            *heading = core::mem::take(heading).bold();
        }
        frame.render_widget(Paragraph::new(titles), title);
        frame.render_widget(operations(&look.counters), table);
        frame.render_widget(Paragraph::new(lines(connections)), below);
    }
    if let Some(last) = areas.last() {
        frame.render_widget(Paragraph::new("q ends").dim(), *last);
    }
}

/// Returns the lines above the operations of a process: its heading and its lanes.
fn titles(process: &ProcessCounters) -> Vec<String> {
    core::iter::once(heading(process))
        .chain(process.lanes.iter().map(lane))
        .collect()
}

/// The most connections that are shown. JSON has all.
const CONNECTIONS_SHOWN: usize = 8;

/// Describes the connections with the most bytes, and counts the others.
fn connection_lines(look: &Look) -> Vec<String> {
    let Some(connections) = &look.connections else {
        let unknown = look.connections_unknown.as_deref().unwrap_or_default();
        return vec![format!("  connections are not known: {unknown}")];
    };
    let mut busiest: Vec<&ConnectionRow> = connections.iter().collect();
    busiest.sort_by_key(|row| Reverse(row.bytes()));
    let more = busiest.len().saturating_sub(CONNECTIONS_SHOWN);
    busiest.truncate(CONNECTIONS_SHOWN);
    let more = (more > 0).then(|| format!("  and {more} connections more"));
    busiest.into_iter().map(connection).chain(more).collect()
}

/// Describes a connection in a line.
fn connection(row: &ConnectionRow) -> String {
    let ConnectionRow {
        own,
        peer,
        unread_bytes,
        unacknowledged_bytes,
        tcp,
    } = row;
    let end = |name: &str| match name {
        "" => "unnamed".to_owned(),
        name => name.to_owned(),
    };
    let counted = tcp.map(|tcp| {
        let TcpCounters {
            received_bytes,
            sent_bytes,
            retransmitted_segments,
            round_trip_us,
        } = tcp;
        let again = match retransmitted_segments {
            0 => String::new(),
            segments => format!(", {segments} segments sent again"),
        };
        let round_trip = rounded(f64::from(round_trip_us) * 1e3);
        format!(
            ": {} in, {} out, round trip {round_trip}{again}",
            HumanBytes(received_bytes),
            HumanBytes(sent_bytes)
        )
    });
    let not_taken = if tcp.is_some() {
        "not acknowledged"
    } else {
        "not read by the other end"
    };
    let waiting = [
        (unread_bytes, "not read"),
        (unacknowledged_bytes, not_taken),
    ];
    let waiting = waiting.into_iter().filter(|(bytes, _)| **bytes > 0);
    let waiting: Vec<String> = waiting
        .map(|(bytes, what)| format!(", {} {what}", HumanBytes(u64::from(*bytes))))
        .collect();
    let (own, peer) = (end(own), end(peer));
    format!(
        "  {own} to {peer}{}{}",
        counted.unwrap_or_default(),
        waiting.concat()
    )
}

fn operations(process: &ProcessCounters) -> Table<'_> {
    let rows = process.operations.iter().map(|operation| {
        let failures = operation.failures;
        let is_late = failures.timeouts > 0 || operation.deadline_misses > 0;
        let style = if is_late || failures.transients > 0 {
            Style::new().red()
        } else if operation.calls == 0 {
            Style::new().dim()
        } else {
            Style::new()
        };
        let cells = cells(operation).into_iter().enumerate();
        Row::new(cells.map(|(column, text)| cell(column, text))).style(style)
    });
    let widths = COLUMNS.map(|(_, width)| Constraint::Length(width));
    let names = COLUMNS.iter().enumerate();
    let names = Row::new(names.map(|(column, (name, _))| cell(column, (*name).to_owned())));
    Table::new(rows, widths).header(names.underlined())
}

/// Returns a cell: names to the left, numbers to the right.
fn cell(column: usize, text: String) -> Cell<'static> {
    let line = Line::from(text);
    Cell::from(if column < 2 {
        line
    } else {
        line.right_aligned()
    })
}

/// The columns, and how wide they are.
const COLUMNS: [(&str, u16); 10] = [
    ("operation", 28),
    ("side", 6),
    ("calls/s", 10),
    ("p50", 9),
    ("p99", 9),
    ("longest", 9),
    ("failed", 8),
    ("late", 8),
    ("queued", 8),
    ("in queue", 9),
];

fn cells(row: &OperationRow) -> [String; COLUMNS.len()] {
    let count = |count: u64| {
        if count == 0 {
            String::new()
        } else {
            count.to_string()
        }
    };
    let time = |ns: Option<u64>| ns.map_or_else(String::new, |ns| rounded(ns as f64));
    [
        row.operation.clone(),
        row.side.to_owned(),
        format!("{:.1}", row.calls_per_s),
        time(row.p50_ns),
        time(row.p99_ns),
        rounded(row.longest_ns as f64),
        count(row.failures.all()),
        count(row.deadline_misses),
        count(row.queued),
        time(row.queue_p99_ns),
    ]
}

fn heading(process: &ProcessCounters) -> String {
    let ProcessCounters {
        process: id,
        name,
        for_ns,
        refused_threads,
        unserved,
        ..
    } = process;
    let threads = match process.threads.len() {
        1 => "1 thread".to_owned(),
        threads => format!("{threads} threads"),
    };
    let refused = match refused_threads {
        0 => String::new(),
        refused => format!(", {refused} threads are not recorded"),
    };
    format!(
        "{name} ({id}): {threads}{refused}{}, in {}",
        not_served(unserved),
        rounded(*for_ns as f64)
    )
}

/// Describes the requests that were not served; empty if there are none.
fn not_served(unserved: &UnservedRequests) -> String {
    let UnservedRequests {
        refused,
        shed,
        expired,
    } = *unserved;
    let each = [(refused, "refused"), (shed, "shed"), (expired, "expired")];
    let counted = each.into_iter().filter(|(count, _)| *count > 0);
    let texts: Vec<String> = counted
        .map(|(count, what)| format!(", {count} {what}"))
        .collect();
    texts.concat()
}

/// Describes a lane in a line.
fn lane(row: &LaneRow) -> String {
    let threads = match row.threads {
        1 => "1 thread".to_owned(),
        threads => format!("{threads} threads"),
    };
    let queue = match row.most_accepted {
        0 => String::new(),
        most => format!(", at most {most} requests at once"),
    };
    let LaneRow {
        pool,
        priority,
        served,
        unserved,
        ..
    } = row;
    let unserved = not_served(unserved);
    format!("  pool {pool}, lane {priority}: {threads}, {served} calls served{queue}{unserved}")
}

/// Describes a process in lines, which do not act on a terminal: names are those that others chose.
fn lines(look: &Look) -> Vec<String> {
    let row = |cells: [String; COLUMNS.len()]| {
        let cells = cells.iter().zip(COLUMNS).enumerate();
        let texts = cells.map(|(column, (text, (_, width)))| {
            let width = usize::from(width);
            if column < 2 {
                format!("{text:<width$}")
            } else {
                format!("{text:>width$}")
            }
        });
        texts.collect::<Vec<_>>().join(" ").trim_end().to_owned()
    };
    let names = COLUMNS.map(|(name, _)| name.to_owned());
    let rows = look.counters.operations.iter().map(cells);
    // A name with another line in it must not look like a row.
    let in_a_line = |text: String| printable(&text).replace(['\n', '\t'], " ");
    titles(&look.counters)
        .into_iter()
        .chain(core::iter::once(names).chain(rows).map(row))
        .chain(connection_lines(look))
        .map(in_a_line)
        .collect()
}

const EXAMPLES: &str = "Examples:
  rtorb top plant
  rtorb top 4711 --once --json
  rtorb top corbaloc::plant-host:2809/Recorder";

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_recording::counters::Failures;

    /// What the kernel may say of a connection.
    fn any_connection() -> ConnectionRow {
        ConnectionRow {
            own: "@a\u{1b}[2J\nb".to_owned(),
            peer: String::new(),
            unread_bytes: u32::MAX,
            unacknowledged_bytes: 0,
            tcp: Some(TcpCounters {
                received_bytes: u64::MAX,
                sent_bytes: u64::MAX,
                retransmitted_segments: u32::MAX,
                round_trip_us: u32::MAX,
            }),
        }
    }

    /// The memory of a process and the reply of an object may hold anything.
    #[test]
    fn any_names_and_counts_are_shown_and_do_not_act_on_the_terminal() {
        let most = u64::MAX;
        let process = ProcessCounters {
            process: 7,
            name: "a\u{1b}]0;b\u{7}".to_owned(),
            for_ns: most,
            refused_threads: most,
            unserved: UnservedRequests {
                refused: most,
                shed: 0,
                expired: 3,
            },
            operations: vec![OperationRow {
                side: "server",
                operation: "get\u{1b}[2J\u{9b}1m".to_owned(),
                calls: most,
                calls_per_s: 1.0,
                failures: Failures {
                    user_exceptions: most,
                    system_exceptions: most,
                    timeouts: most,
                    transients: most,
                },
                p50_ns: Some(most),
                p99_ns: None,
                longest_ns: most,
                queued: most,
                queue_p99_ns: Some(most),
                deadline_misses: most,
                demotions: most,
            }],
            threads: Vec::new(),
            lanes: Vec::new(),
        };
        let mut look = Look {
            counters: process,
            connections: Some(vec![any_connection(); CONNECTIONS_SHOWN + 2]),
            connections_unknown: None,
        };
        let with_connections = lines(&look);
        let first = &with_connections[3];
        assert!(
            first.starts_with("  @a\u{fffd}[2J b to unnamed: "),
            "{first}"
        );
        assert!(first.ends_with("sent again, 4.00 GiB not read"), "{first}");
        assert_eq!(
            with_connections[3 + CONNECTIONS_SHOWN],
            "  and 2 connections more"
        );
        look.connections = Some(Vec::new());
        let lines = lines(&look);
        assert!(
            lines[0].starts_with("a\u{fffd}]0;b\u{fffd} (7): "),
            "{lines:?}"
        );
        assert!(
            lines[2].starts_with("get\u{fffd}[2J\u{fffd}1m "),
            "{lines:?}"
        );
        assert!(lines[2].contains(&most.to_string()), "{lines:?}");
        let unserved = format!(", {most} refused, 3 expired, in ");
        assert!(lines[0].contains(&unserved), "{lines:?}");
        let _ = operations(&look.counters);
    }

    #[test]
    fn a_process_whose_program_may_not_be_seen_has_not_ended() {
        let failed = |kind: io::ErrorKind| is_gone(&Err(kind.into()));
        assert!(failed(io::ErrorKind::NotFound));
        assert!(!failed(io::ErrorKind::PermissionDenied));
        assert!(!is_gone(&fs::read_link("/proc/self/exe")));
    }
}
