//! `rtorb completions` and `rtorb man`.

use std::process::Command;

use crate::support::{rtorb, skip};

fn completions(shell: &str) -> String {
    let assert = rtorb().args(["completions", shell]).assert().success();
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

#[test]
fn each_shell_has_its_script() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = completions(shell);
        for word in ["scheduling", "priority-mapping"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn bash_completes_subcommands_and_options() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rtorb.bash");
    std::fs::write(&file, completions("bash")).unwrap();
    let ask = r#"
        source "$1"; shift
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _rtorb rtorb "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}""#;
    for (words, found) in [
        (vec!["rtorb", "sch"], "scheduling"),
        (vec!["rtorb", "model", "ch"], "check"),
        (vec!["rtorb", "model", "check", "--ide"], "--ideal"),
        (vec!["rtorb", "ping", "--preset", "mini"], "minicool"),
    ] {
        let mut command = Command::new("bash");
        command.args(["-c", ask, "bash"]).arg(&file).args(&words);
        let Ok(output) = command.output() else {
            return skip("bash is not installed");
        };
        let completed = String::from_utf8_lossy(&output.stdout);
        assert_eq!(completed.trim(), found, "{words:?}: {output:?}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    rtorb()
        .arg("man")
        .arg("--out")
        .arg(&pages)
        .assert()
        .success();
    let page = |name: &str| std::fs::read_to_string(pages.join(name)).unwrap();
    assert!(page("rtorb.1").contains(r"rtorb\-scheduling(1)"));
    let check = page("rtorb-model-check.1");
    for word in [
        ".TH",
        r"\-\-ideal",
        "Exit status 0: every deadline and limit holds",
    ] {
        assert!(check.contains(word), "{word} in {check}");
    }
    assert!(!pages.join("rtorb-child.1").exists(), "it is internal");
    let assert = rtorb().arg("man").assert().success();
    assert!(assert.get_output().stdout == page("rtorb.1").as_bytes());
}
