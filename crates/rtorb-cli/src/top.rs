//! `rtorb top`: what running processes call and serve, live.

use std::io::{IsTerminal, stdout};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Style, Stylize as _};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Paragraph, Row, Table};
use ratatui::{DefaultTerminal, Frame};
use rtorb::recorder::ProcessSnapshot;
use rtorb_recording::counters::{LaneRow, OperationRow, ProcessCounters};
use rtorb_sched::model::rounded;

use crate::orb_options::usage;
use crate::output::{line, print_json};
use crate::trace::processes;

/// Show what running processes call and serve: calls a second, times, failures and queues of each operation.
///
/// The processes have -ORBRecorder yes among the options of their ORBs. They are neither stopped nor delayed: their recorders are memory
/// that this command reads. Times are the upper ends of buckets, at most a quarter above the times themselves; the longest is exact.
///
/// Exit status 0: shown. 1: no such process, or one without a recorder.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Top {
    /// Process id, or the name of processes; without any, all processes that have a recorder.
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
}

impl Top {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        if !self.once && !stdout().is_terminal() {
            return Err(usage(
                "the live screen needs a terminal: print the counters with --once, or --once --json",
            ));
        }
        let mut watched = Watched::new(&self.targets)?;
        if self.once {
            let counters = watched.look();
            if self.json {
                print_json(&counters)?;
            } else {
                counters.iter().try_for_each(print)?;
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
    processes: Vec<(u32, Option<ProcessSnapshot>)>,
}

impl Watched {
    fn new(targets: &[String]) -> anyhow::Result<Self> {
        let found = if targets.is_empty() {
            ProcessSnapshot::processes()
        } else {
            processes(targets)?
        };
        if found.is_empty() {
            bail!("no process that you may read has a recorder: start one with -ORBRecorder yes");
        }
        for process in &found {
            ProcessSnapshot::of_process(*process)?;
        }
        Ok(Self {
            processes: found.into_iter().map(|process| (process, None)).collect(),
        })
    }

    /// Returns the counters since the look before. Processes that have ended are left out.
    fn look(&mut self) -> Vec<ProcessCounters> {
        let looks = self.processes.iter_mut().filter_map(|(process, before)| {
            let now = ProcessSnapshot::of_process(*process).ok()?;
            let counters = ProcessCounters::of(&now, before.as_ref());
            *before = Some(now);
            Some(counters)
        });
        looks.collect()
    }
}

/// Shows the counters until somebody ends it by `q`, Escape or Ctrl-C, or all processes have ended.
fn show(watched: &mut Watched, every: Duration) -> anyhow::Result<()> {
    let mut terminal = ratatui::try_init()?;
    loop {
        let counters = watched.look();
        if counters.is_empty() {
            return Ok(());
        }
        terminal.draw(|frame| draw(frame, &counters))?;
        if is_ended_within(every, &mut terminal, &counters)? {
            return Ok(());
        }
    }
}

/// Waits for the next look. Returns true if somebody ends the command.
fn is_ended_within(
    every: Duration,
    terminal: &mut DefaultTerminal,
    counters: &[ProcessCounters],
) -> anyhow::Result<bool> {
    let until = Instant::now() + every;
    while let left = until.saturating_duration_since(Instant::now())
        && !left.is_zero()
    {
        if event::poll(left)? {
            match event::read()? {
                Event::Key(key) if ends(key) => return Ok(true),
                Event::Resize(..) => {
                    terminal.draw(|frame| draw(frame, counters))?;
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
fn draw(frame: &mut Frame<'_>, counters: &[ProcessCounters]) {
    let heights = counters.iter().map(|process| {
        // A title, the names of columns, and a free line.
        let lines = process.operations.len() + process.lanes.len() + 3;
        Constraint::Max(u16::try_from(lines).unwrap_or(u16::MAX))
    });
    let constraints: Vec<Constraint> = heights
        .chain([Constraint::Fill(1), Constraint::Length(1)])
        .collect();
    let areas = Layout::vertical(constraints).split(frame.area());
    for (process, area) in counters.iter().zip(areas.iter()) {
        let titles: Vec<Line<'_>> = core::iter::once(Line::from(heading(process)).bold())
            .chain(process.lanes.iter().map(|row| Line::from(lane(row))))
            .collect();
        let height = u16::try_from(titles.len()).unwrap_or(u16::MAX);
        let [title, table] =
            Layout::vertical([Constraint::Length(height), Constraint::Fill(1)]).areas(*area);
        frame.render_widget(Paragraph::new(titles), title);
        frame.render_widget(operations(process), table);
    }
    if let Some(last) = areas.last() {
        frame.render_widget(Paragraph::new("q ends").dim(), *last);
    }
}

fn operations(process: &ProcessCounters) -> Table<'_> {
    let rows = process.operations.iter().map(|operation| {
        let style = if operation.failures.timeouts + operation.failures.transients > 0 {
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
const COLUMNS: [(&str, u16); 9] = [
    ("operation", 28),
    ("side", 6),
    ("calls/s", 10),
    ("p50", 9),
    ("p99", 9),
    ("longest", 9),
    ("failed", 8),
    ("queued", 8),
    ("in queue", 9),
];

fn cells(row: &OperationRow) -> [String; COLUMNS.len()] {
    let failures = row.failures;
    let failed = failures.user_exceptions
        + failures.system_exceptions
        + failures.timeouts
        + failures.transients;
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
        count(failed),
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
        "{name} ({id}): {threads}{refused}, in {}",
        rounded(*for_ns as f64)
    )
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
        ..
    } = row;
    format!("  pool {pool}, lane {priority}: {threads}, {served} calls served{queue}")
}

fn print(process: &ProcessCounters) -> anyhow::Result<()> {
    line(heading(process))?;
    process.lanes.iter().try_for_each(|row| line(lane(row)))?;
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
        line(texts.collect::<Vec<_>>().join(" ").trim_end())
    };
    row(COLUMNS.map(|(name, _)| name.to_owned()))?;
    process.operations.iter().map(cells).try_for_each(row)
}

const EXAMPLES: &str = "Examples:
  rtorb top plant
  rtorb top 4711 --once --json";
