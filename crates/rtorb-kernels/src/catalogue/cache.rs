//! Where kernels are kept: a folder for each, which is there in whole or not at all.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rtorb_lab::LabError;
use rtorb_lab::experiment::Progress;
use rtorb_lab::processes::interrupt::Interrupt;
use rtorb_results::write_json;
use rustix::fs::statvfs;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::image;
use super::{Kernel, Offer, Source};
use crate::initramfs;

/// The folder of the cache. It is made by the first fetch.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    path: PathBuf,
}

impl Cache {
    pub(super) fn open(path: PathBuf) -> Self {
        Self { path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What is cached, in the order of the names of the folders. None when there is no cache yet.
    pub(super) fn all(&self) -> Result<Vec<Kernel>, LabError> {
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(LabError::file(&self.path))?,
        };
        let mut folders: Vec<PathBuf> = entries
            .filter_map(Result::ok)
            .map(|entry| entry.path())
            .filter(|path| !is_hidden(path) && path.join(DESCRIPTION).is_file())
            .collect();
        folders.sort();
        folders.iter().map(|folder| read(folder)).collect()
    }

    /// Waits for the lock of the cache: only its holder fetches kernels or removes them. Removes what an interrupted fetch has left.
    pub(super) fn lock(&self, interrupt: &Interrupt) -> Result<File, LabError> {
        fs::create_dir_all(&self.path).map_err(LabError::file(&self.path))?;
        let path = self.path.join(LOCK);
        let file = File::create(&path).map_err(LabError::file(&path))?;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if interrupt.requested() => {
                    return Err(LabError::Interrupted);
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(POLL),
                Err(TryLockError::Error(error)) => return Err(LabError::file(path)(error)),
            }
        }
        let entries = fs::read_dir(&self.path).map_err(LabError::file(&self.path))?;
        for left in entries.filter_map(Result::ok) {
            if left.file_name().to_string_lossy().starts_with(HALF_DONE) {
                fs::remove_dir_all(left.path()).map_err(LabError::file(left.path()))?;
            }
        }
        Ok(file)
    }

    /// Downloads, checks and unpacks; the caller holds the lock.
    pub(super) fn fetch(
        &self,
        offer: &Offer,
        source: &dyn Source,
        progress: &mut dyn Progress,
        interrupt: &Interrupt,
    ) -> Result<Kernel, LabError> {
        self.check_room(offer.bytes)?;
        let work = TempDir::with_prefix_in(HALF_DONE, &self.path);
        let work = work.map_err(LabError::file(&self.path))?;
        let mut steps = Steps::new(offer, progress);
        let package = source.download(
            offer,
            work.path(),
            &mut |bytes| steps.reached(bytes),
            interrupt,
        )?;
        steps.reached(offer.bytes);
        check_digest(&package, offer)?;
        let unpacked = source.unpack(&package, work.path(), interrupt)?;
        let made = work.path().join("kernel");
        let image = made.join(IMAGE);
        let move_there = || {
            fs::create_dir(&made)?;
            fs::write(made.join(MODULES), archive_of_modules(&unpacked.modules)?)?;
            fs::rename(&unpacked.image, &image)
        };
        move_there().map_err(LabError::file(&made))?;
        let kernel = Kernel {
            name: offer.release.clone(),
            release: image::release(&image)?,
            image: IMAGE.into(),
            sha256: sha256_of_file(&image)?,
            package: Some(offer.package.clone()),
            board: None,
        };
        if kernel.release != offer.release {
            let what = format!("holds {} and not {}", kernel.release, offer.release);
            return Err(LabError::process(&offer.package.name, what));
        }
        self.keep(&made, &kernel)
    }

