//! The layers of the workspace: who may depend on whom, within a crate too, and what a layer may not touch.
//!
//! ARCHITECTURE.md says why; these are the rules as data. `cargo test --workspace` checks them too.

use std::fmt;
use std::path::Path;

use anyhow::{Context, bail};

use crate::metadata::{Metadata, Package};
use crate::modules::cycles;
use crate::sources::{Line, code, rust_files};
use crate::test_files::{forgotten, never_run};

/// Prints what is broken, and fails if anything is.
pub(crate) fn run(workspace: &Path) -> anyhow::Result<()> {
    let broken = check(workspace)?;
    for broken in &broken {
        eprintln!("{broken}");
    }
    if !broken.is_empty() {
        bail!("{} breaches of the layers", broken.len());
    }
    println!("the layers hold");
    Ok(())
}

/// One breach of a rule.
#[derive(Debug, PartialEq, Eq)]
struct Breach {
    place: String,
    why: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.why)
    }
}

/// What a package of ours may depend on: at run time, and in its build script.
struct Layer {
    name: &'static str,
    needs: &'static [&'static str],
    builds_with: &'static [&'static str],
}

/// From the top to the bottom. A package that is not here may not exist.
const LAYERS: &[Layer] = &[
    Layer {
        name: "xtask",
        needs: &[],
        builds_with: &[],
    },
    Layer {
        name: "rtorb-instructions",
        needs: &["rtorb"],
        builds_with: &["rtorb-idl"],
    },
    Layer {
        name: "rtorb-tests",
        needs: &["rtorb", "rtorb-wire", "rtorb-os"],
        builds_with: &["rtorb-idl"],
    },
    Layer {
        name: "rtorb-tango",
        needs: &["rtorb", "rtorb-os"],
        builds_with: &["rtorb-idl"],
    },
    Layer {
        name: "rtorb-thermostat",
        needs: &["rtorb", "rtorb-os"],
        builds_with: &["rtorb-idl"],
    },
    Layer {
        name: "rtorb-examples",
        needs: &["rtorb-services", "rtorb", "rtorb-os"],
        builds_with: &["rtorb-idl"],
    },
    Layer {
        name: "rtorb-cli",
        needs: BELOW_THE_COMMAND,
        builds_with: &["rtorb-idl"],
    },
    Layer {
        name: "rtorb-kernels",
        needs: &[
            "rtorb-lab",
            "rtorb-report",
            "rtorb-results",
            "rtorb-host",
            "rtorb-os",
        ],
        builds_with: &[],
    },
    Layer {
        name: "rtorb-lab",
        needs: &[
            "rtorb-results",
            "rtorb-host",
            "rtorb-services",
            "rtorb-sched",
            "rtorb-embedded-cubit",
            "rtorb-embedded",
            "rtorb",
            "rtorb-wire",
            "rtorb-os",
        ],
        builds_with: &["rtorb-idl"],
    },
    Layer {
        name: "rtorb-embedded-cubit",
        needs: &["rtorb-embedded"],
        builds_with: &["rtorb-idl"],
    },
    Layer {
        name: "rtorb-report",
        needs: &["rtorb-results", "rtorb-host"],
        builds_with: &[],
    },
    Layer {
        name: "rtorb-results",
        needs: &["rtorb-host", "rtorb-sched"],
        builds_with: &[],
    },
    Layer {
        name: "rtorb-host",
        needs: &["rtorb-os"],
        builds_with: &[],
    },
    Layer {
        name: "rtorb-dynamic",
        needs: &["rtorb-idl", "rtorb", "rtorb-wire", "rtorb-os"],
        builds_with: &[],
    },
    Layer {
        name: "rtorb-services",
        needs: &["rtorb-sched", "rtorb", "rtorb-os"],
        builds_with: &["rtorb-idl"],
    },
    Layer {
        name: "rtorb",
        needs: &["rtorb-core", "rtorb-wire", "rtorb-os"],
        builds_with: &[],
    },
    Layer {
        name: "rtorb-embedded",
        needs: &["rtorb-core", "rtorb-wire"],
        builds_with: &[],
    },
    Layer {
        name: "rtorb-core",
        needs: &["rtorb-wire"],
        builds_with: &[],
    },
    Layer {
        name: "rtorb-sched",
        needs: &[],
        builds_with: &[],
    },
    Layer {
        name: "rtorb-idl",
        needs: &[],
        builds_with: &[],
    },
    Layer {
        name: "rtorb-wire",
        needs: &[],
        builds_with: &[],
    },
    Layer {
        name: "rtorb-os",
        needs: &[],
        builds_with: &[],
    },
];

