//! A campaign: every kernel under every load, as one comparison.
//!
//! Each boot is a case: one system under one load. Cases run side by side in as many emulated machines as there are CPUs, and
//! know nothing of each other. One of them is run twice, and must say the same octets both times.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rtorb_host::Host;
use rtorb_lab::LabError;
use rtorb_lab::experiments::{os_operations, own_program};
use rtorb_lab::processes::interrupt::Interrupt;
use rtorb_results::campaign::SCHEMA;
pub use rtorb_results::campaign::{
    Absent, Answer, Host as HostOfCampaign, Identity, Record, SelfCheck, System, Wall,
};
use rtorb_results::timestamp;
use rtorb_results::{Results, distinct};

use crate::board;
use crate::catalogue::{self, Kernel};
use crate::comparison::OfSystem;
use crate::initramfs::{Initramfs, OwnFile};
use crate::job::{Job, Message, need_modules};
use crate::machine::{self, Boot, Emulator, Machine};
use crate::program;
use cases::Cases;
pub use files::folder_of;
pub use plan::{LOADS, Selection};

mod cases;
mod files;
mod joined;
mod plan;
mod workers;

/// What the user asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The kernels, each by another name.
    pub kernels: Vec<Kernel>,
    /// The preemption models that the kernels are told; none given leaves each what it is by itself.
    pub preempt: Vec<String>,
    /// The machine that is emulated.
    pub machine: Machine,
    /// Experiments and loads.
    pub selection: Selection,
    /// How many seeds: 1 and up.
    pub seeds: u16,
    /// How many guests run side by side: 1 and up.
    pub guests: usize,
    /// The guests' program; `None` finds it.
    pub program: Option<PathBuf>,
    /// Programs of the user's own: the experiments `program/NAME`.
    pub own_programs: Vec<OwnFile>,
    /// Where everything is written.
    pub folder: PathBuf,
}

/// Is told how far a campaign is.
pub trait Watch {
    /// Something that a reader should know.
    fn note(&mut self, text: &str);
    /// How far it is; also told when nothing changed, a few times a second.
    fn at(&mut self, standing: &Standing<'_>);
}

/// How far a campaign is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing<'a> {
    /// How many cases are over.
    pub done: usize,
    /// Of so many.
    pub cases: usize,
    /// Which run now.
    pub running: &'a [String],
    /// How long the rest takes in about; `None` before that can be said.
    pub left: Option<Duration>,
}

/// A campaign that is over.
#[derive(Clone, Debug)]
pub struct Finished {
    /// What campaign.json has.
    pub record: Record,
    /// Each experiment, all systems side by side.
    pub compared: Vec<Results>,
    /// The report; `None` when there was nothing to write.
    pub page: Option<PathBuf>,
}

impl Finished {
    /// True if everything that was planned was measured, no round of it was lost, and the case that ran twice said the same twice.
    #[must_use]
    pub fn is_good(&self) -> bool {
        let record = &self.record;
        let is_whole = self.compared.iter().all(|results| results.lost.is_empty());
        is_whole && record.complete && record.self_check.repeats == Some(true)
    }
}

/// Checks what a campaign needs besides its kernels, which have these names: the emulator, and the guests' program. For a caller that
/// would otherwise fetch kernels in vain.
///
/// # Errors
/// What is wrong or missing, and how to get it; or the interrupt.
pub fn check_needs(
    kernels: &[String],
    selection: &Selection,
    program: Option<&Path>,
    executable: &Path,
    interrupt: &Interrupt,
) -> Result<(), LabError> {
    selection.parts()?;
    let is_of_board = |name: &String| catalogue::is_guest(name);
    if kernels.iter().any(is_of_board) {
        Emulator::find_for_boards(executable, interrupt)?;
    }
    if kernels.iter().all(is_of_board) {
        return Ok(());
    }
    Emulator::find(executable, interrupt)?;
    program::find(program, executable, interrupt).map(drop)
}

/// What boots need.
struct Needs {
    /// For a Linux; `None` if no kernel is one.
    pc: Option<Pc>,
    /// The emulator of boards; `None` if no kernel runs on a board.
    boards: Option<Emulator>,
}

/// What boots of a Linux need.
struct Pc {
    emulator: Emulator,
    initramfs: Initramfs,
}