    /// Moves what is whole to its place.
    fn keep(&self, made: &Path, kernel: &Kernel) -> Result<Kernel, LabError> {
        let version = kernel.package.as_ref().map(|package| &*package.version);
        let name = format!("{}_{}", kernel.release, version.unwrap_or_default());
        let place = self.path.join(name.replace('/', "_"));
        let description = made.join(DESCRIPTION);
        let written = write_json(&description, kernel).and_then(|()| {
            for name in [IMAGE, MODULES, DESCRIPTION] {
                File::open(made.join(name))?.sync_all()?;
            }
            // One of another package with this name and version: its digest was another, or it would have been used.
            if place.exists() {
                fs::remove_dir_all(&place)?;
            }
            fs::rename(made, &place)
        });
        written.map_err(LabError::file(&place))?;
        read(&place)
    }

    /// Removes a kernel; the caller holds the lock.
    pub(super) fn remove(&self, kernel: &Kernel) -> Result<(), LabError> {
        let Some(folder) = kernel.image.parent() else {
            return Ok(());
        };
        // Out of sight first: a removal that is killed leaves no half of a kernel that is taken for whole.
        let gone = TempDir::with_prefix_in(HALF_DONE, &self.path);
        let gone = gone.map_err(LabError::file(&self.path))?;
        fs::rename(folder, gone.path().join("kernel")).map_err(LabError::file(folder))?;
        gone.close().map_err(LabError::file(folder))
    }

    /// Of a cached kernel, the folder of its image; of any other, one that is named by its digest.
    pub(super) fn folder(&self, kernel: &Kernel) -> Result<PathBuf, LabError> {
        if let (Some(_), Some(folder)) = (&kernel.package, kernel.image.parent())
            && folder.join(DESCRIPTION).is_file()
        {
            return Ok(folder.to_owned());
        }
        let folder = self.path.join(format!("image-{}", kernel.sha256));
        fs::create_dir_all(&folder).map_err(LabError::file(&folder))?;
        Ok(folder)
    }

    fn check_room(&self, bytes: u64) -> Result<(), LabError> {
        let Ok(room) = statvfs(&self.path) else {
            return Ok(());
        };
        let free = room.f_bavail.saturating_mul(room.f_frsize);
        let needed = bytes + IMAGE_BYTES_MAX;
        if free >= needed {
            return Ok(());
        }
        let what = format!(
            "has {} MB left and a kernel takes {} MB while it is unpacked: make room, or name another folder in RTORB_KERNELS",
            free >> 20,
            needed >> 20
        );
        Err(LabError::folder(&self.path, what))
    }
}

/// Checks a cached image against its description.
///
/// # Errors
/// That it is not what was put there.
pub(super) fn check(kernel: &Kernel) -> Result<(), LabError> {
    if sha256_of_file(&kernel.image)? == kernel.sha256 {
        Ok(())
    } else {
        Err(LabError::Incomplete {
            what: format!(
                "{} is not what was put there: `rtorb lab kernels remove {}`, then fetch it again",
                kernel.image.display(),
                kernel.release
            ),
        })
    }
}

/// # Errors
/// That neither variable is set.
pub(super) fn usual_place() -> Result<PathBuf, LabError> {
    place_of(|name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    })
}

