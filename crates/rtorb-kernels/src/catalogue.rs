//! The kernels that can be booted: what the distribution's index offers, what is cached, and images that the user names.
//!
//! A kernel comes out of the distribution's own packages, by its own package client, and is checked against the digest in its
//! index before it is kept. Below: how kernels are named, who offers them, where they are kept, and what an image says of itself.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rtorb_lab::LabError;
use rtorb_lab::experiment::Progress;
use rtorb_lab::processes::interrupt::Interrupt;
pub use rtorb_results::campaign::{Kernel, Package};
use serde::Serialize;

use cache::Cache;
pub(crate) use guests::BOARD;
pub use guests::{GUESTS, Guest, guest, is_guest};
use name::{Release, Wanted};
pub use source::{Apt, Offer, Source, Unpacked};

mod cache;
mod guests;
mod image;
mod name;
mod source;

/// The image in a file: `PATH`, which needs a `/` in it, or `NAME=PATH`.
///
/// # Errors
/// That it cannot be read, or is no image that a PC boots.
pub fn from_file(text: &str) -> Result<Kernel, LabError> {
    let (name, path) = match text.split_once('=') {
        Some((name, path)) => (Some(name), path),
        None => (None, text),
    };
    let image = Path::new(path);
    let release = image::release(image)?;
    Ok(Kernel {
        name: name.map_or_else(|| release.clone(), str::to_owned),
        release,
        image: image.canonicalize().map_err(LabError::file(image))?,
        sha256: cache::sha256_of_file(image)?,
        package: None,
        board: None,
    })
}

/// Whether a kernel is a Linux that was built with PREEMPT_RT, as its image says.
///
/// # Errors
/// That the image cannot be read any more.
pub fn is_real_time(kernel: &Kernel) -> Result<bool, LabError> {
    if kernel.board.is_some() {
        return Ok(false);
    }
    Ok(image::version(&kernel.image)?.contains("PREEMPT_RT"))
}

/// The kernel of this name, out of the cache in its usual place, or from the file that the text names ([`from_file`]).
/// A name such as `6.12` is the newest that is cached of this series.
///
/// # Errors
/// That it is not there, with what to do.
pub fn cached(name: &str) -> Result<Kernel, LabError> {
    Catalogue::in_usual_place(Box::new(Apt))?.cached(name)
}

/// The kernels of these names, in their order; those that are not cached are fetched.
///
/// # Errors
/// As [`Catalogue::ensure`].
pub fn ensure(
    names: &[String],
    progress: &mut dyn Progress,
    interrupt: &Interrupt,
) -> Result<Vec<Kernel>, LabError> {
    Catalogue::in_usual_place(Box::new(Apt))?.ensure(names, progress, interrupt)
}

/// Checks that each name is that of a file with a kernel, or has the form of a kernel's name.
///
/// # Errors
/// The first wrong name, with the right forms; or what is wrong with the file.
pub fn check_names(names: &[String]) -> Result<(), LabError> {
    names.iter().try_for_each(|name| {
        if is_file(name) {
            from_file(name).map(drop)
        } else if is_guest(name) {
            guest(name).map(drop)
        } else {
            name.parse::<Wanted>().map(drop)
        }
    })
}

/// The folder in which what is made of this kernel is kept, such as its symbols: of a cached kernel that of its image. It is made
/// when it is not there.
///
/// # Errors
/// That it cannot be made.
pub fn folder(kernel: &Kernel) -> Result<PathBuf, LabError> {
    Cache::open(cache::usual_place()?).folder(kernel)
}

/// The archive of the modules that experiments need, which is empty for an image that the user named.
///
/// # Errors
/// That it is not in the cache, with what to do, or cannot be read.
pub fn modules(kernel: &Kernel) -> Result<Vec<u8>, LabError> {
    let archive = kernel.image.with_file_name(cache::MODULES);
    match fs::read(&archive) {
        _ if kernel.package.is_none() => Ok(Vec::new()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(LabError::Incomplete {
            what: format!(
                "an earlier version fetched the kernel {0} without its modules: `rtorb lab kernels fetch {0}` fetches it again",
                kernel.name
            ),
        }),
        read => read.map_err(LabError::file(archive)),
    }
}

/// A kernel that is offered, cached, or both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The shortest name that is this kernel: of the newest of its series that is offered `6.12-rt`, of others `6.12.111-rt`.
    pub name: String,
    /// As `uname -r` has it.
    pub release: String,
    /// Whether it is the newest of its series and flavour.
    pub newest: bool,
    /// What the index offers; `None` when it is in the cache alone.
    pub offer: Option<Offer>,
    /// What is in the cache.
    pub cached: Option<Kernel>,
}

