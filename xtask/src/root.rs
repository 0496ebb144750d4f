//! A root in which a package is installed and its services run. All that happens there is gone with it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use xshell::{Cmd, Shell, cmd};

use crate::supervised::Supervised;

/// A root that shows the files of another one, and keeps what is written apart.
pub(crate) struct Root<'s> {
    sh: &'s Shell,
    /// Has the upper layer and the root.
    folder: PathBuf,
    lower: PathBuf,
}

impl<'s> Root<'s> {
    /// Runs `cargo xtask SUBCOMMAND FILE FOLDER` where mounts, ports and processes end with it, with an empty folder for its mounts. Skips
    /// it for a user who may not make such namespaces.
    pub(crate) fn run_in_namespaces(
        sh: &Shell,
        subcommand: &str,
        file: &Path,
    ) -> anyhow::Result<()> {
        if cmd!(sh, "id -u").quiet().read()? != "0" {
            println!("skipped: it was not installed and run, which takes root");
            return Ok(());
        }
        let program = env::current_exe()?;
        // It is removed out here, where nothing is mounted in it.
        let folder = sh.create_temp_dir()?;
        let folder = folder.path();
        let namespaces = ["--mount", "--net", "--pid", "--fork", "--kill-child"];
        let run = cmd!(
            sh,
            "timeout 300 unshare {namespaces...} {program} {subcommand} {file} {folder}"
        );
        Ok(run.run()?)
    }

    /// Mounts the root in an empty folder, over the files of another root, or of this host.
    pub(crate) fn over(sh: &'s Shell, lower: Option<&Path>, folder: &Path) -> anyhow::Result<Self> {
        let lower = lower.unwrap_or(Path::new("/")).to_owned();
        cmd!(sh, "mount -t tmpfs tmpfs {folder}").run()?;
        for name in ["upper", "work", "root"] {
            sh.create_dir(folder.join(name))?;
        }
        let layers = format!(
            "lowerdir={0},upperdir={1}/upper,workdir={1}/work",
            lower.display(),
            folder.display()
        );
        let root = folder.join("root");
        cmd!(sh, "mount -t overlay overlay -o {layers} {root}").run()?;
        // Nothing may take the host's systemd for that of the root, or reach a device.
        for empty in ["run", "dev"] {
            cmd!(sh, "mount -t tmpfs tmpfs {root}/{empty}").run()?;
        }
        cmd!(sh, "mount -t proc proc {root}/proc").run()?;
        sh.create_dir(root.join("dev/shm"))?;
        for device in DEVICES {
            sh.write_file(root.join(format!("dev/{device}")), "")?;
            cmd!(sh, "mount --bind /dev/{device} {root}/dev/{device}").run()?;
        }
        cmd!(sh, "ip link set lo up").run()?;
        let folder = folder.to_owned();
        Ok(Self { sh, folder, lower })
    }

