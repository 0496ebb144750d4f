//! `cargo xtask release`: all that a release publishes, at `release-artefacts` in the target folder, each part of it installed and run once.
//!
//! It publishes nothing: a maintainer does that with what is there.

use xshell::{Shell, cmd};

use crate::metadata::target_folder;
use crate::python::{self, Installed};
use crate::static_build::Build;
use crate::{book, deb, image, package};

/// Makes everything anew, and lists the digests of all files in SHA256SUMS.
pub(crate) fn run(sh: &Shell, build: &Build) -> anyhow::Result<()> {
    let target = target_folder(sh)?;
    let folder = target.join("release-artefacts");
    sh.remove_path(&folder)?;
    sh.create_dir(&folder)?;
    let mut made = package::run(sh)?;
    made.push(deb::run(sh, build)?);
    made.push(image::run(sh, build)?);
    book::run(sh)?;
    let site = target.join("rtorb-book.tar.gz");
    cmd!(sh, "tar czf {site} -C {target} book").run()?;
    made.push(site);
    let Installed { python, wheel } =
        python::install(sh, if build.is_trial { "dev" } else { "release" })?;
    cmd!(sh, "{python} -c 'import rtorb'").run()?;
    made.push(wheel);
    for file in made {
        sh.copy_file(file, &folder)?;
    }
    let _folder = sh.push_dir(&folder);
    let sums = cmd!(sh, "sh -c 'sha256sum *'").quiet().read()?;
    sh.write_file("SHA256SUMS", format!("{sums}\n"))?;
    println!("{sums}\n{}: nothing was published", folder.display());
    Ok(())
}