impl Needs {
    fn find(request: &Request, executable: &Path, interrupt: &Interrupt) -> Result<Self, LabError> {
        let is_of_board = |kernel: &Kernel| kernel.board.is_some();
        let boards = request.kernels.iter().any(is_of_board);
        let boards = boards.then(|| Emulator::find_for_boards(executable, interrupt));
        let boards = boards.transpose()?;
        if boards.is_some() && request.kernels.iter().all(is_of_board) {
            return Ok(Self { pc: None, boards });
        }
        let emulator = Emulator::find(executable, interrupt)?;
        let program = program::find(request.program.as_deref(), executable, interrupt)?;
        let initramfs = Initramfs::with_program(&program)?;
        let initramfs = initramfs.with_own_programs(&request.own_programs)?;
        let pc = Some(Pc {
            emulator,
            initramfs,
        });
        Ok(Self { pc, boards })
    }

    fn emulators(&self) -> impl Iterator<Item = &Emulator> {
        let pc = self.pc.iter().map(|pc| &pc.emulator);
        pc.chain(&self.boards)
    }
}

/// Runs a campaign and writes what it found. `executable` is this program's own file.
///
/// # Errors
/// What was asked for that there is not, a folder that holds another campaign, or what the file system said. An interrupt is
/// none, and neither is a case that fails: the record says what is missing.
pub fn run(
    request: &Request,
    executable: &Path,
    interrupt: &Interrupt,
    watch: &mut dyn Watch,
) -> Result<Finished, LabError> {
    let (started, begin) = (timestamp::now(), Instant::now());
    let parts = request.selection.parts()?;
    check_own_programs(&parts, &request.own_programs)?;
    check_modules(&parts, &request.kernels)?;
    check_boards(&parts, request)?;
    let needs = Needs::find(request, executable, interrupt)?;
    if let Some(doubt) = needs.emulators().find_map(Emulator::doubt) {
        watch.note(doubt);
    }
    let (systems, asked) = systems(request, watch)?;
    let mut identity = identity(request, &needs, &parts);
    (identity.systems, identity.asked) = (systems, asked);
    let earlier = files::earlier(&request.folder, &identity)?;
    let kernels: Vec<&Kernel> = identity.systems.iter().map(|one| &one.kernel).collect();
    let all = plan::cases(&kernels, &parts);
    if request.selection.full {
        let seconds: f64 = all.iter().map(|case| case.part.cost_s()).sum();
        let hours = seconds / 3_600.0 / request.guests.max(1) as f64;
        watch.note(&format!(
            "All {} boots take about {hours:.1} h on a quiet host, {} side by side.",
            all.len(),
            request.guests
        ));
    }
    let cases = Cases {
        all,
        identity: identity.clone(),
        needs,
        interrupt: interrupt.clone(),
    };
    let ended = cases::run(cases, request.guests, watch)?;
    ended.name_systems(&mut identity);
    let systems = ended.of_systems(&identity);
    let record = Record {
        schema: SCHEMA.to_owned(),
        id: crate::comparison::name_of(&identity),
        complete: ended.is_complete(),
        missing: ended.missing(&identity),
        self_check: ended.self_check(&identity),
        answers: ended.answers(),
        wall: Wall {
            started,
            duration_s: begin.elapsed().as_secs_f64(),
            guests: request.guests,
            host: HostOfCampaign::of(&Host::describe()),
        },
        identity,
    };
    ended.keep_differing(&request.folder, &record.self_check)?;
    if !record.complete && earlier.is_some_and(|earlier| earlier.complete) {
        watch.note(KEPT);
        return Ok(Finished {
            record,
            compared: Vec::new(),
            page: None,
        });
    }
    let (compared, page) = files::write(&request.folder, &record, &systems)?;
    Ok(Finished {
        record,
        compared,
        page,
    })
}

/// # Errors
/// That a program of the user's own is to be measured and was not given, has the name of another, or that no guest can run it.
fn check_own_programs(parts: &[plan::Part], given: &[OwnFile]) -> Result<(), LabError> {
    for (at, own) in given.iter().enumerate() {
        program::check_static(&own.file)?;
        if given[..at].iter().any(|before| before.name == own.name) {
            let what = format!("two programs are called {:?}: give each a name", own.name);
            return Err(LabError::Incomplete { what });
        }
    }
    let experiments = parts.iter().flat_map(|part| &part.experiments);
    let mut own = experiments.filter_map(|name| name.strip_prefix(own_program::PREFIX));
    match own.find(|name| given.iter().all(|one| one.name != **name)) {
        None => Ok(()),
        Some(name) => Err(LabError::Incomplete {
            what: format!("where is the program {name}? Say `--own-program {name}=FILE`"),
        }),
    }
}

