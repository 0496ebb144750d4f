//! The first process of an emulated machine: makes it a system, runs its job, answers, and switches it off.
//!
//! It is the same program as on the host. What it may do to a system (mount, take the limit off real-time tasks) is done behind
//! one door, [`boot`], which opens for the first process of a machine whose kernel was told so and for nobody else.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use rtorb_host::description::preemption_model;
use rtorb_instruments::replay::sample_taken_address;
use rtorb_lab::LabError;
use rtorb_lab::experiment::{self, Context, Effort, Progress};
use rtorb_lab::experiments;
use rtorb_lab::processes::emulated::{VARIABLE, only_if_told_so};
use rtorb_lab::processes::interrupt::Interrupt;
use rtorb_os::sched::{SchedPolicy, apply_policy};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use rustix::system::finit_module;

use crate::explain::functions;
use crate::initramfs::{JOB, MODULES};
use crate::job::{Job, Message};
use crate::machine::{ANSWER_PORT, EXIT_PORT};

/// Whether this process is the first one of a guest: then it must call [`boot`] and nothing else.
#[must_use]
pub fn is_guest() -> bool {
    std::process::id() == 1 && std::env::var_os(VARIABLE).is_some()
}

/// Runs the guest; returns when the machine could not be switched off.
///
/// # Panics
/// Never by intention; a panic of the first process ends the machine, and its text is on the console.
pub fn boot() {
    let done = prepare().and_then(|()| work());
    if let Err(error) = &done {
        let _ = writeln!(io::stderr(), "rtorb guest: {error}");
    }
    switch_off(u8::from(done.is_err()));
}

/// What any system has before its first program runs.
fn prepare() -> io::Result<()> {
    for (source, target) in FILE_SYSTEMS {
        fs::create_dir_all(target)?;
        let mounted = mount(*source, *target, *source, MountFlags::empty(), None);
        mounted.map_err(|error| io::Error::other(format!("{target} is not mounted: {error}")))?;
        if *target == "/proc" {
            only_if_told_so()?;
        }
    }
    // Up, which gives it its address.
    fs::write("/sys/class/net/lo/flags", "0x9")?;
    fs::write("/proc/sys/kernel/sched_rt_runtime_us", "-1")?;
    apply_policy(SchedPolicy::Fifo(ABOVE_LOADS)).map_err(io::Error::other)
}

fn work() -> io::Result<()> {
    let mut answer = Answer::open()?;
    let job: Job = serde_json::from_slice(&fs::read(Path::new("/").join(JOB))?)?;
    answer.say(&Message::Booted {
        release: fs::read_to_string("/proc/sys/kernel/osrelease")?
            .trim()
            .to_owned(),
        preempt: preemption_model(),
        sample_taken: sample_taken_address(),
    })?;
    match job {
        Job::Measure {
            experiments,
            load,
            seeds,
            full,
        } => {
            let effort = Effort::Emulated { seeds, full };
            let context = Context::new(effort, "/init".into(), Interrupt::new());
            let mut context = context.map_err(io::Error::other)?;
            context.load = load.parse().map_err(io::Error::other)?;
            let mut marks_are_known = true;
            for name in experiments {
                answer.say(&Message::Begins {
                    experiment: name.clone(),
                })?;
                let mut measured = measure(&name, &context);
                marks_are_known &= !matches!(measured, Message::Failed { .. });
                if !marks_are_known {
                    forget_marks(&mut measured);
                }
                answer.say(&measured)?;
            }
        }
        Job::Symbols => {
            let symbols = fs::read_to_string("/proc/kallsyms")?;
            answer.say(&Message::Symbols(functions(&symbols)))?;
        }
    }
    answer.say(&Message::End)
}

fn measure(name: &str, context: &Context) -> Message {
    let measured = experiments::by_name(name).and_then(|experiment| {
        experiment
            .modules()
            .iter()
            .try_for_each(|name| load(name))?;
        experiment::run(&*experiment, context, &mut Silent)
    });
    match measured {
        Ok(results) => Message::Measured(Box::new(results)),
        Err(error) => Message::Failed {
            experiment: name.to_owned(),
            why: error.to_string(),
        },
    }
}

/// Loads a module, if the guest's root has it. A kernel whose package has none may have its code built in; if it does not, the
/// experiment says what it lacks.
fn load(module: &str) -> Result<(), LabError> {
    for (end, flags) in [("ko", 0), ("ko.xz", MODULE_INIT_COMPRESSED_FILE)] {
        let path = format!("/{MODULES}/{module}.{end}");
        let Ok(file) = File::open(&path) else {
            continue;
        };
        match finit_module(file, c"", flags) {
            // An experiment before this one loaded it.
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(LabError::file(path)(errno.into())),
        }
    }
    Ok(())
}

/// How many samples an experiment marked that failed is not known: those of later ones cannot be found again.
fn forget_marks(measured: &mut Message) {
    if let Message::Measured(results) = measured {
        for series in &mut results.series {
            series.worst_sample = None;
            series.typical_sample = None;
        }
    }
}

/// Nobody watches a guest.
struct Silent;

impl Progress for Silent {
    fn begin(&mut self, _steps: usize) {}
    fn step(&mut self, _next: &str) {}
    fn note(&mut self, _text: &str) {}
}

/// The way out. What is said is deflated: an octet costs a system call and the emulator far more.
struct Answer {
    deflated: DeflateEncoder<Port>,
}

impl Answer {
    fn open() -> io::Result<Self> {
        let ports = OpenOptions::new().write(true).open("/dev/port")?;
        Ok(Self {
            deflated: DeflateEncoder::new(Port { ports }, Compression::fast()),
        })
    }

    /// Everything of it is out when this returns.
    fn say(&mut self, message: &Message) -> io::Result<()> {
        serde_json::to_writer(&mut self.deflated, message)?;
        self.deflated.write_all(b"\n")?;
        self.deflated.flush()
    }
}

/// A port whose octets the emulator appends to a file.
struct Port {
    ports: File,
}

impl Write for Port {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        // A longer write would go to the ports that follow.
        for octet in octets {
            self.ports
                .write_all_at(std::slice::from_ref(octet), ANSWER_PORT)?;
        }
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn switch_off(status: u8) {
    let ports = OpenOptions::new().write(true).open("/dev/port");
    let off = ports.and_then(|ports| ports.write_all_at(&[status], EXIT_PORT));
    if let Err(error) = off {
        let _ = writeln!(io::stderr(), "rtorb guest: cannot be switched off: {error}");
    }
}

/// Of the process that asks and of what it starts: under every load it would wait a hundred turns for its own. Loads lower themselves,
/// and what is measured raises itself.
const ABOVE_LOADS: u8 = 1;
/// linux/module.h.
const MODULE_INIT_COMPRESSED_FILE: i32 = 4;
/// In this order: each on what the one before it made.
const FILE_SYSTEMS: &[(&str, &str)] = &[
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("devtmpfs", "/dev"),
    ("tmpfs", "/dev/shm"),
    ("tmpfs", "/tmp"),
    ("debugfs", "/sys/kernel/debug"),
];
