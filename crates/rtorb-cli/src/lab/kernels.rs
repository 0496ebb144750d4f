//! `rtorb lab kernels`: which kernels there are, and getting them.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use rtorb_lab::kernels::catalogue::{Apt, Catalogue, Entry, Kernel};
use rtorb_lab::processes::interrupt::Interrupt;
use rtorb_lab::results::summary::Table;
use serde_json::{Value, json};

use crate::output::{line, print_json, print_table};
use crate::progress::Report;

/// List the kernels that can be booted in emulated machines, fetch them, remove them.
///
/// They come from the package index of Debian, by its own package client, and are kept below ~/.cache/rtorb/kernels.
/// Nothing is installed, and nothing needs to be root. A kernel image of your own is named by its path wherever a kernel
/// is named: `./bzImage`, or `mine=./bzImage`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Kernels {
    #[command(subcommand)]
    subcommand: Option<KernelsSubcommand>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// List every version that is offered, not the newest of each series alone.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    cache: Cache,
}

#[derive(Debug, Subcommand)]
enum KernelsSubcommand {
    /// Download kernels and keep them.
    Fetch(Names),
    /// Remove kernels that were fetched; a series is all of its versions.
    Remove(Names),
}

#[derive(Debug, Args)]
struct Names {
    /// Such as `6.12` and `6.12-rt`, the newest of their series, or `6.12.117-rt`.
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
    /// The folder in which kernels are kept [default: $RTORB_KERNELS, or ~/.cache/rtorb/kernels].
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
        let (entries, why) = catalogue.list(&listen()?)?;
        let is_shown = |entry: &&Entry| self.all || entry.newest || entry.cached.is_some();
        let shown: Vec<&Entry> = entries.iter().filter(is_shown).collect();
        if self.json {
            let kernels: Vec<Value> = shown.iter().map(|entry| described(entry)).collect();
            return print_json(&json!({
                "cache": catalogue.folder(),
                "index": why.as_deref().unwrap_or("read"),
                "kernels": kernels,
            }));
        }
        if let Some(why) = why {
            line(format!("Nothing is offered: {why}"))?;
        }
        match shown.is_empty() {
            true => line(format!("{} holds no kernel.", catalogue.folder().display())),
            false => {
                print_table(&table(&shown))?;
                line(format!(
                    "\nKept in {}. `rtorb lab kernels fetch NAME` gets one.",
                    catalogue.folder().display()
                ))
            }
        }
    }
}

impl Names {
    fn fetch(&self) -> anyhow::Result<()> {
        let catalogue = self.cache.catalogue()?;
        let mut report = Report::new("fetch", 1, 1);
        let kernels = catalogue.fetch(&self.names, &mut report, &listen()?)?;
        report.finish();
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
        let removed = self.cache.catalogue()?.remove(&self.names)?;
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

fn listen() -> anyhow::Result<Interrupt> {
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

fn described(entry: &Entry) -> Value {
    json!({
        "name": entry.name,
        "release": entry.release,
        "newest": entry.newest,
        "package": entry.offer.as_ref().map(|offer| &offer.package),
        "bytes": entry.offer.as_ref().map(|offer| offer.bytes),
        "cached": entry.cached,
    })
}

/// Enough to tell packages apart in a table; --json has all.
const DIGITS: usize = 16;
