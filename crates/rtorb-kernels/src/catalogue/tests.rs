//! The catalogue on a source whose answers are written down here.

use std::cell::Cell;
use std::fs;

use super::image::tests::image_of;
use super::*;
use crate::sha256::sha256;

/// Offers what the recorded index has, and makes files of it.
#[derive(Debug, Default)]
struct Recorded {
    /// What a download does.
    fault: Fault,
    downloads: std::rc::Rc<Cell<usize>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Fault {
    #[default]
    None,
    WrongDigest,
    WrongKernel,
    Network,
    Interrupted,
    NoIndex,
}

/// What the file of a package has in it.
fn content(offer: &Offer) -> Vec<u8> {
    image_of(&format!("{} (debian) #1 SMP", offer.release))
}

fn recorded_offers() -> Vec<Offer> {
    let shown = source::tests::recorded();
    let with_digest = |offer: Offer| Offer {
        package: Package {
            sha256: sha256(&content(&offer)),
            ..offer.package.clone()
        },
        ..offer
    };
    shown.into_iter().map(with_digest).collect()
}

impl Source for Recorded {
    fn offers(&self, _: &Interrupt) -> Result<Vec<Offer>, LabError> {
        match self.fault {
            Fault::NoIndex => Err(LabError::Incomplete {
                what: "no index".to_owned(),
            }),
            _ => Ok(recorded_offers()),
        }
    }

    fn download(
        &self,
        offer: &Offer,
        folder: &Path,
        seen: &mut dyn FnMut(u64),
        _: &Interrupt,
    ) -> Result<PathBuf, LabError> {
        self.downloads.set(self.downloads.get() + 1);
        let path = folder.join("package.deb");
        seen(1);
        let octets = match self.fault {
            Fault::WrongDigest => b"something else".to_vec(),
            _ => content(offer),
        };
        fs::write(&path, octets).unwrap();
        match self.fault {
            Fault::Network => Err(LabError::process("apt-get", "no network")),
            Fault::Interrupted => Err(LabError::Interrupted),
            _ => Ok(path),
        }
    }

