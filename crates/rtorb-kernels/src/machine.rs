//! An emulated machine: QEMU with one CPU whose clock counts instructions, which makes every boot of the same bytes the same run.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;
use std::time::{Duration, Instant};

use flate2::read::DeflateDecoder;
use rtorb_host::Host;
use rtorb_host::placement::Placement;
use rtorb_host::system::cpu_list;
use rtorb_lab::LabError;
use rtorb_lab::processes::child_command;
use rtorb_lab::processes::emulated::VARIABLE;
use rtorb_lab::processes::interrupt::Interrupt;
use rtorb_lab::processes::tools::{run_tool, run_tool_watched};
use rtorb_os::sync::Mutex;
use rtorb_results::campaign::Identity;
use serde::{Deserialize, Serialize};

use crate::catalogue::{self, Kernel};
use crate::initramfs::Initramfs;
use crate::job::{Job, Message};
use crate::sha256::sha256;

/// An emulator that is installed.
#[derive(Clone, Debug)]
pub struct Emulator {
    program: PathBuf,
    /// This program's own file, which becomes the emulator once it has tied its life to ours.
    executable: PathBuf,
    /// What it says of its version: `QEMU emulator version 7.2.22 ...`.
    pub version: String,
    /// The SHA-256 of its program.
    pub sha256: String,
    /// The SHA-256 of the firmware that it starts a machine with, one file after another.
    pub firmware_sha256: String,
    /// The CPUs that emulators may use.
    cpus: Vec<usize>,
    /// Whether this host grants SCHED_FIFO.
    fifo_granted: bool,
}

/// A run of a guest of a board.
pub(super) struct OnBoard<'a> {
    /// Adds the arguments of board and guest.
    pub(super) arguments: &'a dyn Fn(&mut Command),
    /// After this time it is given up.
    pub(super) timeout: Duration,
    /// What a guest says last.
    pub(super) ends_with: &'static str,
}

/// One boot.
#[derive(Clone, Debug)]
pub struct Boot<'a> {
    /// The machine that is emulated.
    pub machine: Machine,
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

/// A machine that is emulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Machine {
    /// One CPU, on which an instruction takes a nanosecond.
    #[default]
    OneCpu,
    /// The same, whose kernels have the clock that P3 had: threads wake at its ticks alone.
    TickClock,
    /// Like the hosts of P1, which had two CPUs of 168 MHz. An instruction takes 4 ns; while both CPUs are busy, they share that:
    /// 125 to 250 million instructions a second on each.
    P1,
}

impl Machine {
    /// Every machine.
    pub const ALL: [Self; 3] = [Self::OneCpu, Self::TickClock, Self::P1];

    /// Its name in options and files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneCpu => "one-cpu",
            Self::TickClock => "tick-clock",
            Self::P1 => "p1",
        }
    }

    /// The experiments that it was made for; none is a campaign's own.
    #[must_use]
    pub const fn experiments(self) -> &'static [&'static str] {
        match self {
            Self::OneCpu => &[],
            Self::TickClock => &["os/ready-queue", "os/clock-overhead", "os/interval-jitter"],
            Self::P1 => &["orb/architectures"],
        }
    }

    /// The machine of a campaign. One of an earlier version of this program, whose description is not known any more, had one
    /// CPU.
    #[must_use]
    pub fn of(identity: &Identity) -> Self {
        let is_it = |machine: &Self| description(*machine) == identity.machine;
        Self::ALL.into_iter().find(is_it).unwrap_or_default()
    }

    /// The power of two of the nanoseconds that an instruction takes.
    #[must_use]
    pub fn shift(self) -> u8 {
        match self {
            Self::OneCpu | Self::TickClock => 0,
            Self::P1 => 2,
        }
    }

    /// `sleep=off` is what makes a run repeatable: an idle CPU's time jumps to the next timer.
    fn arguments(self) -> Vec<&'static str> {
        let own: &[&str] = match self {
            Self::OneCpu | Self::TickClock => &["-smp", "1", "-icount", "shift=0,sleep=off"],
            // The CPUs take turns, each until the next timer. The filter has one every 50 us, of which the guest knows nothing.
            Self::P1 => &[
                "-smp",
                "2",
                "-icount",
                "shift=2,sleep=off",
                "-netdev",
                "hubport,id=turns,hubid=0",
                "-object",
                "filter-buffer,id=filter,netdev=turns,interval=50",
            ],
        };
        [&MACHINE[..], own].concat()
    }

    /// The command line of every kernel.
    fn command_line(self) -> String {
        match self {
            Self::TickClock => format!("{COMMAND_LINE} highres=off nohz=off"),
            Self::OneCpu | Self::P1 => COMMAND_LINE.to_owned(),
        }
    }
}

