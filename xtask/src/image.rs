//! `cargo xtask image`: a naming service as an OCI image, at `image/rtorb-VERSION.oci.tar` in the target folder.
//!
//! It is made from the lines of `packaging/Containerfile` without a daemon and without a network: an image of one program is a tar file and
//! three JSON files (OCI Image Format 1.1). Then the image is unpacked, and its program runs there as its user, without a capability.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use xshell::{Shell, cmd};

use crate::metadata::{members, target_folder};
use crate::root::Root;
use crate::static_build::{self, Build};
use crate::supervised::{PATIENT, Supervised, permits_real_time};

/// Makes the image, checks it, and prints its place.
pub(crate) fn run(sh: &Shell, build: &Build) -> anyhow::Result<PathBuf> {
    static_build::place(sh, build)?;
    let target = target_folder(sh)?;
    let folder = target.join("image");
    sh.remove_path(&folder)?;
    let members = members(sh)?;
    let version = &members
        .first()
        .context("the workspace has packages")?
        .version;
    let recipe = sh.read_file("packaging/Containerfile")?;
    let layout = Layout {
        sh,
        folder: folder.join("layout"),
    };
    let steps = steps(&recipe)?;
    let layer = layout.layer(&steps, &target)?;
    layout.write(&configuration(&steps)?, &layer, &version.to_string())?;
    let image = folder.join(format!("rtorb-{version}.oci.tar"));
    let layout = &layout.folder;
    cmd!(
        sh,
        "tar {REPEATABLE...} --owner=0 --group=0 -cf {image} -C {layout} ."
    )
    .run()?;
    println!("{}", image.display());
    if cmd!(sh, "skopeo --version")
        .quiet()
        .ignore_stdout()
        .run()
        .is_ok()
    {
        cmd!(sh, "skopeo inspect --config oci-archive:{image}").run()?;
    }
    Root::run_in_namespaces(sh, "unpacked", &image)?;
    Ok(image)
}

/// A line of the recipe.
struct Step<'r> {
    instruction: &'r str,
    arguments: &'r str,
}

fn steps(recipe: &str) -> anyhow::Result<Vec<Step<'_>>> {
    let lines = recipe
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let steps = lines.map(|line| {
        let (instruction, arguments) = line.split_once(' ').with_context(|| line.to_owned())?;
        Ok(Step {
            instruction,
            arguments,
        })
    });
    let steps: anyhow::Result<Vec<_>> = steps.collect();
    let steps = steps?;
    let is_scratch = |step: &Step<'_>| step.instruction == "FROM" && step.arguments == "scratch";
    ensure!(
        steps.first().is_some_and(is_scratch),
        "the recipe begins with nothing: FROM scratch"
    );
    Ok(steps)
}

/// How the image is run, as its configuration says it.
fn configuration(steps: &[Step<'_>]) -> anyhow::Result<Value> {
    let mut config = json!({ "Env": ["PATH=/usr/bin"] });
    for Step {
        instruction,
        arguments,
    } in steps
    {
        let words =
            || serde_json::from_str::<Vec<String>>(arguments).context(arguments.to_string());
        match *instruction {
            "FROM" | "COPY" => {}
            "USER" => config["User"] = json!(arguments),
            "STOPSIGNAL" => config["StopSignal"] = json!(arguments),
            "VOLUME" => config["Volumes"][arguments] = json!({}),
            "EXPOSE" => config["ExposedPorts"][arguments] = json!({}),
            "ENTRYPOINT" => config["Entrypoint"] = json!(words()?),
            "CMD" => config["Cmd"] = json!(words()?),
            other => bail!("the recipe has {other}, which is not known here"),
        }
    }
    Ok(config)
}

/// The folder of an image: blobs that are named by their digests, and an index.
struct Layout<'s> {
    sh: &'s Shell,
    folder: PathBuf,
}

