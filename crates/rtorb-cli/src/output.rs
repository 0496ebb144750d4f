//! Text to standard output and standard error. A closed pipe (`rtorb ... 2>&1 | head`) is no error.
//!
//! `println` and `eprintln` would panic; clippy refuses them in this crate.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use clap::builder::styling::AnsiColor;
use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{
    Cell, CellAlignment, Color, ContentArrangement, LineStyle, Table as Drawn, TableStyle,
};
use rtorb_results::table::Table;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use textwrap::{Options, WordSplitter, wrap};

use crate::colour::{self, Tone};

/// Prints a line.
pub(crate) fn line(text: impl AsRef<str>) -> anyhow::Result<()> {
    print(format!("{}\n", text.as_ref()).as_bytes())
}

/// Prints a line with the colour of its tone, if standard output takes colours.
pub(crate) fn line_in(tone: Tone, text: impl AsRef<str>) -> anyhow::Result<()> {
    if colour::on_stdout() {
        line(tone.paint(text.as_ref()))
    } else {
        line(text)
    }
}

/// Prints a word in a column of `width`, in the colour of its tone, and the text beside it.
#[cfg(feature = "laboratory")]
pub(crate) fn labelled(word: &str, text: &str, width: usize) -> anyhow::Result<()> {
    let first = format!("{word:>width$}  ");
    let others = " ".repeat(first.len());
    for (index, text) in indented(text, [&first, &others], columns())
        .into_iter()
        .enumerate()
    {
        if index == 0 && colour::on_stdout() {
            line(text.replacen(word, &Tone::of(word).paint(word), 1))?
        } else {
            line(text)?
        }
    }
    Ok(())
}

/// Prints a line of this program on standard error. If nobody reads it, the work goes on; `eprintln` would panic.
pub(crate) fn warn(text: impl Display) {
    let name = Tone::Bad.paint("rtorb:");
    let text = printable(&text.to_string());
    let _ = writeln!(anstream::stderr(), "{name} {text}");
}

/// Prints a line on standard error, with the arguments of `format`, as `eprintln` does. If nobody reads it, the work goes on.
macro_rules! note {
    ($($argument:tt)*) => {
        $crate::output::print_beside(&format!("{}\n", format_args!($($argument)*)))
    };
}
pub(crate) use note;

/// Prints text on standard error. If nobody reads it, the work goes on.
pub(crate) fn print_beside(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Replaces control characters, which would act on a terminal, and cuts a text that no one reads to its end. Names that others chose are printed
/// so.
pub(crate) fn printable(text: &str) -> String {
    let is_printed = |character: char| !character.is_control() || "\n\t".contains(character);
    let replaced = |character| {
        if is_printed(character) {
            character
        } else {
            char::REPLACEMENT_CHARACTER
        }
    };
    let mut printed: String = text.chars().take(WARNING_MAX).map(replaced).collect();
    if let left @ 1.. = text.chars().count().saturating_sub(WARNING_MAX) {
        printed.push_str(&format!("... ({left} more characters)"));
    }
    printed
}

/// Prints a value as JSON, indented.
pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print(format!("{}\n", serde_json::to_string_pretty(value)?).as_bytes())
}

/// Prints a table: names to the left, numbers to the right. Columns that do not fit on the terminal follow below, with the
/// names repeated.
pub(crate) fn print_table(table: &Table) -> anyhow::Result<()> {
    let width = Drawn::new().width().map_or(usize::MAX, usize::from);
    for part in table.parts() {
        for fitting in fitting(&part, width) {
            line(draw(&fitting))?;
        }
    }
    Ok(())
}

/// Wraps text to lines of at most `width` columns, with one indent for the first line and one for the others.
pub(crate) fn indented(text: &str, [first, others]: [&str; 2], width: usize) -> Vec<String> {
    let options = Options::new(width)
        .initial_indent(first)
        .subsequent_indent(others)
        // Paths and commands must stay whole, so that they can be copied.
        .break_words(false)
        .word_splitter(WordSplitter::NoHyphenation);
    let lines = wrap(text, options).into_iter();
    lines.map(std::borrow::Cow::into_owned).collect()
}

/// Returns true if standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    std::io::IsTerminal::is_terminal(&io::stdout())
}

/// Returns the number of columns of a line of text: the terminal's, or 80, within readable limits.
#[cfg(feature = "laboratory")]
pub(crate) fn columns() -> usize {
    Drawn::new()
        .width()
        .map_or(80, usize::from)
        .clamp(COLUMNS_MIN, COLUMNS_MAX)
}

