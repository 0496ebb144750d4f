//! `cargo xtask deb`: a Debian package of the command with its services, at `deb/rtorb_VERSION_ARCHITECTURE.deb` in the target folder.
//!
//! The program is the static one, so the package fits every release of Debian and of Ubuntu. dpkg-deb packs it by the files in
//! `packaging/debian/`. Then the package is installed, its services run, and it is purged, in a root that is thrown away.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use xshell::{Shell, cmd};

use crate::metadata::{members, target_folder};
use crate::root::Root;
use crate::sources::files_below;
use crate::static_build::{self, Build};
use crate::supervised::{PATIENT, permits_real_time};

/// Makes the package, checks it, and prints its place. A trial is built and packed fast.
pub(crate) fn run(sh: &Shell, build: &Build) -> anyhow::Result<PathBuf> {
    let program = static_build::place(sh, build)?;
    let package = pack(sh, &program, build.is_trial)?;
    println!("{}", package.display());
    Root::run_in_namespaces(sh, "installed", &package)?;
    if let Some(bare) = bare_root(sh)? {
        let folder = sh.create_temp_dir()?;
        let folder = folder.path();
        cmd!(
            sh,
            "timeout 300 bash packaging/tests/boot.sh {package} {bare} {folder}"
        )
        .run()?;
    }
    Ok(package)
}

/// Stages all files of the package, and packs them.
fn pack(sh: &Shell, program: &Path, is_trial: bool) -> anyhow::Result<PathBuf> {
    let folder = target_folder(sh)?.join("deb");
    sh.remove_path(&folder)?;
    let stage = sh.create_dir(folder.join("stage"))?;
    for (source, place) in FILES {
        place_file(sh, source, &stage.join(place))?;
    }
    place_file(sh, program, &stage.join("usr/bin/rtorb"))?;
    // The help of the command names pages by their places in the repository.
    let mut pages = files_below(&sh.current_dir().join("docs"))?;
    pages.extend(PAGES.map(|page| sh.current_dir().join(page)));
    for page in pages {
        let place = page.strip_prefix(sh.current_dir())?.to_owned();
        if page.extension().is_some_and(|it| it == "md") {
            place_file(sh, page, &stage.join("usr/share/doc/rtorb").join(place))?;
        }
    }
    let pages = stage.join("usr/share/man/man1");
    cmd!(sh, "{program} man --out {pages}")
        .quiet()
        .ignore_stdout()
        .run()?;
    for named in ["rtorb-naming-serve.1", "rtorb-events-serve.1"] {
        let is_there = pages.join(named).is_file();
        ensure!(is_there, "there is no page {named}, which a unit names");
    }
    let compressed = sh.read_dir(&pages)?;
    cmd!(sh, "gzip -9 --no-name {compressed...}")
        .quiet()
        .run()?;
    for (shell, place) in COMPLETIONS {
        let script = cmd!(sh, "{program} completions {shell}").quiet().read()?;
        sh.write_file(stage.join(place), script + "\n")?;
    }
    cmd!(sh, "chmod -R u=rwX,go=rX {stage}").quiet().run()?;
    cmd!(sh, "chmod 755 {stage}/usr/bin/rtorb").quiet().run()?;
    let named = control(sh, &stage)?;
    let package = folder.join(named);
    let compression = if is_trial {
        ["-Zgzip", "-z1"]
    } else {
        ["-Zxz", "-z6"]
    };
    cmd!(
        sh,
        "dpkg-deb --root-owner-group {compression...} --build {stage} {package}"
    )
    .run()?;
    Ok(package)
}