const BELOW_THE_COMMAND: &[&str] = &[
    "rtorb-kernels",
    "rtorb-lab",
    "rtorb-report",
    "rtorb-results",
    "rtorb-host",
    "rtorb-dynamic",
    "rtorb-services",
    "rtorb-sched",
    "rtorb-idl",
    "rtorb",
    "rtorb-wire",
    "rtorb-os",
];

/// Words that may not stand in the code of packages, and why.
struct Ban {
    packages: &'static [&'static str],
    /// Only lines with this text are looked at. An import over several lines is one.
    on_lines_with: &'static str,
    words: &'static [&'static str],
    /// The ends of the paths of files in which they may stand, each with its reason.
    but_in: &'static [(&'static str, &'static str)],
    why: &'static str,
}

const BANS: &[Ban] = &[
    Ban {
        packages: &["rtorb-wire"],
        on_lines_with: "",
        words: &[
            "std::net",
            "std::fs",
            "std::io",
            "std::thread",
            "std::time",
            "std::process",
            "std::env",
            "rustix",
            "libc::",
        ],
        but_in: &[],
        why: "rtorb-wire does no input or output, waits for nothing and knows no time",
    },
    Ban {
        packages: &["rtorb-embedded"],
        on_lines_with: "",
        words: &["extern crate std", "std::net", "std::thread", "std::time"],
        but_in: &[],
        why: "rtorb-embedded runs where there is no operating system",
    },
    Ban {
        packages: &["rtorb"],
        on_lines_with: "thread::",
        words: &[
            "thread::spawn",
            "thread::scope",
            "std::thread::Builder",
            "thread::sleep",
        ],
        but_in: &[],
        why: "threads are made in rtorb-os only: named, with policy, priority, affinity and stack",
    },
    Ban {
        packages: ON_THE_CALL_PATH,
        on_lines_with: "std::sync::",
        words: &["Mutex", "RwLock", "Condvar", "Barrier", "mpsc"],
        but_in: &[
            (
                "rtorb-os/src/thread.rs",
                "the creator of a thread waits until it has begun, and holds no lock",
            ),
            (
                "rtorb-services/src/events/channel.rs",
                "the creator of a thread waits until it has begun, and holds no lock",
            ),
        ],
        why: "std's locks do not inherit priority; take them from rtorb-os",
    },
    Ban {
        packages: ON_THE_CALL_PATH,
        on_lines_with: "",
        words: &["OnceLock", "LazyLock"],
        but_in: &[
            (
                "rtorb-services/src/naming/changes.rs",
                "only the leader sets an answer, and no thread waits for one by it",
            ),
            (
                "rtorb-services/src/events/plain/core.rs",
                "a client that connects may wait for another one that moves a value; no event does",
            ),
        ],
        why: "a thread that waits for the value gives no priority to the one that makes it; take rtorb_os::set_once::SetOnce",
    },
    Ban {
        packages: &["rtorb"],
        on_lines_with: "SystemTime",
        words: &["SystemTime"],
        but_in: &[(
            "src/orb/builder.rs",
            "makes a number that no other run had, and measures nothing",
        )],
        why: "the time of day jumps; measure and wait by the monotonic clock",
    },
];