    fn unpack(&self, package: &Path, folder: &Path, _: &Interrupt) -> Result<Unpacked, LabError> {
        let image = folder.join("vmlinuz-x");
        match self.fault {
            Fault::WrongKernel => fs::write(&image, image_of("5.10.0-1-amd64 (x)")).unwrap(),
            _ => fs::copy(package, &image).map(drop).unwrap(),
        }
        let modules = vec![folder.join("veth.ko.xz")];
        fs::write(&modules[0], MODULE).unwrap();
        Ok(Unpacked { image, modules })
    }
}

/// What a module has in it.
const MODULE: &[u8] = b"the code of a virtual Ethernet device";

#[derive(Default)]
struct Counted {
    steps: usize,
    done: usize,
}

impl Progress for Counted {
    fn begin(&mut self, steps: usize) {
        self.steps = steps;
    }
    fn step(&mut self, _: &str) {
        self.done += 1;
    }
    fn note(&mut self, _: &str) {}
}

fn catalogue(folder: &Path, fault: Fault) -> Catalogue {
    let source = Recorded {
        fault,
        ..Recorded::default()
    };
    Catalogue::at(folder.join("kernels"), Box::new(source))
}

fn ensure(catalogue: &Catalogue, names: &[&str]) -> Result<Vec<Kernel>, LabError> {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    catalogue.ensure(&names, &mut Counted::default(), &Interrupt::new())
}

#[test]
fn a_kernel_is_fetched_once_and_found_by_its_names() {
    let folder = tempfile::tempdir().unwrap();
    let downloads = std::rc::Rc::default();
    let source = Recorded {
        downloads: std::rc::Rc::clone(&downloads),
        ..Recorded::default()
    };
    let catalogue = Catalogue::at(folder.path().join("kernels"), Box::new(source));
    let names = ["6.12-rt".to_owned(), "6.12.117-rt".to_owned()];
    let mut progress = Counted::default();
    let fetched = catalogue.ensure(&names, &mut progress, &Interrupt::new());
    let fetched = fetched.unwrap();
    assert_eq!(downloads.get(), 1, "both names are one kernel");
    assert_eq!((progress.done, fetched.len()), (108, 2));
    for (kernel, name) in fetched.iter().zip(&names) {
        assert_eq!(
            (&*kernel.name, &*kernel.release),
            (&**name, "6.12.117+deb12-rt-amd64")
        );
        assert_eq!(kernel.sha256, sha256(&fs::read(&kernel.image).unwrap()));
    }
    assert_eq!(ensure(&catalogue, &["6.12-rt"]).unwrap()[0], fetched[0]);
    assert_eq!(catalogue.cached("6.12-rt").unwrap(), fetched[0]);
    assert_eq!(downloads.get(), 1);
    let place = catalogue.cache.folder(&fetched[0]).unwrap();
    assert_eq!(fetched[0].image.parent(), Some(&*place));
}

#[test]
fn a_series_is_the_newest_that_is_cached() {
    let folder = tempfile::tempdir().unwrap();
    let catalogue = catalogue(folder.path(), Fault::None);
    ensure(&catalogue, &["6.12.115-rt"]).unwrap();
    let release = |catalogue: &Catalogue| catalogue.cached("6.12-rt").unwrap().release;
    assert_eq!(
        release(&catalogue),
        "6.12.115+deb12-rt-amd64",
        "what is there is used"
    );
    let fetched = catalogue.fetch(
        &["6.12-rt".to_owned()],
        &mut Counted::default(),
        &Interrupt::new(),
    );
    assert_eq!(fetched.unwrap()[0].name, "6.12-rt");
    assert_eq!(release(&catalogue), "6.12.117+deb12-rt-amd64");
}

#[test]
fn what_is_listed_has_names_by_which_it_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let catalogue = catalogue(folder.path(), Fault::None);
    ensure(&catalogue, &["6.12"]).unwrap();
    let (entries, why) = catalogue.list(&Interrupt::new()).unwrap();
    assert_eq!(why, None);
    let shown: Vec<(&str, bool, bool)> = entries
        .iter()
        .map(|entry| (&*entry.name, entry.newest, entry.cached.is_some()))
        .collect();
    assert_eq!(
        shown,
        [
            ("6.1-rt", true, false),
            ("6.12.115-rt", false, false),
            ("6.12", true, true),
            ("6.12-rt", true, false),
        ]
    );
    let without = Catalogue::at(
        folder.path().join("kernels"),
        Box::new(Recorded {
            fault: Fault::NoIndex,
            ..Recorded::default()
        }),
    );
    let (entries, why) = without.list(&Interrupt::new()).unwrap();
    assert_eq!((entries.len(), why.as_deref()), (1, Some("no index")));
}

#[test]
fn nothing_is_kept_of_what_went_wrong() {
    let faults = [
        (Fault::WrongDigest, "was not kept"),
        (Fault::WrongKernel, "5.10.0-1-amd64"),
        (Fault::Network, "no network"),
        (Fault::Interrupted, "interrupted"),
        (Fault::NoIndex, "no index"),
    ];
    for (fault, says) in faults {
        let folder = tempfile::tempdir().unwrap();
        let catalogue = catalogue(folder.path(), fault);
        let error = ensure(&catalogue, &["6.12-rt"]).unwrap_err().to_string();
        assert!(error.contains(says), "{fault:?}: {error}");
        assert!(catalogue.cached("6.12-rt").is_err());
        let left = fs::read_dir(catalogue.folder()).into_iter().flatten();
        let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        assert!(
            left.iter().all(|name| name == ".lock"),
            "{fault:?}: {left:?}"
        );
    }
}

#[test]
fn what_a_killed_fetch_left_is_not_taken_for_whole() {
    let folder = tempfile::tempdir().unwrap();
    let catalogue = catalogue(folder.path(), Fault::None);
    let half = catalogue.folder().join(".half-done-1/kernel");
    fs::create_dir_all(&half).unwrap();
    fs::write(half.join("vmlinuz"), b"half").unwrap();
    assert!(catalogue.cached("6.12").is_err());
    ensure(&catalogue, &["6.12"]).unwrap();
    assert!(!half.exists(), "the next fetch removes it");
}