impl FromStr for Machine {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|machine| machine.name() == name);
        known.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("there is no machine {name:?}: it is one of {names}")
        })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Emulator {
    /// The one of this host. `executable` is this program's own file.
    ///
    /// # Errors
    /// That there is none, with the package to install; or the interrupt.
    pub fn find(executable: &Path, interrupt: &Interrupt) -> Result<Self, LabError> {
        let found = Self::installed(PC, executable, interrupt)?;
        // Where it looks for files, one folder a line.
        let folders = ask(PC, &["-L", "help"], interrupt)?;
        Ok(Self {
            firmware_sha256: sha256(&firmware(&folders)?),
            ..found
        })
    }

    /// The one of this host for boards with a Cortex-M.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub fn find_for_boards(executable: &Path, interrupt: &Interrupt) -> Result<Self, LabError> {
        Self::installed(BOARDS, executable, interrupt)
    }

    fn installed(
        installed: Program,
        executable: &Path,
        interrupt: &Interrupt,
    ) -> Result<Self, LabError> {
        let host = Host::describe();
        let version = ask(installed, &["--version"], interrupt)?;
        let program = in_path(installed.name).unwrap_or_else(|| installed.name.into());
        let octets = fs::read(&program).map_err(LabError::file(&program))?;
        Ok(Self {
            program,
            executable: executable.to_owned(),
            version: version.lines().next().unwrap_or_default().to_owned(),
            sha256: sha256(&octets),
            firmware_sha256: String::new(),
            cpus: cpu_list(host.cpus_allowed.as_deref().unwrap_or_default()),
            fifo_granted: host.fifo_granted,
        })
    }

    /// Why a boot may not repeat on this host; `None` if it does.
    #[must_use]
    pub fn doubt(&self) -> Option<&'static str> {
        (!self.fifo_granted).then_some(NO_FIFO)
    }

    /// The command that becomes the emulator. All its threads share this CPU, so that no two run at once. Its main thread
    /// has SCHED_FIFO, and the threads that it starts do not: when one of them wakes it, it runs before that one continues. Otherwise
    /// the host would decide which of them runs a timer that is due, and the guest sees the difference.
    fn command(&self, cpu: Option<&CpuInUse<'_>>) -> Command {
        let cpu = cpu.map(|taken| taken.cpu);
        let mut command = child_command(&self.executable, Placement { cpu, fifo: None });
        command.arg("exec");
        if self.fifo_granted {
            command.args(["chrt", "--reset-on-fork", "--fifo", MAIN_THREAD_PRIORITY]);
        }
        command.arg(&self.program);
        command
    }

    /// Boots, and hands over what the guest says when it is switched off.
    ///
    /// # Errors
    /// That the guest did not come to its end within `timeout`, or was silent for long, or said too much, with the end of its
    /// console; or the interrupt.
    pub fn run(
        &self,
        boot: &Boot<'_>,
        timeout: Duration,
        interrupt: &Interrupt,
    ) -> Result<Vec<Message>, LabError> {
        self.run_for_bytes(boot, timeout, interrupt)
            .map(|octets| messages(&octets))
    }

    /// The same, with the octets as they came out of the guest.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_for_bytes(
        &self,
        boot: &Boot<'_>,
        timeout: Duration,
        interrupt: &Interrupt,
    ) -> Result<Vec<u8>, LabError> {
        let mut files = Files::open(boot)?;
        let cpu = EMULATORS.take(&self.cpus);
        let mut command = self.command(cpu.as_ref());
        command.args(boot.machine.arguments());
        files.name_to(&mut command);
        command
            .arg("-kernel")
            .arg(&boot.kernel.image)
            .arg("-append")
            .arg(command_line(boot.machine, boot.preempt))
            .args(boot.observers);
        // A guest says something before and after each experiment.
        let mut silence = Silence::new(SILENCE_MAX.max(timeout / 4));
        let ended = run_tool_watched(&mut command, timeout, interrupt, &mut || {
            silence.look(&files)
        });
        let what = match ended {
            Err(LabError::Interrupted) => return Err(LabError::Interrupted),
            // The emulator always ends with a status that is not 0: twice what the guest wrote, and one.
            Ok(_) | Err(_) => {
                let answer = files.answer()?;
                if messages(&answer).last() == Some(&Message::End) {
                    return Ok(answer);
                }
                ended
                    .err()
                    .map_or_else(String::new, |error| error.to_string())
            }
        };
        let console = files.end_of_console();
        Err(LabError::process(
            "the guest",
            format!("did not come to its end: {what}\nIts console ends with:\n{console}"),
        ))
    }
}