/// The packages whose code runs in calls and in what services do for them.
const ON_THE_CALL_PATH: &[&str] = &[
    "rtorb-wire",
    "rtorb-core",
    "rtorb-os",
    "rtorb",
    "rtorb-embedded",
    "rtorb-services",
];

/// Packages under which no thread may start behind the caller's back, and what would start one.
const NO_RUNTIME_BELOW: &[&str] = &[
    "rtorb",
    "rtorb-embedded",
    "rtorb-core",
    "rtorb-wire",
    "rtorb-os",
];
const RUNTIMES: &[&str] = &[
    "tokio",
    "async-std",
    "smol",
    "async-executor",
    "async-global-executor",
    "futures-executor",
    "glommio",
    "monoio",
    "rayon",
    "rayon-core",
];

/// The one package that may use `unsafe`.
const UNSAFE: &str = "rtorb-os";

/// The libraries among whose top modules there is no cycle.
const ACYCLIC: &[&str] = &[
    "rtorb",
    "rtorb-embedded",
    "rtorb-services",
    "rtorb-sched",
    "rtorb-core",
    "rtorb-wire",
    "rtorb-os",
    "rtorb-idl",
    "rtorb-host",
    "rtorb-results",
    "rtorb-report",
    "rtorb-kernels",
    "rtorb-lab",
];

fn check(workspace: &Path) -> anyhow::Result<Vec<Breach>> {
    let metadata = Metadata::of(workspace)?;
    let mut broken = Vec::new();
    for package in metadata.members() {
        let Some(layer) = LAYERS.iter().find(|layer| layer.name == package.name) else {
            broken.push(breach(
                &package.name,
                "is in no layer: give it a place in xtask/src/layers.rs and ARCHITECTURE.md",
            ));
            continue;
        };
        edges(layer, package, &mut broken);
        safe(package, &mut broken)?;
        words(package, &mut broken)?;
        acyclic(package, &mut broken)?;
        tested(package, &mut broken)?;
    }
    for package in NO_RUNTIME_BELOW {
        let reached = metadata.reached_from(package);
        let runtimes = RUNTIMES.iter().filter(|runtime| reached.contains(*runtime));
        broken.extend(runtimes.map(|runtime| {
            breach(
                package,
                &format!("reaches {runtime}, which starts threads of its own"),
            )
        }));
    }
    Ok(broken)
}

fn edges(layer: &Layer, package: &Package, broken: &mut Vec<Breach>) {
    for dependency in &package.dependencies {
        let ours = LAYERS.iter().any(|layer| layer.name == dependency.name);
        let allowed = match dependency.kind.as_deref() {
            None => layer.needs.contains(&dependency.name.as_str()),
            Some("build") => layer.builds_with.contains(&dependency.name.as_str()),
            // A test may use whatever it tests with.
            Some(_) => true,
        };
        if ours && !allowed {
            broken.push(breach(
                &package.name,
                &format!("may not depend on {}", dependency.name),
            ));
        }
    }
}

fn safe(package: &Package, broken: &mut Vec<Breach>) -> anyhow::Result<()> {
    let forbids = package.name != UNSAFE;
    for target in package.targets.iter().filter(|target| {
        target
            .kind
            .iter()
            .any(|kind| kind == "lib" || kind == "bin")
    }) {
        let lines = code(&target.src_path)?;
        if forbids
            && !lines
                .iter()
                .any(|line| line.code.trim() == "#![forbid(unsafe_code)]")
        {
            broken.push(breach(
                &target.src_path.display().to_string(),
                "lacks #![forbid(unsafe_code)]",
            ));
        }
    }
    Ok(())
}

