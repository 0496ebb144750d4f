//! The features of `rtorb-services`: each alone, and none, compile without warnings, and the clients alone bring no package beside
//! those of the ORB.

use anyhow::{Context, ensure};
use xshell::{Shell, cmd};

use crate::metadata::{members, needed};

/// Checks each feature by clippy.
pub(crate) fn run(sh: &Shell) -> anyhow::Result<()> {
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

const SERVICES: &str = "rtorb-services";