/// Kernels, and where they come from.
#[derive(Debug)]
pub struct Catalogue {
    cache: Cache,
    source: Box<dyn Source>,
}

impl Catalogue {
    /// With the cache in `$RTORB_KERNELS`, or else in `$XDG_CACHE_HOME/rtorb/kernels`, or else in `~/.cache/rtorb/kernels`.
    ///
    /// # Errors
    /// That none of them is set.
    pub fn in_usual_place(source: Box<dyn Source>) -> Result<Self, LabError> {
        Ok(Self::at(cache::usual_place()?, source))
    }

    /// With the cache in this folder, which need not exist yet.
    #[must_use]
    pub fn at(folder: PathBuf, source: Box<dyn Source>) -> Self {
        let cache = Cache::open(folder);
        Self { cache, source }
    }

    /// The folder of the cache.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.cache.path()
    }

    /// What is offered and what is cached, oldest first. When nothing can be offered, what is cached and why.
    ///
    /// # Errors
    /// The interrupt, or that the cache cannot be read.
    pub fn list(&self, interrupt: &Interrupt) -> Result<(Vec<Entry>, Option<String>), LabError> {
        match self.source.offers(interrupt) {
            Err(LabError::Interrupted) => Err(LabError::Interrupted),
            Err(error) => Ok((entries(&[], &self.cache.all()?), Some(error.to_string()))),
            Ok(offers) => Ok((entries(&offers, &self.cache.all()?), None)),
        }
    }

    /// The kernel of this name: from the cache, or the file that the text names.
    ///
    /// # Errors
    /// That it is not there, with what to do.
    pub fn cached(&self, name: &str) -> Result<Kernel, LabError> {
        if is_file(name) {
            return from_file(name);
        }
        if is_guest(name) {
            return guest(name);
        }
        match self.find(&name.parse()?)? {
            Some(kernel) => Ok(named(kernel, name)),
            None => Err(LabError::Incomplete {
                what: format!(
                    "the kernel {name} is not in {}: `rtorb lab kernels fetch {name}` gets it",
                    self.cache.path().display()
                ),
            }),
        }
    }

    /// The kernels of these names, in their order; those that are not cached are fetched.
    ///
    /// # Errors
    /// That a name is unknown, that there is no index, no network or no room, that a package is not what its index says; the
    /// interrupt. What was fetched until then stays.
    pub fn ensure(
        &self,
        names: &[String],
        progress: &mut dyn Progress,
        interrupt: &Interrupt,
    ) -> Result<Vec<Kernel>, LabError> {
        let mut missing = Vec::new();
        let is_fetched = |name: &&String| !is_file(name) && !is_guest(name);
        for name in names.iter().filter(is_fetched) {
            let wanted: Wanted = name.parse()?;
            if self.find(&wanted)?.is_none() {
                missing.push(wanted);
            }
        }
        if !missing.is_empty() {
            self.fetch_wanted(&missing, progress, interrupt)?;
        }
        names.iter().map(|name| self.cached(name)).collect()
    }

    /// Fetches what the index has of these names, also when an older one of the series is cached; what is cached already is left.
    ///
    /// # Errors
    /// As [`Self::ensure`].
    pub fn fetch(
        &self,
        names: &[String],
        progress: &mut dyn Progress,
        interrupt: &Interrupt,
    ) -> Result<Vec<Kernel>, LabError> {
        let wanted = names.iter().map(|name| name.parse());
        let wanted: Vec<Wanted> = wanted.collect::<Result<_, _>>()?;
        let fetched = self.fetch_wanted(&wanted, progress, interrupt)?;
        let named = fetched.into_iter().zip(names);
        Ok(named
            .map(|(kernel, name)| self::named(kernel, name))
            .collect())
    }

    /// Removes what is cached of these names, and answers what that was. A series is all of its versions.
    ///
    /// # Errors
    /// That nothing of such a name is cached, or what the file system said; or the interrupt, while another program fetches.
    pub fn remove(&self, names: &[String], interrupt: &Interrupt) -> Result<Vec<Kernel>, LabError> {
        let _alone = self.cache.lock(interrupt)?;
        let all = self.cache.all()?;
        let mut removed = Vec::new();
        for name in names {
            let wanted: Wanted = name.parse()?;
            let found: Vec<&Kernel> = all.iter().filter(|one| wanted.is(&one.release)).collect();
            if found.is_empty() {
                return Err(unknown(
                    name,
                    "cached",
                    &all.iter().map(|one| &*one.release).collect::<Vec<_>>(),
                ));
            }
            for kernel in found {
                self.cache.remove(kernel)?;
                removed.push(kernel.clone());
            }
        }
        Ok(removed)
    }

    fn find(&self, wanted: &Wanted) -> Result<Option<Kernel>, LabError> {
        let all = self.cache.all()?.into_iter();
        let of_name = all.filter(|kernel| wanted.is(&kernel.release));
        let newest = of_name.max_by_key(|kernel| Release::read(&kernel.release));
        newest.iter().try_for_each(cache::check)?;
        Ok(newest)
    }

    fn fetch_wanted(
        &self,
        wanted: &[Wanted],
        progress: &mut dyn Progress,
        interrupt: &Interrupt,
    ) -> Result<Vec<Kernel>, LabError> {
        let offers = self.source.offers(interrupt)?;
        let chosen: Vec<&Offer> = wanted
            .iter()
            .map(|one| choose(one, &offers))
            .collect::<Result<_, _>>()?;
        let _alone = self.cache.lock(interrupt)?;
        // One of an earlier version of this program has no modules: it is fetched again.
        let is_whole = |kernel: &Kernel| kernel.image.with_file_name(cache::MODULES).is_file();
        let is_in = |have: &[Kernel], offer: &Offer| {
            let mut have = have.iter();
            have.any(|kernel| offer.is(kernel) && is_whole(kernel))
        };
        let have = self.cache.all()?;
        let is_had = |offer: &Offer| is_in(&have, offer);
        let missing = chosen.iter().filter(|offer| !is_had(offer));
        let megabytes: u64 = missing.map(|offer| offer.megabytes()).sum();
        progress.begin(usize::try_from(megabytes).unwrap_or(usize::MAX));
        for offer in &chosen {
            // Two names may be one kernel.
            if !is_in(&self.cache.all()?, offer) {
                self.cache
                    .fetch(offer, self.source.as_ref(), progress, interrupt)?;
            }
        }
        let all = self.cache.all()?;
        let of = |offer: &&Offer| all.iter().find(|kernel| offer.is(kernel)).cloned();
        let found: Vec<Kernel> = chosen.iter().filter_map(of).collect();
        debug_assert_eq!(found.len(), chosen.len(), "each was there or fetched");
        Ok(found)
    }
}