fn words(package: &Package, broken: &mut Vec<Breach>) -> anyhow::Result<()> {
    let folder = package
        .manifest_path
        .parent()
        .context("a manifest is in a folder")?;
    let bans: Vec<_> = BANS
        .iter()
        .filter(|ban| ban.packages.contains(&package.name.as_str()))
        .collect();
    if bans.is_empty() {
        return Ok(());
    }
    for file in rust_files(&folder.join("src"))? {
        let bans: Vec<_> = bans
            .iter()
            .filter(|ban| !ban.but_in.iter().any(|(but, _)| file.ends_with(but)))
            .collect();
        for line in with_whole_imports(code(&file)?) {
            for ban in bans
                .iter()
                .filter(|ban| line.code.contains(ban.on_lines_with))
            {
                let place = || format!("{}:{}", file.display(), line.number);
                let words = ban.words.iter().filter(|word| line.code.contains(*word));
                broken.extend(words.map(|word| breach(&place(), &format!("{word}: {}", ban.why))));
            }
        }
    }
    Ok(())
}

/// The lines, with each import on one of them.
fn with_whole_imports(lines: Vec<Line>) -> Vec<Line> {
    let mut whole: Vec<Line> = Vec::new();
    let mut is_open = false;
    for line in lines {
        let begins = line.code.trim_start().starts_with("use ") || line.code.contains(" use ");
        let ends = line.code.contains(';');
        match whole.last_mut().filter(|_| is_open) {
            Some(import) => import.code.push_str(&line.code),
            None => whole.push(line),
        }
        is_open = (is_open || begins) && !ends;
    }
    whole
}

/// No top module of a library uses one that uses it, directly or through others. Cargo and [`LAYERS`] keep cycles of crates out.
fn acyclic(package: &Package, broken: &mut Vec<Breach>) -> anyhow::Result<()> {
    let name = package.name.as_str();
    if !ACYCLIC.contains(&name) {
        return Ok(());
    }
    let folder = package
        .manifest_path
        .parent()
        .context("a manifest is in a folder")?;
    let cycles = cycles(&folder.join("src"))?;
    broken.extend(cycles.iter().map(|edge| {
        breach(
            &format!("{}:{}", edge.file.display(), edge.line),
            &format!("`{}` uses `{}`, which uses it in turn", edge.from, edge.to),
        )
    }));
    Ok(())
}

/// Every test that is written is run.
fn tested(package: &Package, broken: &mut Vec<Breach>) -> anyhow::Result<()> {
    let whys = [
        (forgotten(package)?, "is a module of no test program"),
        (
            never_run(package)?,
            "has tests, but its target has `test = false`",
        ),
    ];
    for (files, why) in whys {
        broken.extend(
            files
                .iter()
                .map(|file| breach(&file.display().to_string(), why)),
        );
    }
    Ok(())
}

fn breach(place: &str, why: &str) -> Breach {
    Breach {
        place: place.to_owned(),
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{LAYERS, Line, check, with_whole_imports};

    #[test]
    fn the_workspace_keeps_its_layers() {
        let broken = check(&crate::workspace()).expect("cargo answers");
        let lines: Vec<_> = broken.iter().map(ToString::to_string).collect();
        assert!(lines.is_empty(), "\n{}", lines.join("\n"));
    }

    #[test]
    fn an_import_over_several_lines_is_looked_at_as_one() {
        let text = "use core::fmt;\npub use std::sync::{\n    Arc,\n    Condvar,\n};\nfn f() {\n}";
        let lines = text.lines().zip(1..).map(|(code, number)| Line {
            number,
            code: code.to_owned(),
        });
        let whole = with_whole_imports(lines.collect());
        let import = &whole[1];
        assert!(import.code.contains("std::sync::") && import.code.contains("Condvar"));
        assert_eq!((import.number, whole.len()), (2, 4));
    }

    #[test]
    fn a_layer_needs_only_what_stands_below_it() {
        for (at, layer) in LAYERS.iter().enumerate() {
            for need in layer.needs.iter().chain(layer.builds_with) {
                let below = LAYERS[at + 1..].iter().any(|lower| lower.name == *need);
                assert!(below, "{} needs {need}, which is not below it", layer.name);
            }
        }
    }
}