/// Writes the folder DEBIAN, and returns the name of the package's file.
fn control(sh: &Shell, stage: &Path) -> anyhow::Result<String> {
    let members = members(sh)?;
    let command = members.iter().find(|member| *member.name == "rtorb-cli");
    let command = command.context("rtorb-cli is no package")?;
    let architecture = cmd!(sh, "dpkg --print-architecture").quiet().read()?;
    let sums = {
        let _stage = sh.push_dir(stage);
        cmd!(sh, "sh -c 'find usr -type f | sort | xargs md5sum'")
            .quiet()
            .read()?
    };
    let size = cmd!(
        sh,
        "du --summarize --apparent-size --block-size=1024 {stage}"
    )
    .quiet()
    .read()?;
    let kilobytes = size
        .split_whitespace()
        .next()
        .context("du prints a number")?;
    let repository = command.repository.clone().unwrap_or_default();
    let version = command.version.to_string();
    let text = [
        ("{version}", version.as_str()),
        ("{architecture}", &architecture),
        ("{kilobytes}", kilobytes),
        ("{repository}", &repository),
    ]
    .iter()
    .fold(
        sh.read_file("packaging/debian/control")?,
        |text, (name, value)| text.replace(name, value),
    );
    let folder = sh.create_dir(stage.join("DEBIAN"))?;
    sh.write_file(folder.join("control"), text)?;
    sh.write_file(folder.join("md5sums"), sums + "\n")?;
    let configuration = FILES
        .iter()
        .filter_map(|(_, place)| place.strip_prefix("etc/"));
    let configuration: String = configuration.map(|name| format!("/etc/{name}\n")).collect();
    sh.write_file(folder.join("conffiles"), configuration)?;
    for script in ["postinst", "prerm", "postrm"] {
        let placed = folder.join(script);
        sh.copy_file(Path::new("packaging/debian").join(script), &placed)?;
        cmd!(sh, "chmod 755 {placed}").quiet().run()?;
    }
    Ok(format!("rtorb_{version}_{architecture}.deb"))
}

fn place_file(sh: &Shell, source: impl AsRef<Path>, place: &Path) -> anyhow::Result<()> {
    sh.create_dir(place.parent().context("a file is in a folder")?)?;
    Ok(sh.copy_file(source, place)?)
}

/// Installs the package in a root that is thrown away, runs its units as systemd does, purges it, and looks for what is left. Runs in
/// namespaces of its own, with an empty folder for the root.
pub(crate) fn check_installed(sh: &Shell, package: &Path, folder: &Path) -> anyhow::Result<()> {
    let root = Root::over(sh, bare_root(sh)?.as_deref(), folder)?;
    let placed = root.path().join("rtorb.deb");
    sh.copy_file(package, &placed)?;
    root.command(&["dpkg", "--no-triggers", "--install", "/rtorb.deb"])
        .run()?;
    sh.remove_path(&placed)?;
    root.verify(&UNITS)?;
    root.verify(&SOCKETS)?;
    check_naming(&root)?;
    check_events(&root)?;
    // As an administrator does; the links go with the package.
    root.command(&["systemctl", "enable", UNITS[0], SOCKETS[1]])
        .ignore_stderr()
        .run()?;
    root.command(&["dpkg", "--no-triggers", "--purge", "rtorb"])
        .run()?;
    let left = root.changes()?;
    ensure!(
        left.is_empty(),
        "the package leaves behind, after its purge: {left:#?}"
    );
    println!(
        "The package was installed, its services ran as their units say, and it was purged without a trace."
    );
    Ok(())
}

/// Names are kept from one run of the service to the next.
fn check_naming(root: &Root<'_>) -> anyhow::Result<()> {
    let naming = |words: &[&str]| {
        // By its address: a bare root has no /etc/hosts.
        let place = ["--name-service", "corbaloc::127.0.0.1:2809/NameService"];
        root.command(&["rtorb", "naming"])
            .args(words)
            .args(place)
            .args(PATIENT)
            .read()
    };
    let service = root.start_unit(UNITS[0])?;
    naming(&[
        "bind",
        "plant/drive",
        "corbaloc::127.0.0.1:9/drive",
        "--parents",
    ])?;
    let bound = naming(&["resolve", "plant/drive"])?;
    service.end()?;
    let service = root.start_unit(UNITS[0])?;
    let kept = naming(&["resolve", "plant/drive"])?;
    ensure!(
        bound == kept,
        "the name is {kept} after a restart, and was {bound}"
    );
    service.end()
}

/// The unit gives the right to real-time priorities, and the file of options is read.
fn check_events(root: &Root<'_>) -> anyhow::Result<()> {
    let options = root.path().join("etc/default/rtorb-events");
    let usual = root.sh().read_file(&options)?;
    if permits_real_time(root.sh()) {
        let lanes = usual.replace(
            "iiop://127.0.0.1:2810",
            "iiop://127.0.0.1:2810 --lanes 50,10",
        );
        root.sh().write_file(&options, lanes)?;
    }
    let service = root.start_unit(UNITS[1])?;
    root.command(&["rtorb", "ping", "corbaloc::127.0.0.1:2810/EventService"])
        .args(PATIENT)
        .run()?;
    root.command(&["rtorb", "events", "list", "/run/rtorb-events/channel.ior"])
        .args(PATIENT)
        .ignore_stdout()
        .run()?;
    service.end()?;
    Ok(root.sh().write_file(&options, usual)?)
}

