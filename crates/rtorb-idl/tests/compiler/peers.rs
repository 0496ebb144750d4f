//! Accepts the IDL files that Debian installs with omniORB, each with its includes.

use std::path::{Path, PathBuf};
use std::process::Command;

use rtorb_idl::{Options, check};

#[test]
fn accepts_every_idl_file_of_omniorb() {
    let files = installed_files();
    if files.is_empty() {
        let why = "no IDL files of omniORB are installed: apt-get install omniorb-idl omniidl libomniorb4-dev omniorb";
        assert!(
            std::env::var_os("RTORB_REQUIRE_PEERS").is_none_or(|value| value != "1"),
            "{why}"
        );
        eprintln!("skipped: {why}");
        return;
    }
    let mut include_dirs: Vec<PathBuf> = files
        .iter()
        .filter_map(|file| file.parent().map(Path::to_path_buf))
        .collect();
    include_dirs.sort();
    include_dirs.dedup();
    let options = Options {
        include_dirs,
        ..Options::default()
    };
    let mut refused = String::new();
    for file in &files {
        let outcome = check(std::slice::from_ref(file), &options);
        if outcome.tree.is_none() {
            refused.push_str(&format!("{}\n{}\n", file.display(), outcome.render(false)));
        }
    }
    assert!(refused.is_empty(), "{refused}");
    eprintln!("accepted {} files", files.len());
}

/// The files of the packages that are installed, as `dpkg` lists them.
fn installed_files() -> Vec<PathBuf> {
    let listed = |package: &str| {
        Command::new("dpkg")
            .args(["-L", package])
            .output()
            .map(|output| output.stdout)
    };
    let packages = ["omniorb-idl", "omniidl", "libomniorb4-dev", "omniorb"];
    let lists: Vec<u8> = packages
        .iter()
        .filter_map(|package| listed(package).ok())
        .flatten()
        .collect();
    let text = String::from_utf8_lossy(&lists);
    text.lines()
        .filter(|line| line.ends_with(".idl"))
        .map(PathBuf::from)
        .collect()
}