/// # Errors
/// That an experiment needs modules that a kernel was fetched without.
fn check_modules(parts: &[plan::Part], kernels: &[Kernel]) -> Result<(), LabError> {
    if !parts.iter().any(|part| need_modules(&part.experiments)) {
        return Ok(());
    }
    let mut kernels = kernels.iter();
    kernels.try_for_each(|kernel| catalogue::modules(kernel).map(drop))
}

/// # Errors
/// That nothing is planned that a guest of a board can run, or that instructions would not take the same time on it.
fn check_boards(parts: &[plan::Part], request: &Request) -> Result<(), LabError> {
    let runs_nothing = |kernel: &Kernel| parts.iter().all(|part| part.of(kernel).is_none());
    for kernel in request
        .kernels
        .iter()
        .filter(|kernel| kernel.board.is_some())
    {
        let name = &kernel.name;
        let what = if request.machine != Machine::OneCpu {
            format!("{name} has a board of its own: leave --machine out")
        } else if runs_nothing(kernel) {
            format!(
                "{name} runs {} alone, under no load: name that in --experiments, or leave --experiments and --loads out",
                os_operations::NAME
            )
        } else {
            continue;
        };
        return Err(LabError::Incomplete { what });
    }
    Ok(())
}

/// The systems, as far as they are known before they have booted, and what each kernel is told.
fn systems(
    request: &Request,
    watch: &mut dyn Watch,
) -> Result<(Vec<System>, Vec<Option<String>>), LabError> {
    let (mut systems, mut asked) = (Vec::new(), Vec::new());
    for kernel in &request.kernels {
        let models = if kernel.board.is_some() {
            Vec::new()
        } else if !catalogue::is_real_time(kernel)? {
            request.preempt.clone()
        } else {
            let (fit, unfit): (Vec<_>, Vec<_>) = request
                .preempt
                .iter()
                .cloned()
                .partition(|model| !["none", "voluntary"].contains(&model.as_str()));
            if !unfit.is_empty() {
                watch.note(&format!(
                    "{} is PREEMPT_RT and has no model {}: it runs as it is by itself",
                    kernel.name,
                    unfit.join(" or ")
                ));
            }
            fit
        };
        let models = if models.is_empty() {
            vec![None]
        } else {
            models.into_iter().map(Some).collect()
        };
        for model in models {
            systems.push(System {
                kernel: kernel.clone(),
                preempt: model.clone().unwrap_or_default(),
            });
            asked.push(model);
        }
    }
    Ok((systems, asked))
}

fn identity(request: &Request, needs: &Needs, parts: &[plan::Part]) -> Identity {
    let first = needs.emulators().next();
    let first = |of: fn(&Emulator) -> &String| first.map(of).cloned().unwrap_or_default();
    let initramfs = needs.pc.as_ref().map(|pc| pc.initramfs.sha256());
    Identity {
        emulator: first(|emulator| &emulator.version),
        emulator_sha256: first(|emulator| &emulator.sha256),
        firmware_sha256: first(|emulator| &emulator.firmware_sha256),
        machine: machine::description(request.machine),
        boards: needs.boards.as_ref().map(board::identity),
        initramfs_sha256: initramfs.unwrap_or_default().to_owned(),
        systems: Vec::new(),
        asked: Vec::new(),
        experiments: distinct(parts.iter().flat_map(|part| part.experiments.clone())),
        loads: distinct(parts.iter().map(|part| part.load.clone())),
        boots: parts
            .iter()
            .map(|part| (part.load.clone(), part.experiments.clone()))
            .collect(),
        seeds: request.seeds,
        full: request.selection.full,
        shift: request.machine.shift(),
    }
}

/// The folder of explained samples in that of a campaign.
pub(crate) const EXPLANATIONS: &str = "explanations";

const KEPT: &str = "this run is not complete: the complete one of the same campaign that is in the folder was kept";