fn place_of(variable: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf, LabError> {
    let below_home = || variable("HOME").map(|home| home.join(".cache"));
    let below_cache = || {
        let cache = variable("XDG_CACHE_HOME").filter(|path| path.is_absolute());
        let cache = cache.or_else(below_home);
        cache.map(|cache| cache.join("rtorb/kernels"))
    };
    variable("RTORB_KERNELS")
        .or_else(below_cache)
        .ok_or_else(|| LabError::Incomplete {
            what: "there is no place for kernels: name a folder in RTORB_KERNELS (HOME is not set)"
                .to_owned(),
        })
}

/// The SHA-256 of a file of any size, in hexadecimal digits.
pub(super) fn sha256_of_file(path: &Path) -> Result<String, LabError> {
    let digest = || -> io::Result<String> {
        let mut file = File::open(path)?;
        let mut digest = Sha256::new();
        let mut chunk = vec![0; 1 << 16];
        loop {
            match file.read(&mut chunk)? {
                0 => break,
                count => digest.update(&chunk[..count]),
            }
        }
        let octets = digest.finalize();
        Ok(octets.iter().map(|octet| format!("{octet:02x}")).collect())
    };
    digest().map_err(LabError::file(path))
}

fn check_digest(package: &Path, offer: &Offer) -> Result<(), LabError> {
    let found = sha256_of_file(package)?;
    if found == offer.package.sha256 {
        return Ok(());
    }
    let what = format!(
        "the downloaded package has the SHA-256 {found}, and {} in the index: it was not kept",
        offer.package.sha256
    );
    Err(LabError::process(&offer.package.name, what))
}

fn read(folder: &Path) -> Result<Kernel, LabError> {
    let path = folder.join(DESCRIPTION);
    let text = fs::read_to_string(&path).map_err(LabError::file(&path))?;
    let kernel: Kernel = serde_json::from_str(&text).map_err(|error| {
        LabError::folder(folder, format!("describes no kernel ({error}): remove it"))
    })?;
    Ok(Kernel {
        image: folder.join(IMAGE),
        ..kernel
    })
}

fn is_hidden(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().starts_with('.')
}

/// The modules in these files, as the kernel unpacks them into the guest's root.
fn archive_of_modules(modules: &[PathBuf]) -> io::Result<Vec<u8>> {
    let file = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        Ok((Path::new(initramfs::MODULES).join(name), fs::read(path)?))
    };
    let mut files: Vec<_> = modules.iter().map(file).collect::<io::Result<_>>()?;
    files.sort();
    initramfs::archive_of(initramfs::MODULES, 0o400, &files)
}

/// Tells a download in megabytes.
struct Steps<'a> {
    progress: &'a mut dyn Progress,
    what: String,
    megabytes: u64,
    told: u64,
}

impl<'a> Steps<'a> {
    fn new(offer: &Offer, progress: &'a mut dyn Progress) -> Self {
        let megabytes = offer.megabytes();
        let what = format!("{}, {megabytes} MB", offer.release);
        Self {
            progress,
            what,
            megabytes,
            told: 0,
        }
    }

    fn reached(&mut self, bytes: u64) {
        let reached = bytes.div_ceil(1_000_000).min(self.megabytes);
        while self.told < reached {
            self.told += 1;
            self.progress.step(&self.what);
        }
    }
}

const DESCRIPTION: &str = "kernel.json";
const IMAGE: &str = "vmlinuz";
/// The archive of the modules that experiments need.
pub(super) const MODULES: &str = "modules.cpio";
const LOCK: &str = ".lock";
/// What begins so is nothing yet.
const HALF_DONE: &str = ".half-done-";
/// With modules: the largest of Debian's has 12 MB, and theirs less than one.
const IMAGE_BYTES_MAX: u64 = 32 << 20;
const POLL: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_where_the_user_says() {
        let place = |set: &[(&str, &str)]| {
            let found = |name: &str| set.iter().find(|(known, _)| *known == name);
            place_of(|name| found(name).map(|(_, value)| value.into()))
                .ok()
                .map(|path| path.display().to_string())
        };
        let home = ("HOME", "/home/a");
        assert_eq!(
            place(&[home]).as_deref(),
            Some("/home/a/.cache/rtorb/kernels")
        );
        assert_eq!(
            place(&[home, ("XDG_CACHE_HOME", "/c")]).as_deref(),
            Some("/c/rtorb/kernels")
        );
        assert_eq!(
            place(&[home, ("XDG_CACHE_HOME", "not/absolute")]).as_deref(),
            Some("/home/a/.cache/rtorb/kernels")
        );
        assert_eq!(place(&[home, ("RTORB_KERNELS", "k")]).as_deref(), Some("k"));
        assert_eq!(place(&[]), None);
    }

    #[test]
    fn a_cache_without_room_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path().to_owned());
        let error = cache.check_room(u64::MAX / 2).unwrap_err().to_string();
        assert!(error.contains("make room"), "{error}");
        assert!(cache.check_room(1).is_ok());
    }
}