/// A bare Debian below the target folder, if RTORB_BARE_ROOT asks for it: debootstrap makes it once, which takes minutes and a network.
fn bare_root(sh: &Shell) -> anyhow::Result<Option<PathBuf>> {
    if sh.var("RTORB_BARE_ROOT").is_err() {
        return Ok(None);
    }
    let folder = target_folder(sh)?.join("debian-root");
    if !folder.join("usr/bin/systemd-analyze").is_file() {
        sh.remove_path(&folder)?;
        let options = ["--variant=minbase", "--include=systemd"];
        cmd!(sh, "debootstrap {options...} stable {folder}").run()?;
    }
    Ok(Some(folder))
}

const UNITS: [&str; 2] = ["rtorb-naming.service", "rtorb-events.service"];
/// The optional units with the sockets of these services.
const SOCKETS: [&str; 2] = ["rtorb-naming.socket", "rtorb-events.socket"];
/// Files of the repository, and their places.
const FILES: [(&str, &str); 8] = [
    (
        "packaging/systemd/rtorb-naming.service",
        "usr/lib/systemd/system/rtorb-naming.service",
    ),
    (
        "packaging/systemd/rtorb-events.service",
        "usr/lib/systemd/system/rtorb-events.service",
    ),
    (
        "packaging/systemd/rtorb-naming.socket",
        "usr/lib/systemd/system/rtorb-naming.socket",
    ),
    (
        "packaging/systemd/rtorb-events.socket",
        "usr/lib/systemd/system/rtorb-events.socket",
    ),
    (
        "packaging/systemd/rtorb.conf",
        "usr/lib/sysusers.d/rtorb.conf",
    ),
    (
        "packaging/debian/rtorb-naming.default",
        "etc/default/rtorb-naming",
    ),
    (
        "packaging/debian/rtorb-events.default",
        "etc/default/rtorb-events",
    ),
    (
        "packaging/debian/copyright",
        "usr/share/doc/rtorb/copyright",
    ),
];
/// Pages beside those of `docs/`.
const PAGES: [&str; 3] = ["README.md", "CHANGELOG.md", "SECURITY.md"];
/// The shells, and the places of their scripts.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/rtorb"),
    ("zsh", "usr/share/zsh/vendor-completions/_rtorb"),
    ("fish", "usr/share/fish/vendor_completions.d/rtorb.fish"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// By default systemd gives a service up after five starts in ten seconds, also those by hand.
    #[test]
    fn a_unit_is_started_again_for_ever() {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for unit in UNITS {
            let file = repository.join("packaging/systemd").join(unit);
            let text = std::fs::read_to_string(&file).expect("the unit");
            let (unit, service) = text.split_once("[Service]").expect("both sections");
            let has = |section: &str, line: &str| section.lines().any(|it| it == line);
            assert!(has(unit, "StartLimitIntervalSec=0"), "{unit}");
            assert!(has(service, "RestartSec=2"), "{service}");
        }
    }

    /// Who enables the socket of a service has the same references as before.
    #[test]
    fn a_socket_is_where_its_service_listens_by_default() {
        let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging");
        let read = |file: String| std::fs::read_to_string(packaging.join(file)).expect("the file");
        for (unit, name) in SOCKETS.into_iter().zip(["naming", "events"]) {
            let text = read(format!("systemd/{unit}"));
            let setting = |key: &str| {
                let value = text.lines().find_map(|line| line.strip_prefix(key));
                value.unwrap_or_else(|| panic!("{unit} has no {key}"))
            };
            let options = read(format!("debian/rtorb-{name}.default"));
            let address = setting("ListenStream=");
            let usual = format!("=\"--listen iiop://{address}\"");
            assert!(options.contains(&usual), "{address}: {options}");
            let inherited = format!("--listen inherited://{}\n", setting("FileDescriptorName="));
            assert!(options.contains(&inherited), "{options}");
        }
    }
}