impl Emulator {
    /// Runs a guest of a board, and returns what it said on its first serial line.
    ///
    /// # Errors
    /// That it did not come to its end, with the end of what it said; or the interrupt.
    pub(super) fn run_on_board(
        &self,
        run: &OnBoard<'_>,
        interrupt: &Interrupt,
    ) -> Result<Vec<u8>, LabError> {
        let mut said = tempfile::tempfile().map_err(LabError::file(std::env::temp_dir()))?;
        let cpu = EMULATORS.take(&self.cpus);
        let mut command = self.command(cpu.as_ref());
        (run.arguments)(&mut command);
        command.arg("-serial").arg(format!("file:{}", path(&said)));
        let ended = run_tool(&mut command, run.timeout, interrupt);
        if matches!(ended, Err(LabError::Interrupted)) {
            return Err(LabError::Interrupted);
        }
        let octets = read(&mut said).map_err(LabError::file(std::env::temp_dir()))?;
        let text = String::from_utf8_lossy(&octets);
        if ended.is_ok() && text.ends_with(run.ends_with) {
            return Ok(octets);
        }
        let why = ended
            .err()
            .map_or_else(String::new, |error| error.to_string());
        Err(LabError::process(
            "the guest",
            format!(
                "did not come to its end: {why}\nWhat it said ends with:\n{}",
                end_of(&text)
            ),
        ))
    }
}

/// How many emulators run on each CPU, of all that this process has started.
struct EmulatorsByCpu(Mutex<BTreeMap<usize, usize>>);

/// A CPU that an emulator runs on until this is dropped.
struct CpuInUse<'a> {
    cpu: usize,
    emulators: &'a EmulatorsByCpu,
}

impl EmulatorsByCpu {
    /// Takes the one of these CPUs with the fewest emulators; `None` if there are no CPUs.
    fn take(&self, cpus: &[usize]) -> Option<CpuInUse<'_>> {
        let mut counts = self.0.lock();
        let count = |cpu: &&usize| counts.get(*cpu).copied().unwrap_or(0);
        let cpu = *cpus.iter().min_by_key(count)?;
        *counts.entry(cpu).or_default() += 1;
        Some(CpuInUse {
            cpu,
            emulators: self,
        })
    }
}

impl Drop for CpuInUse<'_> {
    fn drop(&mut self) {
        if let Some(count) = self.emulators.0.lock().get_mut(&self.cpu) {
            *count -= 1;
        }
    }
}

static EMULATORS: EmulatorsByCpu = EmulatorsByCpu(Mutex::new(BTreeMap::new()));