/// What a user says that is a file and not a name.
fn is_file(text: &str) -> bool {
    text.contains(['/', '='])
}

fn named(kernel: Kernel, name: &str) -> Kernel {
    Kernel {
        name: name.to_owned(),
        ..kernel
    }
}

fn choose<'a>(wanted: &Wanted, offers: &'a [Offer]) -> Result<&'a Offer, LabError> {
    let of_name = offers.iter().filter(|offer| wanted.is(&offer.release));
    let newest = of_name.max_by_key(|offer| Release::read(&offer.release));
    newest.ok_or_else(|| {
        let releases: Vec<&str> = offers.iter().map(|offer| &*offer.release).collect();
        unknown(&wanted.to_string(), "offered", &releases)
    })
}

/// That there is no such kernel, with the series that there are.
fn unknown(name: &str, how: &str, releases: &[&str]) -> LabError {
    let known = releases.iter().filter_map(|release| Release::read(release));
    let known: BTreeSet<(Vec<u32>, String)> = known
        .map(|one| (one.version[..2].to_vec(), one.series()))
        .collect();
    let names: Vec<String> = known.into_iter().map(|(_, name)| name).collect();
    let there_are = if names.is_empty() {
        "there is none".to_owned()
    } else {
        format!("there are {}", names.join(", "))
    };
    LabError::Incomplete {
        what: format!(
            "no kernel called {name:?} is {how}: {there_are}. `rtorb lab kernels --all` lists every version; an image of your own is \
             named by its path, with a / in it"
        ),
    }
}

fn entries(offers: &[Offer], cached: &[Kernel]) -> Vec<Entry> {
    let mut entries: Vec<Entry> = offers
        .iter()
        .map(|offer| Entry {
            name: String::new(),
            release: offer.release.clone(),
            newest: false,
            offer: Some(offer.clone()),
            cached: cached.iter().find(|kernel| offer.is(kernel)).cloned(),
        })
        .collect();
    let alone = cached
        .iter()
        .filter(|kernel| !offers.iter().any(|offer| offer.is(kernel)));
    entries.extend(alone.map(|kernel| Entry {
        name: String::new(),
        release: kernel.release.clone(),
        newest: false,
        offer: None,
        cached: Some(kernel.clone()),
    }));
    entries.sort_by_cached_key(|entry| Release::read(&entry.release));
    let mut seen = BTreeSet::new();
    for entry in entries.iter_mut().rev() {
        let Some(release) = Release::read(&entry.release) else {
            continue;
        };
        entry.newest = seen.insert(release.series());
        entry.name = if entry.newest {
            release.series()
        } else {
            release.name()
        };
    }
    entries
}

#[cfg(test)]
mod tests;
