//! An emulated machine: QEMU with one CPU whose clock counts instructions, which makes every boot of the same bytes the same run.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::catalogue::Kernel;
use super::guest::VARIABLE;
use super::initramfs::Initramfs;
use super::job::{Job, Message};
use crate::error::LabError;
use crate::processes::interrupt::Interrupt;
use crate::processes::tools::run_tool;

/// An emulator that is installed.
#[derive(Clone, Debug)]
pub struct Emulator {
    program: PathBuf,
    /// What it says of its version: `QEMU emulator version 7.2.22 ...`.
    pub version: String,
    /// The SHA-256 of its program.
    pub sha256: String,
}

/// One boot.
#[derive(Clone, Debug)]
pub struct Boot<'a> {
    /// What is booted.
    pub kernel: &'a Kernel,
    /// `preempt=` on its command line; `None` leaves it what it is by itself.
    pub preempt: Option<&'a str>,
    /// The guest's root.
    pub initramfs: &'a Initramfs,
    /// What it does.
    pub job: &'a Job,
    /// More arguments of the emulator, such as an instruction trace.
    pub observers: &'a [String],
}

impl Emulator {
    /// The one of this host.
    ///
    /// # Errors
    /// That there is none, with the package to install; or the interrupt.
    pub fn find(interrupt: &Interrupt) -> Result<Self, LabError> {
        let said = run_tool(
            Command::new(PROGRAM).arg("--version"),
            VERSION_TIMEOUT,
            interrupt,
        );
        let said = match said {
            Err(LabError::Interrupted) => return Err(LabError::Interrupted),
            Err(error) => {
                let what = format!("{error}. Debian: apt install {PACKAGE}");
                return Err(LabError::Incomplete { what });
            }
            Ok(said) => said,
        };
        let program = in_path(PROGRAM).unwrap_or_else(|| PROGRAM.into());
        let octets = fs::read(&program).map_err(LabError::file(&program))?;
        Ok(Self {
            program,
            version: said.lines().next().unwrap_or_default().to_owned(),
            sha256: super::sha256(&octets),
        })
    }

    /// Boots, and hands over what the guest says when it is switched off.
    ///
    /// # Errors
    /// That the guest did not come to its end within `timeout`, with the end of its console; or the interrupt.
    pub fn run(
        &self,
        boot: &Boot<'_>,
        timeout: Duration,
        interrupt: &Interrupt,
    ) -> Result<Vec<Message>, LabError> {
        let folder = TempDir::with_prefix("rtorb-guest-")
            .map_err(LabError::file("the folder for temporary files"))?;
        let initramfs = boot.initramfs.write(folder.path(), boot.job)?;
        let answer = folder.path().join("answer");
        let console = folder.path().join("console");
        let mut command = Command::new(&self.program);
        command
            .args(MACHINE)
            .arg("-chardev")
            .arg(format!("file,id=answer,path={}", answer.display()))
            .arg("-device")
            .arg(format!("isa-debugcon,iobase={ANSWER_PORT},chardev=answer"))
            .arg("-device")
            .arg(format!("isa-debug-exit,iobase={EXIT_PORT},iosize=1"))
            .arg("-serial")
            .arg(format!("file:{}", console.display()))
            .arg("-kernel")
            .arg(&boot.kernel.image)
            .arg("-initrd")
            .arg(initramfs)
            .arg("-append")
            .arg(command_line(boot.preempt))
            .args(boot.observers);
        // The emulator always ends with a status that is not 0: twice what the guest wrote, and one.
        match run_tool(&mut command, timeout, interrupt) {
            Err(LabError::Interrupted) => return Err(LabError::Interrupted),
            Ok(_) | Err(_) => {}
        }
        read_messages(&answer, &console)
    }
}

fn read_messages(answer: &Path, console: &Path) -> Result<Vec<Message>, LabError> {
    let file = fs::File::open(answer).map_err(LabError::file(answer))?;
    let messages: Vec<Message> = BufReader::new(file)
        .lines()
        .map_while(Result::ok)
        .map_while(|line| serde_json::from_str(&line).ok())
        .collect();
    if messages.last() == Some(&Message::End) {
        return Ok(messages);
    }
    let console = fs::read_to_string(console).unwrap_or_default();
    let lines: Vec<&str> = console.lines().collect();
    let end = lines[lines.len().saturating_sub(CONSOLE_LINES)..].join("\n");
    Err(LabError::process(
        "the guest",
        format!("did not come to its end; its console says:\n{end}"),
    ))
}

fn command_line(preempt: Option<&str>) -> String {
    let preempt = preempt.map(|model| format!(" preempt={model}"));
    format!("{COMMAND_LINE}{} {VARIABLE}=1", preempt.unwrap_or_default())
}

fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

const PROGRAM: &str = "qemu-system-x86_64";
const PACKAGE: &str = "qemu-system-x86";
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);
/// `sleep=off` is what makes a run repeatable: an idle CPU's time jumps to the next timer. Time of day and randomness are fixed.
const MACHINE: [&str; 21] = [
    "-M",
    "q35,hpet=off",
    "-cpu",
    "qemu64",
    "-m",
    "512",
    "-smp",
    "1",
    "-accel",
    "tcg,thread=single",
    "-icount",
    "shift=0,sleep=off",
    "-seed",
    "1",
    "-rtc",
    "base=2024-01-01T00:00:00,clock=vm",
    "-display",
    "none",
    "-nodefaults",
    "-no-reboot",
    "-no-user-config",
];
/// Addresses are the same at every boot, and nothing that tests itself runs beside the experiments.
const COMMAND_LINE: &str = "console=ttyS0 quiet nokaslr norandmaps random.trust_cpu=off tsc=reliable no_timer_check mitigations=off \
                            panic=-1 cryptomgr.notests";
/// Where a guest says something, and where it switches itself off.
pub(super) const ANSWER_PORT: u64 = 0xe9;
pub(super) const EXIT_PORT: u64 = 0xf4;
const CONSOLE_LINES: usize = 12;
