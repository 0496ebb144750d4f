//! The features of `rtorb-services`: each alone, and none, compile without warnings, and the clients alone bring no package beside
//! those of the ORB. The command without the laboratory compiles, says so, and brings no package of it.

use anyhow::{Context, ensure};
use xshell::{Shell, cmd};

use crate::metadata::{members, needed};

/// Checks each feature by clippy.
pub(crate) fn run(sh: &Shell) -> anyhow::Result<()> {
    services(sh)?;
    command_without_laboratory(sh)
}

fn services(sh: &Shell) -> anyhow::Result<()> {
    let members = members(sh)?;
    let services = members.iter().find(|member| *member.name == *SERVICES);
    let services = services.with_context(|| format!("{SERVICES} is no package"))?;
    let features = services.features.keys().filter(|name| *name != "default");
    for feature in features.map(String::as_str).chain([""]) {
        let alone = ["--no-default-features", "--features", feature];
        cmd!(
            sh,
            "cargo clippy -p {SERVICES} --lib --quiet {alone...} -- -D warnings"
        )
        .run()?;
    }
    let linked = ["--edges", "normal", "--no-default-features", "--package"];
    let clients = needed(sh, &[&linked[..], &[SERVICES]].concat())?;
    let orb = needed(sh, &[&linked[..], &["rtorb"]].concat())?;
    let more: Vec<_> = clients.difference(&orb).collect();
    ensure!(
        more == [SERVICES],
        "the clients alone bring packages: {more:?}"
    );
    Ok(())
}

fn command_without_laboratory(sh: &Shell) -> anyhow::Result<()> {
    let bare = ["-p", COMMAND, "--no-default-features", "--bin", "rtorb"];
    cmd!(sh, "cargo clippy {bare...} --quiet -- -D warnings").run()?;
    cmd!(sh, "cargo test {bare...} --quiet").run()?;
    let linked = ["--edges", "normal,build", "--no-default-features", "-p"];
    let needed = needed(sh, &[&linked[..], &[COMMAND]].concat())?;
    let of_laboratory = LABORATORY.iter().filter(|name| needed.contains(**name));
    let of_laboratory: Vec<_> = of_laboratory.collect();
    ensure!(
        of_laboratory.is_empty(),
        "the command without the laboratory brings its packages: {of_laboratory:?}"
    );
    Ok(())
}

const SERVICES: &str = "rtorb-services";
const COMMAND: &str = "rtorb-cli";
/// Packages that the laboratory alone needs.
const LABORATORY: [&str; 15] = [
    "rtorb-lab",
    "rtorb-kernels",
    "rtorb-recording",
    "rtorb-report",
    "rtorb-host",
    "rtorb-instruments",
    "rtorb-embedded",
    "indicatif",
    "plotly",
    "askama",
    "inferno",
    "csv",
    "prost",
    "statrs",
    "tempfile",
];
