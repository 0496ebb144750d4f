//! What makes the load: stress-ng, or this program in a role of its own.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::activity::Sign;
use super::kind::Kind;
use super::{FILE_BYTES, HOGS, WRITE_BYTES};
use crate::error::LabError;
use crate::processes::interrupt::Interrupt;
use crate::processes::tools::run_tool;

/// The program that makes the load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Generator {
    /// stress-ng, with the version that it tells.
    StressNg {
        /// Such as `0.15.06`.
        version: String,
    },
    /// This program.
    Own,
}

impl Generator {
    /// stress-ng where it is installed and answers, otherwise our own.
    ///
    /// # Errors
    /// The interrupt.
    pub fn best(interrupt: &Interrupt) -> Result<Self, LabError> {
        match run_tool(
            Command::new(STRESS_NG).arg("--version"),
            VERSION_TIMEOUT,
            interrupt,
        ) {
            Ok(printed) => Ok(Self::StressNg {
                version: version(&printed),
            }),
            Err(LabError::Interrupted) => Err(LabError::Interrupted),
            Err(_) => Ok(Self::Own),
        }
    }

    /// The program and its version.
    pub(super) fn name(&self) -> String {
        match self {
            Self::StressNg { version } => format!("{STRESS_NG} {version}"),
            Self::Own => format!("rtorb {}", env!("CARGO_PKG_VERSION")),
        }
    }

    /// How a child is told to make this kind of load, with its files in `folder`, for so long at most.
    pub(super) fn order(&self, kind: Kind, folder: &Path, at_most: Duration) -> Order {
        let seconds = at_most.as_secs();
        let folder = folder.display().to_string();
        let arguments = match self {
            Self::StressNg { .. } => stress_ng(kind),
            Self::Own => None,
        };
        let Some((arguments, sign)) = arguments else {
            let role = ["load", kind.name(), &folder, &seconds.to_string()].map(str::to_owned);
            return Order {
                role: role.to_vec(),
                made_by: Self::Own.name(),
                described: kind.described(),
                sign: None,
            };
        };
        let bounds = [
            format!("--timeout={seconds}s"),
            format!("--temp-path={folder}"),
            "--quiet".to_owned(),
        ];
        let described = arguments.join(" ");
        let begin = ["load", "tool", STRESS_NG].map(str::to_owned);
        let role = begin.into_iter().chain(arguments).chain(bounds).collect();
        Order {
            role,
            made_by: self.name(),
            described,
            sign: Some(sign),
        }
    }
}

/// What a child is started with, and how the results say it.
pub(super) struct Order {
    pub(super) role: Vec<String>,
    /// The program and its version.
    pub(super) made_by: String,
    pub(super) described: String,
    /// What shows that it has begun; `None` for a child that says so itself.
    pub(super) sign: Option<Sign>,
}

/// The arguments for two of the kinds that P4 has, and what shows that it does them. The others are always our own: what stress-ng
/// does for them is of another size, and would be compared with an emulated machine, which has none; and its network load has no link
/// of its own.
fn stress_ng(kind: Kind) -> Option<(Vec<String>, Sign)> {
    match kind {
        Kind::Hog => Some((vec![format!("--cpu={HOGS}")], Sign::TasksRan(HOGS))),
        Kind::Disk => Some((
            vec![
                "--hdd=1".to_owned(),
                format!("--hdd-bytes={FILE_BYTES}"),
                format!("--hdd-write-size={WRITE_BYTES}"),
                "--hdd-opts=wr-seq,fsync".to_owned(),
            ],
            Sign::OctetsWritten(BYTES_MIN),
        )),
        _ => None,
    }
}

/// `stress-ng, version 0.15.06 (gcc 12.2.0, x86_64 Linux)`.
fn version(printed: &str) -> String {
    let after = printed
        .split_once("version ")
        .map_or(printed, |(_, after)| after);
    after
        .split_whitespace()
        .next()
        .unwrap_or("unknown")
        .to_owned()
}

const STRESS_NG: &str = "stress-ng";
const BYTES_MIN: u64 = 1 << 20;
const VERSION_TIMEOUT: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read() {
        let printed = "stress-ng, version 0.15.06 (gcc 12.2.0, x86_64 Linux 6.1)\n";
        assert_eq!(version(printed), "0.15.06");
        assert_eq!(version(""), "unknown");
    }

    #[test]
    fn every_order_is_bounded_in_time_and_says_what_it_is() {
        let stress_ng = Generator::StressNg {
            version: "1".to_owned(),
        };
        for generator in [stress_ng, Generator::Own] {
            for &kind in Kind::ALL {
                let order = generator.order(kind, Path::new("/f"), Duration::from_secs(71));
                assert!(
                    order.role.iter().any(|word| word.contains("71")),
                    "{:?}",
                    order.role
                );
                assert!(order.role.iter().any(|word| word.contains("/f")));
                assert!(order.described.len() > 5, "{}", order.described);
                let by_stress_ng =
                    generator != Generator::Own && [Kind::Hog, Kind::Disk].contains(&kind);
                assert_eq!(order.sign.is_some(), by_stress_ng);
                assert_eq!(order.made_by.starts_with(STRESS_NG), by_stress_ng);
            }
        }
    }
}