#[test]
fn a_cached_image_that_was_changed_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let catalogue = catalogue(folder.path(), Fault::None);
    let image = ensure(&catalogue, &["6.12"]).unwrap().remove(0).image;
    fs::write(image, image_of("6.12.117+deb12-amd64 (me)")).unwrap();
    let error = catalogue.cached("6.12").unwrap_err().to_string();
    assert!(error.contains("kernels remove"), "{error}");
}

#[test]
fn modules_come_with_a_kernel_and_an_image_of_ones_own_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let catalogue = catalogue(folder.path(), Fault::None);
    let kernel = ensure(&catalogue, &["6.12"]).unwrap().remove(0);
    let archive = modules(&kernel).unwrap();
    for wanted in [&b"modules/veth.ko.xz"[..], MODULE] {
        let mut places = archive.windows(wanted.len());
        assert!(places.any(|place| place == wanted));
    }
    fs::remove_file(kernel.image.with_file_name(cache::MODULES)).unwrap();
    let error = modules(&kernel).unwrap_err().to_string();
    assert!(error.contains("kernels fetch 6.12"), "{error}");
    let names = ["6.12".to_owned()];
    let fetched = catalogue.fetch(&names, &mut Counted::default(), &Interrupt::new());
    assert_eq!(modules(&fetched.unwrap()[0]).unwrap(), archive);
    let own = Kernel {
        package: None,
        board: None,
        ..kernel
    };
    assert_eq!(modules(&own).unwrap(), b"");
}

#[test]
fn an_unknown_name_is_told_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let catalogue = catalogue(folder.path(), Fault::None);
    let error = ensure(&catalogue, &["6.6"]).unwrap_err().to_string();
    assert!(
        error.contains("there are 6.1-rt, 6.12, 6.12-rt."),
        "{error}"
    );
    let error = ensure(&catalogue, &["linux"]).unwrap_err().to_string();
    assert!(error.contains("names no kernel"), "{error}");
}

#[test]
fn removed_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let catalogue = catalogue(folder.path(), Fault::None);
    ensure(&catalogue, &["6.12-rt", "6.12.115-rt", "6.12"]).unwrap();
    let remove = || catalogue.remove(&["6.12-rt".to_owned()], &Interrupt::new());
    let removed = remove().unwrap();
    assert_eq!(removed.len(), 2, "all versions of the series");
    assert!(catalogue.cached("6.12").is_ok());
    let error = remove().unwrap_err().to_string();
    assert!(error.contains("there are 6.12."), "{error}");
}

#[test]
fn nothing_is_removed_while_another_program_uses_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let catalogue = catalogue(folder.path(), Fault::None);
    ensure(&catalogue, &["6.12"]).unwrap();
    let interrupt = Interrupt::new();
    interrupt.request();
    let remove = || catalogue.remove(&["6.12".to_owned()], &interrupt);
    let held = catalogue.cache.lock(&Interrupt::new()).unwrap();
    assert!(matches!(remove(), Err(LabError::Interrupted)));
    assert!(catalogue.cached("6.12").is_ok());
    drop(held);
    assert_eq!(remove().unwrap().len(), 1);
}

#[test]
fn a_file_is_a_kernel_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bzImage");
    fs::write(&path, image_of("6.17.0-mine (me@here) #1 SMP")).unwrap();
    let catalogue = catalogue(folder.path(), Fault::NoIndex);
    let kernel = catalogue.cached(path.to_str().unwrap()).unwrap();
    assert_eq!(
        (&*kernel.name, &*kernel.release),
        ("6.17.0-mine", "6.17.0-mine")
    );
    assert_eq!(kernel.package, None);
    let named = format!("mine={}", path.display());
    let kernels = ensure(&catalogue, &[&named]).unwrap();
    assert_eq!(kernels[0].name, "mine");
    let place = catalogue.cache.folder(&kernels[0]).unwrap();
    assert!(place.starts_with(catalogue.folder()) && place.is_dir());
    assert!(ensure(&catalogue, &["./nothing"]).is_err());
}