impl Layout<'_> {
    /// The layer with the files that the recipe copies.
    fn layer(&self, steps: &[Step<'_>], target: &Path) -> anyhow::Result<Value> {
        let sh = self.sh;
        let folder = self.folder.with_file_name("layer");
        let archive = self.folder.with_file_name("layer.tar");
        for step in steps.iter().filter(|step| step.instruction == "COPY") {
            let (owner, files) = match step.arguments.strip_prefix("--chown=") {
                Some(rest) => rest.split_once(' ').context("COPY has files")?,
                None => ("0:0", step.arguments),
            };
            let (user, group) = owner.split_once(':').context("an owner is USER:GROUP")?;
            let (source, place) = files.split_once(" /").context("a file has a place")?;
            let built = source.strip_prefix(BUILT).map(|name| target.join(name));
            let source = built.unwrap_or_else(|| source.into());
            let staged = folder.join(place);
            sh.create_dir(staged.parent().context("a place is in a folder")?)?;
            cmd!(sh, "cp -r {source} {staged}").quiet().run()?;
            cmd!(sh, "chmod -R u=rwX,go=rX {staged}").quiet().run()?;
            let owner = [format!("--owner={user}"), format!("--group={group}")];
            cmd!(
                sh,
                "tar {REPEATABLE...} {owner...} -rf {archive} -C {folder} {place}"
            )
            .quiet()
            .run()?;
        }
        self.blob(
            "application/vnd.oci.image.layer.v1.tar",
            &fs::read(archive)?,
        )
    }

    /// Writes the configuration, the manifest and the index.
    fn write(&self, config: &Value, layer: &Value, version: &str) -> anyhow::Result<()> {
        let architecture = cmd!(self.sh, "dpkg --print-architecture").quiet().read()?;
        let config = json!({
            "architecture": architecture, "os": "linux", "config": config,
            "rootfs": { "type": "layers", "diff_ids": [layer["digest"]] },
        });
        let config = self.blob(
            "application/vnd.oci.image.config.v1+json",
            config.to_string().as_bytes(),
        )?;
        let kind = "application/vnd.oci.image.manifest.v1+json";
        let manifest =
            json!({ "schemaVersion": 2, "mediaType": kind, "config": config, "layers": [layer] });
        let mut manifest = self.blob(kind, manifest.to_string().as_bytes())?;
        manifest["annotations"] =
            json!({ "org.opencontainers.image.ref.name": format!("rtorb:{version}") });
        let index = json!({ "schemaVersion": 2, "manifests": [manifest] });
        self.sh
            .write_file(self.folder.join("index.json"), index.to_string())?;
        let version = json!({ "imageLayoutVersion": "1.0.0" });
        Ok(self
            .sh
            .write_file(self.folder.join("oci-layout"), version.to_string())?)
    }

    /// Stores the bytes, and returns their descriptor.
    fn blob(&self, media_type: &str, bytes: &[u8]) -> anyhow::Result<Value> {
        let folder = self.sh.create_dir(self.folder.join("blobs/sha256"))?;
        let stored = folder.join("new");
        self.sh.write_file(&stored, bytes)?;
        let digest = digest(self.sh, &stored)?;
        fs::rename(stored, folder.join(&digest))?;
        Ok(
            json!({ "mediaType": media_type, "digest": format!("sha256:{digest}"), "size": bytes.len() }),
        )
    }
}

fn digest(sh: &Shell, file: &Path) -> anyhow::Result<String> {
    let sum = cmd!(sh, "sha256sum {file}").quiet().read()?;
    Ok(sum.split(' ').next().unwrap_or_default().to_owned())
}

/// The part of a configuration that says how the image is run.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Process {
    user: String,
    entrypoint: Vec<String>,
    cmd: Vec<String>,
}

