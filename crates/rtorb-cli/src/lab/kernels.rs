//! `rtorb lab kernels`: lists, fetches and removes kernels.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use rtorb_kernels::catalogue::{self, GUESTS, Guest};
use rtorb_kernels::catalogue::{Apt, Catalogue, Entry, Kernel};
use rtorb_lab::processes::interrupt::Interrupt;
use rtorb_results::table::Table;
use serde_json::{Value, json};

use crate::output::{line, print_json, print_table};
use crate::progress::Report;

/// List, fetch and remove kernels for emulated machines.
///
/// Kernels come from Debian's package index through Debian's package client, and are kept in the folder of --cache. Nothing
/// is installed, and nothing needs root. To use your own kernel image, write its path instead of a kernel's name: `./bzImage`,
/// or `mine=./bzImage`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Kernels {
    #[command(subcommand)]
    subcommand: Option<KernelsSubcommand>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// List every offered version, not only the newest of each series.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    cache: Cache,
}

#[derive(Debug, Subcommand)]
enum KernelsSubcommand {
    /// Download kernels and keep them.
    Fetch(Names),
    /// Remove fetched kernels; a series means all of its versions.
    Remove(Names),
}

#[derive(Debug, Args)]
struct Names {
    /// Kernel name: `6.12` or `6.12-rt` for the newest of a series, or a version such as `6.12.117-rt`.
    #[arg(required = true, value_name = "KERNEL")]
    names: Vec<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    cache: Cache,
}

#[derive(Debug, Args)]
struct Cache {
    /// Folder of the fetched kernels [default: $RTORB_KERNELS, $XDG_CACHE_HOME/rtorb/kernels or ~/.cache/rtorb/kernels].
    #[arg(long = "cache", value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl Kernels {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        match &self.subcommand {
            None => self.list()?,
            Some(KernelsSubcommand::Fetch(names)) => names.fetch()?,
            Some(KernelsSubcommand::Remove(names)) => names.remove()?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn list(&self) -> anyhow::Result<()> {
        let catalogue = self.cache.catalogue()?;
        let (entries, why) = catalogue.list(&interrupt()?)?;
        let is_shown = |entry: &&Entry| self.all || entry.newest || entry.cached.is_some();
        let shown: Vec<&Entry> = entries.iter().filter(is_shown).collect();
        if self.json {
            let kernels: Vec<Value> = shown.iter().map(|entry| as_json(entry)).collect();
            return print_json(&json!({
                "cache": catalogue.folder(),
                "index": why.as_deref().unwrap_or("read"),
                "kernels": kernels,
                "guests": GUESTS.map(|guest| json!({
                    "name": guest.name,
                    "stands_for": guest.stands_for,
                    "built": catalogue::guest(guest.name).is_ok(),
                })),
            }));
        }
        if let Some(why) = why {
            line(format!("No kernels are offered: {why}"))?;
        }
        if shown.is_empty() {
            line(format!(
                "{} contains no kernel.",
                catalogue.folder().display()
            ))
        } else {
            print_table(&table(&shown))?;
            line(format!(
                "\nKept in {}. `rtorb lab kernels fetch NAME` fetches one.",
                catalogue.folder().display()
            ))
        }?;
        line("\nGuests that are no Linux:")?;
        GUESTS.iter().try_for_each(|guest| line(described(guest)))
    }
}

fn described(guest: &Guest) -> String {
    let state = if catalogue::guest(guest.name).is_ok() {
        "built"
    } else {
        "not built: `cargo xtask rtos` builds it"
    };
    let Guest { name, stands_for } = guest;
    format!("  {name} stands for {stands_for} ({state})")
}

impl Names {
    fn fetch(&self) -> anyhow::Result<()> {
        let catalogue = self.cache.catalogue()?;
        let mut report = Report::new("fetch", 1, 1);
        let kernels = catalogue.fetch(&self.names, &mut report, &interrupt()?)?;
        drop(report);
        if self.json {
            return print_json(&json!({ "kernels": kernels }));
        }
        kernels.iter().try_for_each(|kernel| {
            line(format!("{}: {}", kernel.name, origin(kernel)))?;
            line(format!("  {}", kernel.image.display()))?;
            line(format!("  SHA-256 {}", kernel.sha256))
        })
    }

    fn remove(&self) -> anyhow::Result<()> {
        let removed = self.cache.catalogue()?.remove(&self.names, &interrupt()?)?;
        if self.json {
            return print_json(&json!({ "removed": removed }));
        }
        removed
            .iter()
            .try_for_each(|kernel| line(format!("removed {}", kernel.release)))
    }
}

impl Cache {
    fn catalogue(&self) -> anyhow::Result<Catalogue> {
        let source = Box::new(Apt);
        Ok(match &self.folder {
            Some(folder) => Catalogue::at(folder.clone(), source),
            None => Catalogue::in_usual_place(source)?,
        })
    }
}

fn interrupt() -> anyhow::Result<Interrupt> {
    Interrupt::on_signals().context("cannot listen to signals")
}

fn origin(kernel: &Kernel) -> String {
    match &kernel.package {
        Some(package) => format!(
            "{}, of {} {}",
            kernel.release, package.name, package.version
        ),
        None => kernel.release.clone(),
    }
}

fn table(shown: &[&Entry]) -> Table {
    let head = [
        "kernel",
        "uname -r",
        "package version",
        "cached",
        "SHA-256 of the package",
    ];
    let row = |entry: &&Entry| {
        let offered = entry.offer.as_ref().map(|offer| &offer.package);
        let kept = entry
            .cached
            .as_ref()
            .and_then(|kernel| kernel.package.as_ref());
        let package = offered.or(kept);
        vec![
            entry.name.clone(),
            entry.release.clone(),
            package
                .map(|package| package.version.clone())
                .unwrap_or_default(),
            cached_in_words(entry).to_owned(),
            package
                .map(|package| package.sha256.chars().take(DIGITS).collect())
                .unwrap_or_default(),
        ]
    };
    Table {
        head: head.map(str::to_owned).to_vec(),
        rows: shown.iter().map(row).collect(),
    }
}

fn cached_in_words(entry: &Entry) -> &'static str {
    match (&entry.cached, &entry.offer) {
        (Some(_), Some(_)) => "yes",
        (Some(_), None) => "yes, no longer offered",
        (None, _) => "",
    }
}

fn as_json(entry: &Entry) -> Value {
    json!({
        "name": entry.name,
        "release": entry.release,
        "newest": entry.newest,
        "package": entry.offer.as_ref().map(|offer| &offer.package),
        "bytes": entry.offer.as_ref().map(|offer| offer.bytes),
        "cached": entry.cached,
    })
}

/// Enough digits to distinguish packages in a table; --json has all digits.
const DIGITS: usize = 16;