    pub(crate) fn sh(&self) -> &'s Shell {
        self.sh
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.join("root")
    }

    /// A command in the root.
    pub(crate) fn command(&self, words: &[&str]) -> Cmd<'s> {
        let root = self.path();
        let path = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
        cmd!(
            self.sh,
            "chroot {root} env -i {path} DEBIAN_FRONTEND=noninteractive {words...}"
        )
    }

    /// Fails if systemd finds something wrong with a unit of the package.
    pub(crate) fn verify(&self, units: &[&str]) -> anyhow::Result<()> {
        let paths = units.iter().map(|unit| format!("{UNIT_FOLDER}/{unit}"));
        let verify = self.command(&["systemd-analyze", "verify", "--man=no"]);
        let output = verify.args(paths).quiet().ignore_status().output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        // It also speaks of the other units that these need.
        let ours: Vec<&str> = said.lines().filter(|line| line.contains("rtorb")).collect();
        ensure!(ours.is_empty(), "systemd-analyze: {ours:#?}");
        Ok(())
    }

    /// Runs the program of a unit as its user, with its folders, limits and options, and waits until it is ready and says that it lives.
    pub(crate) fn start_unit(&self, unit: &str) -> anyhow::Result<Supervised> {
        let text = self.sh.read_file(
            self.path()
                .join(UNIT_FOLDER.trim_start_matches('/'))
                .join(unit),
        )?;
        let unit = Unit::parse(&text);
        let user = unit.only("User")?;
        ensure!(
            unit.only("Type")? == "notify",
            "the unit waits for no message"
        );
        for (folders, place) in [("StateDirectory", "/var/lib"), ("RuntimeDirectory", "/run")] {
            for folder in unit.all(folders) {
                let folder = format!("{place}/{folder}");
                self.command(&[
                    "install", "-d", "-o", user, "-g", user, "-m", "750", &folder,
                ])
                .run()?;
            }
        }
        let mut environment = String::new();
        for file in unit.all("EnvironmentFile") {
            environment += &self
                .sh
                .read_file(self.path().join(file.trim_start_matches("-/")))?;
        }
        let line = unit
            .only("ExecStart")?
            .replace("%S", "/var/lib")
            .replace("%t", "/run");
        let mut limits = Vec::new();
        for (key, limit) in LIMITS {
            let limit = format!(
                "--{limit}={}",
                unit.only(key)?.replace("infinity", "unlimited")
            );
            // systemd goes on, too, if the host permits no such limit.
            let trial = cmd!(self.sh, "prlimit {limit} true")
                .quiet()
                .ignore_stderr();
            if trial.run().is_ok() {
                limits.push(limit);
            }
        }
        let mut command = Command::new("prlimit");
        command.args(limits).arg("chroot").arg(self.path());
        command.args([
            "setpriv",
            "--no-new-privs",
            "--bounding-set=-all",
            "--inh-caps=-all",
            "--init-groups",
        ]);
        command.args([format!("--reuid={user}"), format!("--regid={user}")]);
        command.args(["sh", "-c", &format!("{environment}\nexec {line}")]);
        Supervised::start(command)
    }

    /// The files that are not as they were below, but for what dpkg and the tools for users note for themselves.
    pub(crate) fn changes(&self) -> anyhow::Result<Vec<String>> {
        let upper = self.folder.join("upper");
        let format = "%P\\n";
        let found = cmd!(self.sh, "find {upper} -mindepth 1 -printf {format}")
            .quiet()
            .read()?;
        let mut changed = Vec::new();
        for place in found.lines() {
            let is_note = NOTES
                .iter()
                .any(|notes| Path::new(place).starts_with(notes));
            if !is_note && !is_same(&upper.join(place), &self.lower.join(place))? {
                changed.push(place.to_owned());
            }
        }
        Ok(changed)
    }
}

/// True if both are folders, equal files or equal links. A file that was removed is a device in the upper layer.
fn is_same(upper: &Path, lower: &Path) -> anyhow::Result<bool> {
    let Ok(below) = fs::symlink_metadata(lower) else {
        return Ok(false);
    };
    let (kind, below) = (fs::symlink_metadata(upper)?.file_type(), below.file_type());
    Ok(kind == below
        && if kind.is_symlink() {
            fs::read_link(upper)? == fs::read_link(lower)?
        } else {
            kind.is_dir() || kind.is_file() && fs::read(upper)? == fs::read(lower)?
        })
}

/// The settings of a unit, in order.
struct Unit<'t>(Vec<(&'t str, &'t str)>);

impl<'t> Unit<'t> {
    fn parse(text: &'t str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Self(lines.filter_map(|line| line.split_once('=')).collect())
    }

    fn all(&self, key: &str) -> impl Iterator<Item = &'t str> {
        let settings = self.0.iter().filter(move |(name, _)| *name == key);
        settings.map(|(_, value)| *value)
    }

    fn only(&self, key: &str) -> anyhow::Result<&'t str> {
        let value = self.all(key).next();
        value.with_context(|| format!("the unit has no {key}="))
    }
}

/// The folder of a package's units.
const UNIT_FOLDER: &str = "/usr/lib/systemd/system";
/// The devices that programs expect.
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];
/// The limits of units, and their names in prlimit(1).
const LIMITS: [(&str, &str); 3] = [
    ("LimitRTPRIO", "rtprio"),
    ("LimitMEMLOCK", "memlock"),
    ("LimitNOFILE", "nofile"),
];
/// What dpkg, userdel and systemd-sysusers keep: their records, and copies of the former files.
const NOTES: [&str; 9] = [
    "var/lib/dpkg",
    "var/log/dpkg.log",
    "etc/.pwd.lock",
    "etc/passwd-",
    "etc/shadow-",
    "etc/group-",
    "etc/gshadow-",
    "etc/subuid-",
    "etc/subgid-",
];