/// Unpacks the image by its index into an empty folder, and runs its program there. Runs in namespaces of its own.
pub(crate) fn check_unpacked(sh: &Shell, image: &Path, folder: &Path) -> anyhow::Result<()> {
    let (layout, root) = (folder.join("layout"), folder.join("root"));
    for folder in [&layout, &root] {
        sh.create_dir(folder)?;
    }
    cmd!(sh, "tar xf {image} -C {layout}").run()?;
    cmd!(sh, "ip link set lo up").run()?;
    let stored = |descriptor: &Value| {
        let named = descriptor["digest"]
            .as_str()
            .and_then(|text| text.strip_prefix("sha256:"));
        let named = named.context("a descriptor has a digest")?;
        let file = layout.join("blobs/sha256").join(named);
        ensure!(digest(sh, &file)? == named, "{named} has other bytes");
        Ok(file)
    };
    let read = |file: PathBuf| anyhow::Ok(serde_json::from_str::<Value>(&sh.read_file(file)?)?);
    let index = read(layout.join("index.json"))?;
    let manifest = read(stored(&index["manifests"][0])?)?;
    let layer = stored(&manifest["layers"][0])?;
    cmd!(sh, "tar xpf {layer} --numeric-owner -C {root}").run()?;
    let mut config = read(stored(&manifest["config"])?)?;
    let process: Process = serde_json::from_value(config["config"].take())?;
    process.serve(sh, &root)?;
    process.lanes(sh, &root)
}

impl Process {
    /// The program in the root, as the image's user, without a capability and with these limits.
    fn command(&self, root: &Path, limits: &[&str], arguments: &[&str]) -> Command {
        let mut command = Command::new("prlimit");
        command
            .args(limits)
            .args(["setpriv", "--no-new-privs", "chroot"]);
        command.arg(format!("--userspec={}", self.user)).arg(root);
        command.args(&self.entrypoint).args(arguments);
        command
    }

    /// It serves names, and keeps them.
    fn serve(&self, sh: &Shell, root: &Path) -> anyhow::Result<()> {
        let program = root.join("usr/bin/rtorb");
        let arguments: Vec<&str> = self.cmd.iter().map(String::as_str).collect();
        let start = || Supervised::start(self.command(root, &["--nofile=1024"], &arguments));
        let service = start()?;
        cmd!(
            sh,
            "{program} naming bind drive corbaloc::localhost:9/drive {PATIENT...}"
        )
        .run()?;
        service.end()?;
        let service = start()?;
        cmd!(sh, "{program} naming resolve drive {PATIENT...}")
            .ignore_stdout()
            .run()?;
        service.end()
    }

    /// The limit of priorities is the right that lanes need, and without it they are refused.
    fn lanes(&self, sh: &Shell, root: &Path) -> anyhow::Result<()> {
        let lanes = [
            "events",
            "serve",
            "--lanes",
            "50,10",
            "--listen",
            "iiop://127.0.0.1:2810",
        ];
        let refused = self.command(root, &["--rtprio=0"], &lanes).output()?;
        let said = String::from_utf8_lossy(&refused.stderr);
        ensure!(
            !refused.status.success(),
            "lanes are served without a right to priorities"
        );
        ensure!(
            said.contains("rtprio"),
            "the refusal names no remedy: {said}"
        );
        if permits_real_time(sh) {
            Supervised::start(self.command(root, &["--rtprio=99"], &lanes))?.end()?;
        }
        println!("The image was unpacked, and its program ran there without a capability.");
        Ok(())
    }
}

/// The folder of a recipe's files that are built.
const BUILT: &str = "target/";
/// Two runs give the same bytes.
const REPEATABLE: [&str; 4] = [
    "--sort=name",
    "--mtime=@0",
    "--numeric-owner",
    "--format=gnu",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recipe_says_how_the_image_is_run() {
        let sh = crate::workspace().expect("the workspace");
        let recipe = sh
            .read_file("packaging/Containerfile")
            .expect("a file of the project");
        let steps = steps(&recipe).expect("its lines are known");
        let config = configuration(&steps).expect("its instructions are known");
        assert_eq!(config["User"], "65532:65532");
        assert_eq!(config["Entrypoint"], json!(["/usr/bin/rtorb"]));
        assert_eq!(config["ExposedPorts"], json!({ "2809/tcp": {} }));
    }

    #[test]
    fn an_instruction_that_is_not_known_is_refused() {
        let steps = steps("FROM scratch\nRUN make\n").expect("it has lines");
        assert!(configuration(&steps).is_err());
        assert!(super::steps("FROM debian\n").is_err());
    }
}
