//! `rtorb lab kernels`, and the gate: `rtorb lab kernel check`.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::support::{json, rtorb, skip};

#[test]
fn an_empty_cache_is_listed_as_such() {
    let cache = TempDir::new().unwrap();
    let listed = rtorb()
        .args(["lab", "kernels", "--json", "--cache"])
        .arg(cache.path())
        .assert()
        .success();
    let listed = json(&listed.get_output().stdout);
    let kernels = listed["kernels"].as_array().unwrap();
    assert!(kernels.iter().all(|kernel| kernel["cached"].is_null()));
    // Without an index there is a reason, and nothing is offered.
    assert_eq!(listed["index"] == "read", !kernels.is_empty(), "{listed}");
}

#[test]
fn what_is_no_kernel_is_refused() {
    let cache = TempDir::new().unwrap();
    for subcommand in ["fetch", "remove"] {
        let refused = rtorb()
            .args(["lab", "kernels", subcommand, "pigeon", "--cache"])
            .arg(cache.path())
            .assert()
            .code(2);
        let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        assert!(said.contains("pigeon"), "{said}");
    }
}

#[test]
fn a_baseline_that_is_not_there_says_how_to_make_it() {
    let refused = rtorb()
        .args([
            "lab",
            "kernel",
            "check",
            "--baseline",
            "/nowhere/bounds.json",
        ])
        .assert()
        .code(2);
    let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(said.contains("kernel baseline DIR"), "{said}");
}

/// The client of the package index says that it was called.
#[test]
fn a_check_without_an_emulator_fetches_no_kernel() {
    let folder = TempDir::new().unwrap();
    let called = folder.path().join("called");
    for name in ["apt-cache", "apt-get"] {
        let client = folder.path().join(name);
        let script = format!("#!/bin/sh\n: > {}\nexit 1\n", called.display());
        std::fs::write(&client, script).unwrap();
        std::fs::set_permissions(&client, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let bounds = folder.path().join("bounds.json");
    let digest = "a".repeat(64);
    let baseline = serde_json::json!({
        "schema": "rtorb-baseline/1",
        "plan": {
            "kernels": [{ "name": "6.12", "release": "6.12.117+deb12-amd64", "sha256": digest }],
            "preempt": [],
            "boots": [["none", ["os/wakeup"]]],
            "seeds": 1,
        },
        "identity": {
            "emulator": "", "emulator_sha256": digest, "firmware_sha256": digest, "initramfs_sha256": digest, "machine": "",
        },
        "bounds": {},
    });
    std::fs::write(&bounds, baseline.to_string()).unwrap();
    let refused = rtorb()
        .args(["lab", "kernel", "check", "--baseline"])
        .arg(&bounds)
        .env("PATH", folder.path())
        .env("RTORB_KERNELS", folder.path().join("kernels"))
        .assert()
        .code(2);
    let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(said.contains("apt install qemu-system-x86"), "{said}");
    assert!(!called.exists(), "the index was asked");
}

#[test]
fn the_gate_holds_a_program_of_ones_own_to_its_baseline() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let source = std::fs::read_to_string(own_source()).unwrap();
    let Some(own) = own_program(&path("periodic"), &source) else {
        return;
    };
    let (campaign, bounds) = (path("campaign"), path("bounds.json"));
    rtorb()
        .args([
            "lab", "kernel", "run", "--kernel", KERNEL, "--loads", "none", "--seeds", "2",
        ])
        .args(["--own-program", &named(&own), "--out"])
        .arg(&campaign)
        .timeout(BOOTS_MAX)
        .assert()
        .success();
    rtorb()
        .args(["lab", "kernel", "baseline"])
        .arg(&campaign)
        .arg("--baseline")
        .arg(&bounds)
        .assert()
        .success();
    let check = || {
        let mut command = rtorb();
        command.args(["lab", "kernel", "check"]).arg(&campaign);
        command.arg("--baseline").arg(&bounds);
        command
    };
    check().assert().success();
    let text = std::fs::read_to_string(&bounds).unwrap();
    let (bound, functions) = bound_of(&text);
    assert!(
        !functions.is_empty() && !functions.contains_key(SLOW_FUNCTION),
        "{text}"
    );
    std::fs::write(
        &bounds,
        text.replace(&format!(": {bound}"), &format!(": {}", bound - 1)),
    )
    .unwrap();
    let failed = check().assert().code(1);
    let said = String::from_utf8_lossy(&failed.get_output().stdout).into_owned();
    assert!(
        said.contains(&format!("was {}, is {bound}", bound - 1)),
        "{said}"
    );
    check().arg("--update").assert().success();
    assert_eq!(std::fs::read_to_string(&bounds).unwrap(), text);

    let slow = own_program(&path("slow"), &slowed(&source)).unwrap();
    let named_function = gate(&bounds, &slow);
    assert!(
        named_function.contains(&format!("function {SLOW_FUNCTION}: was 0, is ")),
        "{named_function}"
    );
    let stripped = path("stripped");
    let ended = Command::new("strip")
        .arg("-o")
        .args([&stripped, &slow])
        .status();
    assert!(ended.unwrap().success());
    let said = gate(&bounds, &stripped);
    assert!(
        said.contains("no function can be named") && said.contains("do not strip it"),
        "{said}"
    );
}

/// The largest sample of the program's one series in a baseline, and the functions that it was spent in.
fn bound_of(text: &str) -> (u64, serde_json::Map<String, serde_json::Value>) {
    let written = json(text.as_bytes());
    let systems = written["bounds"].as_object().unwrap();
    let (system, of_system) = systems.iter().next().unwrap();
    let of_program = of_system["program/periodic"].as_object().unwrap();
    let (series, bound) = of_program.iter().next().unwrap();
    assert!(
        series.contains("series=wakeup") && system.starts_with(KERNEL),
        "{text}"
    );
    let functions = &written["functions"][system]["program/periodic"][series];
    (
        bound.as_u64().unwrap(),
        functions.as_object().cloned().unwrap_or_default(),
    )
}

/// What the gate says of a program that is too slow.
fn gate(bounds: &Path, own: &Path) -> String {
    let failed = rtorb()
        .args(["lab", "kernel", "check", "--baseline"])
        .arg(bounds)
        .args(["--own-program", &named(own)])
        .timeout(BOOTS_MAX)
        .assert()
        .code(1);
    let said = String::from_utf8_lossy(&failed.get_output().stdout).into_owned();
    assert!(said.contains("WORSE"), "{said}");
    said
}

fn named(own: &Path) -> String {
    format!("periodic={}", own.display())
}

fn own_source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/own-program/periodic.c")
}