/// Splits a table into parts of whole columns, each at most `width` wide if possible: a number that is broken over two lines
/// cannot be read. Names are wrapped at spaces before the table is split.
fn fitting(table: &Table, width: usize) -> Vec<Table> {
    let all = || 0..table.head.len();
    if all().map(|column| width_of(table, column)).sum::<usize>() <= width {
        return vec![table.clone()];
    }
    let mut narrow = table.clone();
    for (column, head) in narrow.head.iter_mut().enumerate().skip(1) {
        let cells = table.rows.iter().map(|row| row[column].chars().count());
        let widest = cells.max().unwrap_or(0);
        *head = indented(head, ["", ""], widest).join("\n");
    }
    let numbers: Vec<usize> = all().map(|column| width_of(&narrow, column)).collect();
    let beside: usize = numbers[1..].iter().sum();
    let names = numbers[0].min(width.saturating_sub(beside).max(NAMES_MIN));
    for row in &mut narrow.rows {
        row[0] = indented(&row[0], ["", "  "], names - PADDING).join("\n");
    }
    let mut parts: Vec<(usize, BTreeSet<usize>)> = Vec::new();
    for (column, own) in numbers.iter().enumerate().skip(1) {
        match parts.last_mut() {
            Some((used, columns)) if *used + own <= width => {
                *used += own;
                columns.insert(column);
            }
            _ => parts.push((names + own, BTreeSet::from([column]))),
        }
    }
    let part = |(_, columns): &(usize, BTreeSet<usize>)| narrow.part(columns);
    parts.iter().map(part).collect()
}

fn width_of(table: &Table, column: usize) -> usize {
    let cells = table.rows.iter().map(|row| &row[column]);
    let lines = cells
        .chain([&table.head[column]])
        .flat_map(|cell| cell.lines());
    lines.map(|line| line.chars().count()).max().unwrap_or(0) + PADDING
}

fn draw(table: &Table) -> String {
    let mut drawn = Drawn::new();
    drawn.load_style(if is_terminal() {
        LINES_AROUND_ROWS
    } else {
        ASCII_MARKDOWN
    });
    drawn.set_content_arrangement(ContentArrangement::Disabled);
    drawn.set_header(&table.head);
    let has_colours = colour::on_stdout();
    for row in &table.rows {
        drawn.add_row(row.iter().map(|text| {
            let colour = Tone::of(text).colour().filter(|_| has_colours);
            let cell = Cell::new(text);
            match colour {
                Some(AnsiColor::Green) => cell.fg(Color::Green),
                Some(AnsiColor::Yellow) => cell.fg(Color::Yellow),
                Some(_) => cell.fg(Color::Red),
                None => cell,
            }
        }));
    }
    for column in drawn.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    drawn.trim_fmt()
}

/// Prints bytes as they are.
pub(crate) fn print(bytes: &[u8]) -> anyhow::Result<()> {
    let mut output = io::stdout().lock();
    match output.write_all(bytes).and_then(|()| output.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Returns false if standard output is a pipe that nobody reads any more.
pub(crate) fn has_reader() -> bool {
    let output = io::stdout();
    // `poll` reports a pipe without a reader as an error, even if it is asked for no event.
    let mut state = [PollFd::new(&output, PollFlags::empty())];
    let polled = poll(&mut state, Some(&Timespec::default()));
    polled.is_err() || !state[0].revents().contains(PollFlags::ERR)
}

/// No line between rows, because it would make a table twice as long.
const LINES_AROUND_ROWS: TableStyle = TableStyle::new()
    .top_border(LineStyle::none().fill('─').junction('─'))
    .header_separator(LineStyle::none().fill('═').junction('═'))
    .bottom_border(LineStyle::none().fill('─').junction('─'));
/// The columns that a cell adds to its text: a space on each side, and one to the next cell.
const PADDING: usize = 3;
const NAMES_MIN: usize = 20;
#[cfg(feature = "laboratory")]
const COLUMNS_MIN: usize = 40;
/// Longer lines are hard to read.
#[cfg(feature = "laboratory")]
const COLUMNS_MAX: usize = 100;
/// The characters of a warning: all mistakes of a file of average size.
const WARNING_MAX: usize = 40_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// The width of the lines around and between three columns if standard output is no terminal.
    const BARS: usize = 4;

    fn table() -> Table {
        let owned = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        Table {
            head: owned(["us, median / max", "highest", "middle", "lowest"]),
            rows: vec![
                owned([
                    "harmonic, 5 timers, 500 us resolution",
                    "1.00 / 2.00",
                    "",
                    "7.00",
                ]),
                owned(["one alone", "3.00 / 4.00", "", ""]),
            ],
        }
    }

    #[test]
    fn a_warning_is_short_and_does_not_act_on_the_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\n\tc"), "a\u{fffd}[31mb\n\tc");
        let long = printable(&"é".repeat(500_000));
        assert!(long.ends_with("é... (460000 more characters)"));
    }

    #[test]
    fn a_table_that_fits_is_not_split() {
        assert_eq!(fitting(&table(), usize::MAX), [table()]);
        assert_eq!(fitting(&table(), 80), [table()]);
    }

    #[test]
    fn a_wide_table_is_split_into_whole_columns() {
        let parts = fitting(&table(), 40);
        let heads: Vec<&[String]> = parts.iter().map(|part| &part.head[1..]).collect();
        assert_eq!(heads, [vec!["highest"], vec!["middle", "lowest"]]);
        assert_eq!(parts[1].rows.len(), 1, "an empty row is left out");
        for part in &parts {
            for drawn in draw(part).lines() {
                assert!(drawn.chars().count() <= 40 + BARS, "{drawn:?}");
            }
        }
        let all: String = parts.iter().map(draw).collect();
        for whole in ["1.00 / 2.00", "3.00 / 4.00", "us, median / max"] {
            assert!(all.contains(whole), "{whole} in {all}");
        }
    }
}