/// What the arguments of the emulator and of every kernel are, but for the models of preemption: a change of it is a different
/// machine.
#[must_use]
pub fn description(machine: Machine) -> String {
    let arguments = machine.arguments().join(" ");
    format!("{arguments} -append {}", machine.command_line())
}

/// What a guest said, as far as it can be read.
pub(super) fn messages(octets: &[u8]) -> Vec<Message> {
    octets
        .split(|octet| *octet == b'\n')
        .map_while(|line| serde_json::from_slice(line).ok())
        .collect()
}

/// The files of a running guest. None has a name: whatever ends the laboratory, nothing is left behind.
struct Files {
    initramfs: File,
    answer: File,
    console: File,
}

impl Files {
    fn open(boot: &Boot<'_>) -> Result<Self, LabError> {
        let open = || tempfile::tempfile().map_err(LabError::file(std::env::temp_dir()));
        let mut files = Self {
            initramfs: open()?,
            answer: open()?,
            console: open()?,
        };
        let needs_modules = boot.job.needs_modules();
        let modules = needs_modules.then(|| catalogue::modules(boot.kernel));
        let modules = modules.transpose()?.unwrap_or_default();
        boot.initramfs
            .write(&mut files.initramfs, &modules, boot.job)
            .map_err(LabError::file(std::env::temp_dir()))?;
        Ok(files)
    }

    fn name_to(&self, command: &mut Command) {
        command
            .arg("-chardev")
            .arg(format!("file,id=answer,path={}", path(&self.answer)))
            .arg("-device")
            .arg(format!("isa-debugcon,iobase={ANSWER_PORT},chardev=answer"))
            .arg("-device")
            .arg(format!("isa-debug-exit,iobase={EXIT_PORT},iosize=1"))
            .arg("-serial")
            .arg(format!("file:{}", path(&self.console)))
            .arg("-initrd")
            .arg(path(&self.initramfs));
    }

    fn answer(&mut self) -> Result<Vec<u8>, LabError> {
        let deflated = read(&mut self.answer).map_err(LabError::file(std::env::temp_dir()))?;
        Ok(inflated(&deflated))
    }

    fn end_of_console(&mut self) -> String {
        let octets = read(&mut self.console).unwrap_or_default();
        end_of(&String::from_utf8_lossy(&octets))
    }
}

fn end_of(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(CONSOLE_LINES)..].join("\n")
}

/// As far as it can be read: a guest that did not come to its end has not ended its answer either.
fn inflated(deflated: &[u8]) -> Vec<u8> {
    let mut octets = Vec::new();
    // What was read before an error is there.
    let _ = DeflateDecoder::new(deflated)
        .take(BYTES_MAX)
        .read_to_end(&mut octets);
    octets
}

