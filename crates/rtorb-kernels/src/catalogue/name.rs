//! How kernels are named: `6.12-rt` is a series and a flavour, `6.12.117-rt` one version of it, `6.12.117+deb12-rt-amd64` what the
//! kernel calls itself.

use std::fmt;
use std::str::FromStr;

use rtorb_lab::LabError;

/// What Debian's kernels call themselves, in parts; ordered by version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Release {
    /// `[6, 12, 117]`, or `[6, 1, 0, 56]` where the last number counts changes of the kernel's interface.
    pub(super) version: Vec<u32>,
    /// Such as `deb12`: which of the distribution's releases it was built for; empty where that is not said.
    built_for: String,
    /// `rt`, `cloud`; empty for the ordinary one.
    flavour: String,
}

impl Release {
    /// Reads `6.12.117+deb12-rt-amd64` and `6.1.0-56-amd64`; `None` for what is not of this form.
    pub(super) fn read(text: &str) -> Option<Self> {
        let rest = text.strip_suffix(ARCHITECTURE)?;
        let (version, flavour) = split_flavour(rest);
        let (version, built_for) = version.split_once('+').unwrap_or((version, ""));
        Some(Self {
            version: numbers(version)?,
            built_for: built_for.to_owned(),
            flavour: flavour.to_owned(),
        })
    }

    /// The first two numbers and the flavour: `6.12-rt`.
    pub(super) fn series(&self) -> String {
        with_flavour(&dotted(&self.version[..2]), &self.flavour)
    }

    /// All numbers and the flavour: `6.12.117-rt`, `6.1.0-56-rt`.
    pub(super) fn name(&self) -> String {
        let (first, interface) = self.version.split_at(self.version.len().min(3));
        let version = match interface {
            [] => dotted(first),
            _ => format!("{}-{}", dotted(first), dotted(interface)),
        };
        with_flavour(&version, &self.flavour)
    }
}

/// What a user asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    text: String,
}

impl Wanted {
    /// Whether the kernel that calls itself so is one of those.
    pub(super) fn is(&self, release: &str) -> bool {
        let read = Release::read(release);
        release == self.text
            || read.is_some_and(|one| one.series() == self.text || one.name() == self.text)
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl FromStr for Wanted {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let (version, _) = split_flavour(text.strip_suffix(ARCHITECTURE).unwrap_or(text));
        let version = version.split('+').next().unwrap_or_default();
        match numbers(version) {
            Some(_) => Ok(Self {
                text: text.to_owned(),
            }),
            None => Err(LabError::Incomplete {
                what: format!(
                    "{text:?} names no kernel: say a series such as 6.12 or 6.12-rt, a version such as 6.12.117-rt, or the path of an image, \
                     with a / in it"
                ),
            }),
        }
    }
}

/// `6.1.0-56-rt` is `6.1.0-56` and `rt`.
fn split_flavour(text: &str) -> (&str, &str) {
    match text.rsplit_once('-') {
        Some((version, flavour))
            if flavour.starts_with(|first: char| first.is_ascii_alphabetic()) =>
        {
            (version, flavour)
        }
        _ => (text, ""),
    }
}

fn with_flavour(version: &str, flavour: &str) -> String {
    match flavour {
        "" => version.to_owned(),
        _ => format!("{version}-{flavour}"),
    }
}

/// Two to five numbers with dots or hyphens between them.
fn numbers(version: &str) -> Option<Vec<u32>> {
    let numbers: Option<Vec<u32>> = version
        .split(['.', '-'])
        .map(|one| one.parse().ok())
        .collect();
    numbers.filter(|numbers| (2..=5).contains(&numbers.len()))
}

fn dotted(numbers: &[u32]) -> String {
    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    numbers.join(".")
}

/// The end of the name of every kernel that the emulated machine can boot.
const ARCHITECTURE: &str = "-amd64";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_has_a_series_and_a_name() {
        let names = |text: &str| {
            let release = Release::read(text).unwrap();
            (release.series(), release.name())
        };
        let pair = |series: &str, name: &str| (series.to_owned(), name.to_owned());
        assert_eq!(
            names("6.12.117+deb12-rt-amd64"),
            pair("6.12-rt", "6.12.117-rt")
        );
        assert_eq!(names("6.12.117+deb12-amd64"), pair("6.12", "6.12.117"));
        assert_eq!(
            names("6.1.0-56-cloud-amd64"),
            pair("6.1-cloud", "6.1.0-56-cloud")
        );
        assert_eq!(names("6.1.0-56-amd64"), pair("6.1", "6.1.0-56"));
        for other in ["6.12.117-arm64", "amd64", "-amd64", "six-amd64", "6-amd64"] {
            assert_eq!(Release::read(other), None, "{other}");
        }
    }

    #[test]
    fn versions_are_ordered_by_their_numbers() {
        let read = |text: &str| Release::read(text).unwrap();
        assert!(read("6.12.117+deb12-amd64") > read("6.12.98+deb12-amd64"));
        assert!(read("6.12.98+deb12-amd64") > read("6.1.0-56-amd64"));
        assert!(read("6.1.0-56-amd64") > read("6.1.0-9-amd64"));
    }

    #[test]
    fn a_name_is_a_series_a_version_or_a_release() {
        let release = "6.12.117+deb12-rt-amd64";
        for name in ["6.12-rt", "6.12.117-rt", release] {
            assert!(name.parse::<Wanted>().unwrap().is(release), "{name}");
        }
        for name in ["6.12", "6.12.117", "6.1-rt", "6.12.11-rt"] {
            assert!(!name.parse::<Wanted>().unwrap().is(release), "{name}");
        }
        for nonsense in [
            "",
            "rt",
            "6",
            "6.12.x",
            "vmlinuz",
            "6.12; rm",
            "6.12.117+deb12-rt-amd64; id",
        ] {
            let known = nonsense.parse::<Wanted>();
            assert!(known.is_err() || !known.unwrap().is(release), "{nonsense}");
        }
    }
}