/// The program as it is after somebody has put a slow function between the wake-up and its clock reading.
fn slowed(source: &str) -> String {
    let function = format!(
        "__attribute__((noinline)) static void {SLOW_FUNCTION}(void) {{ for (volatile int n = 0; n < 20000; n++); }}\n\nint main("
    );
    let call = format!("    {SLOW_FUNCTION}();\n{READS_CLOCK}");
    let slow = source
        .replacen("int main(", &function, 1)
        .replacen(READS_CLOCK, &call, 1);
    assert_eq!(slow.matches(SLOW_FUNCTION).count(), 2, "{slow}");
    slow
}

/// The program of this source, linked statically; `None`, with the reason printed, where a guest cannot be booted with it.
fn own_program(own: &Path, source: &str) -> Option<PathBuf> {
    let file = own.with_extension("c");
    std::fs::write(&file, source).unwrap();
    let compiled = Command::new("cc")
        .args(["-O2", "-static", "-no-pie", "-o"])
        .args([own, &file])
        .status();
    let has = |program: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    };
    let missing = [
        (
            !compiled.is_ok_and(|status| status.success()),
            "cc -static (Debian: gcc libc6-dev)",
        ),
        (!has("qemu-system-x86_64"), "QEMU (Debian: qemu-system-x86)"),
        (
            !Path::new(env!("CARGO_TARGET_TMPDIR"))
                .with_file_name("static/rtorb")
                .is_file(),
            "target/static/rtorb (`cargo xtask static --try`)",
        ),
        (!is_cached(), "a kernel (`rtorb lab kernels fetch 6.12-rt`)"),
    ];
    let missing: Vec<&str> = missing
        .iter()
        .filter(|(missing, _)| *missing)
        .map(|(_, what)| *what)
        .collect();
    if missing.is_empty() {
        return Some(own.to_owned());
    }
    skip(&format!("there is no {}", missing.join(", ")));
    None
}

fn is_cached() -> bool {
    let listed = rtorb()
        .args(["lab", "kernels", "--json"])
        .assert()
        .success();
    let listed = json(&listed.get_output().stdout);
    let kernels = listed["kernels"].as_array().unwrap();
    let is_it = |kernel: &&serde_json::Value| {
        let release = kernel["release"].as_str().unwrap_or_default();
        release.starts_with("6.12.") && release.contains("-rt-") && !kernel["cached"].is_null()
    };
    kernels.iter().any(|kernel| is_it(&kernel))
}

const KERNEL: &str = "6.12-rt";
/// The statement behind which `periodic.c` has taken a sample.
const READS_CLOCK: &str = "    clock_gettime(CLOCK_MONOTONIC, &now);\n";
const SLOW_FUNCTION: &str = "compute_setpoint";
/// Four at most, of some ten seconds on a quiet host each.
const BOOTS_MAX: Duration = Duration::from_secs(480);