/// Where another process of the same user finds a file that we have open.
fn path(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

fn read(file: &mut File) -> std::io::Result<Vec<u8>> {
    let mut octets = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(BYTES_MAX).read_to_end(&mut octets)?;
    Ok(octets)
}

/// Since when a guest has said nothing.
struct Silence {
    said_bytes: u64,
    since: Instant,
    max: Duration,
}

impl Silence {
    fn new(max: Duration) -> Self {
        Self {
            max,
            said_bytes: 0,
            since: Instant::now(),
        }
    }

    fn look(&mut self, files: &Files) -> Result<(), LabError> {
        let length = |file: &File| file.metadata().map_or(0, |metadata| metadata.len());
        let (answer, console) = (length(&files.answer), length(&files.console));
        if answer > BYTES_MAX || console > BYTES_MAX {
            let what = format!("it said more than {BYTES_MAX} octets");
            return Err(LabError::process("the guest", what));
        }
        if answer > self.said_bytes {
            self.said_bytes = answer;
            self.since = Instant::now();
        }
        if self.since.elapsed() > self.max {
            Err(LabError::process(
                "the guest",
                format!("it said nothing for {} s", self.max.as_secs()),
            ))
        } else {
            Ok(())
        }
    }
}

fn command_line(machine: Machine, preempt: Option<&str>) -> String {
    let preempt = preempt.map(|model| format!(" preempt={model}"));
    let (of_machine, preempt) = (machine.command_line(), preempt.unwrap_or_default());
    format!("{of_machine}{preempt} {VARIABLE}=1")
}

fn ask(program: Program, question: &[&str], interrupt: &Interrupt) -> Result<String, LabError> {
    run_tool(
        Command::new(program.name).args(question),
        VERSION_TIMEOUT,
        interrupt,
    )
    .map_err(|error| match error {
        LabError::Interrupted => LabError::Interrupted,
        error => LabError::Incomplete {
            what: format!("{error}. Debian: apt install {}", program.package),
        },
    })
}

fn firmware(folders: &str) -> Result<Vec<u8>, LabError> {
    let mut all = Vec::new();
    for name in FIRMWARE {
        let mut places = folders.lines().map(|folder| Path::new(folder).join(name));
        let file = places.find(|path| path.is_file());
        let file = file.ok_or_else(|| LabError::Incomplete {
            what: format!(
                "the emulator has no {name}. Debian: apt install {} seabios",
                PC.package
            ),
        })?;
        all.extend(fs::read(&file).map_err(LabError::file(&file))?);
    }
    Ok(all)
}

fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// A program that emulates machines, and its package.
#[derive(Clone, Copy)]
struct Program {
    name: &'static str,
    package: &'static str,
}

const PC: Program = Program {
    name: "qemu-system-x86_64",
    package: "qemu-system-x86",
};
const BOARDS: Program = Program {
    name: "qemu-system-arm",
    package: "qemu-system-arm",
};
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);
/// What runs before the kernel does.
const FIRMWARE: [&str; 3] = ["bios-256k.bin", "kvmvapic.bin", "linuxboot_dma.bin"];
/// Far longer than the longest experiment of ordinary length takes on a busy host.
const SILENCE_MAX: Duration = Duration::from_secs(600);
/// Of the answer and of the console, far more than any guest says.
const BYTES_MAX: u64 = 256 << 20;
/// What all machines have. Time of day and randomness are fixed.
const MACHINE: [&str; 17] = [
    "-M",
    "q35,hpet=off",
    "-cpu",
    "qemu64",
    "-m",
    "512",
    "-accel",
    "tcg,thread=single",
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
/// The least urgent one: nothing that is measured waits for an emulator.
const MAIN_THREAD_PRIORITY: &str = "1";
const NO_FIFO: &str = "This host grants no SCHED_FIFO, without which an emulated machine may not repeat. `rtorb check` says how to get it.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_one_name_in_options_and_files() {
        for machine in Machine::ALL {
            let name = machine.name();
            assert_eq!(name.parse(), Ok(machine));
            assert_eq!(serde_json::to_value(machine).unwrap(), name);
        }
        let unknown = "p7".parse::<Machine>().unwrap_err();
        assert!(unknown.contains("one-cpu, tick-clock, p1"), "{unknown}");
    }

    #[test]
    fn an_emulator_gets_the_cpu_with_the_fewest_others() {
        let emulators = EmulatorsByCpu(Mutex::new(BTreeMap::new()));
        let take = || emulators.take(&[3, 5]).unwrap();
        let (long, short) = (take(), take());
        assert_eq!([long.cpu, short.cpu], [3, 5]);
        drop(short);
        let next = take();
        assert_eq!(next.cpu, 5, "the long one still runs on 3");
        assert_eq!(take().cpu, 3);
        assert!(emulators.take(&[]).is_none());
    }

    #[test]
    fn a_campaign_is_of_the_machine_that_its_description_has() {
        for machine in Machine::ALL {
            let identity = Identity {
                machine: description(machine),
                ..Identity::default()
            };
            assert_eq!(Machine::of(&identity), machine);
        }
        assert_eq!(Machine::of(&Identity::default()), Machine::OneCpu);
    }
}
