//! `os/wakeup`: how late a periodic thread wakes, with and without load, and whether cyclictest says the same (P4 section 3).
//!
//! Our loop and cyclictest take turns in rounds of half a second: same CPU, priority and interval. First on a host that is
//! left in peace, with the CPU free to sleep and with the CPU kept awake; then the load is switched on.
//!
//! An emulated machine has our loop alone, under the one load that it was booted for. There a moment is as good as another one
//! only if it is drawn: load and tick keep their places from boot to boot, and a fixed period would meet them at the same ones.

use std::time::Duration;

use rtorb_host::placement::Placement;

use crate::experiments::beside::{LOADS, NONE, VariedLoad};
use crate::experiments::prelude::*;
use crate::processes::awake::Awake;
use crate::processes::probe::Probe;
use cyclictest::Cyclictest;
pub use periodic_thread::Question;
use skipped::with_skipped;

mod cyclictest;
mod kernels;
mod periodic_thread;
mod says;
mod skipped;

/// The experiment.
pub const STUDY: Study<Loops> = Study {
    name: "os/wakeup",
    title: "How late a periodic thread wakes, with and without load, beside cyclictest",
    reproduces: "P4 section 3 (cyclictest: maximum latency of the operating system)",
    amounts: Amounts {
        glance: 60,
        emulated: WARM_UP + SAMPLES_EMULATED + END.emulated,
        quick: [6, 170],
        // 100,000 of each that are kept.
        full: [210, 500],
        samples: "samples_per_round",
    },
    factors: &[
        LOADS,
        Factor::texts("cpu", &[IDLE, AWAKE, LOADED]),
        Factor::texts("tool", &[RTORB, CYCLICTEST]),
    ],
    parameters: &[
        ("interval_us", Value::ByEffort(INTERVAL_US)),
        ("clock", Text("CLOCK_MONOTONIC, absolute")),
        ("memory_locked", Text("where granted")),
    ],
    columns: &["tool"],
    leaves_out: |cell, effort| {
        let is_loaded = !cell.is("load", NONE);
        let is_ours = cell.is("tool", RTORB);
        let is_measured = effort.seeds().is_none() || (is_loaded && is_ours);
        is_loaded != cell.is("cpu", LOADED) || !is_measured
    },
    plots: says::plots,
    says: says::SAYS,
    notes: |context| {
        let is_host = context.effort.seeds().is_none();
        is_host.then(|| SLEEPS.to_owned()).into_iter().collect()
    },
    services: &[ServiceRow::new("timer", "wakeup")
        .of(&[("tool", "rtorb")])
        .configured_by(&["cpu"])],
    emulated: Some(Emulated {
        loads: EmulatedLoads::All,
        is_quick: true,
        cost_s: 1.0,
        loaded_cost_s: 4.5,
    }),
    kernels: Some(kernels::view),
    ..Study::with(|context, _| Loops::start(context))
};

/// Our loop in a probe, cyclictest if it can be had, and the load.
#[derive(Debug)]
pub struct Loops {
    placement: Placement,
    probe: Probe<Question>,
    cyclictest: Option<Cyclictest>,
    load: VariedLoad,
    notes: Vec<String>,
    /// Why there is no cyclictest.
    without_cyclictest: Option<&'static str>,
    /// Wake-ups that were skipped, of ours and of cyclictest's.
    skipped: [u64; 2],
    /// Samples that cyclictest took and did not print.
    lost: u64,
}

impl Loops {
    fn start(context: &Context) -> Result<Self, LabError> {
        let mut loops = Self {
            placement: placement(context),
            probe: Probe::start(&context.launcher, "wakeup probe")?,
            cyclictest: None,
            load: VariedLoad::later(context, 0),
            notes: Vec::new(),
            without_cyclictest: None,
            skipped: [0; 2],
            lost: 0,
        };
        if context.effort.seeds().is_none() {
            loops.find_cyclictest(context)?;
        }
        Ok(loops)
    }

    /// One that is refused its priority would not measure the same: it is left out.
    fn find_cyclictest(&mut self, context: &Context) -> Result<(), LabError> {
        if self.placement.fifo.is_none() {
            self.without_cyclictest = Some(NEEDS_FIFO);
            return Ok(());
        }
        let interval_us = INTERVAL_US.of(context.effort) as u64;
        let interrupt = &context.launcher.interrupt;
        self.cyclictest = Cyclictest::find(self.placement, interval_us, interrupt)?;
        let (_, samples) = STUDY.amounts.of(context.effort);
        match &self.cyclictest {
            Some(cyclictest) => {
                let described = cyclictest.described(samples);
                self.notes.push(format!("Beside ours: {described}."));
            }
            None => self.without_cyclictest = Some(NOT_INSTALLED),
        }
        Ok(())
    }

    fn note_of_skipped(&self) -> Option<String> {
        let [ours, theirs] = self.skipped;
        (ours + theirs > 0).then(|| {
            format!(
                "A wake-up that was late by more than the interval skipped others: {ours} of ours, {theirs} of cyclictest's. Each \
                 counts as late until the wake-up that skipped it."
            )
        })
    }

    fn note_of_lost(&self) -> Option<String> {
        (self.lost > 0).then(|| {
            format!(
                "cyclictest lost {} samples: it took them and did not print them. They may have been the latest.",
                self.lost
            )
        })
    }

    fn ours(&mut self, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let effort = turn.context.effort;
        let question = Question {
            placement: self.placement,
            interval_ns: INTERVAL_US.of(effort) as u64 * 1_000,
            samples: turn.samples,
            seed: turn.context.seed(turn.round),
        };
        let within = Duration::from_nanos(question.interval_ns * question.samples as u64);
        let answer = self.probe.ask(&question, within)?;
        if let Some(cyclictest) = &mut self.cyclictest {
            cyclictest.lock_memory(answer.memory_locked);
        }
        Ok(Sampled {
            warm_up: Some(WARM_UP as u64),
            ..Sampled::of(answer)
        })
    }
}

impl Subject for Loops {
    // A disk that has just been loaded would still be written to while the host is left in peace.
    const BLOCKS: Option<&'static str> = Some("load");

    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let context = turn.context;
        let is_awake = cell.is("cpu", AWAKE);
        let is_ours = cell.is("tool", RTORB);
        let has_cpu = !is_awake || self.placement.cpu.is_some();
        let has_tool = is_ours || self.cyclictest.is_some();
        if !has_cpu || !has_tool {
            return Ok(Sampled::default());
        }
        let Some(load) = self.load.set(cell, context)? else {
            return Ok(Sampled::default());
        };
        let awake = is_awake.then(|| Awake::keep(self.placement.cpu, ROUND_MAX));
        let mut sampled = match &self.cyclictest {
            Some(cyclictest) if !is_ours => {
                let run = cyclictest.run(&context.launcher, turn.samples)?;
                self.lost += run.lost;
                Sampled {
                    scheduling: run.scheduling.into_iter().collect(),
                    ..Sampled::whole(run.late_ns)
                }
            }
            _ => self.ours(turn)?,
        };
        if awake.as_ref().is_some_and(|awake| !awake.is_kept()) {
            return Err(LabError::process("os/wakeup", NOT_AWAKE));
        }
        self.load.check()?;
        let cpu = match (is_awake, load == NONE.into()) {
            (true, _) => AWAKE,
            (false, true) => IDLE,
            (false, false) => LOADED,
        };
        for (of, late_ns) in &mut sampled.parts {
            *of = labels([("load", load.clone()), ("cpu", cpu.into())]);
            let kept = kept(late_ns, context.effort);
            let kept_count = kept.len();
            // Drawn moments are never in the past.
            *late_ns = match context.effort.seeds() {
                Some(_) => kept.to_vec(),
                None => with_skipped(kept, INTERVAL_US.of(context.effort) as u64 * 1_000),
            };
            self.skipped[usize::from(!is_ours)] += (late_ns.len() - kept_count) as u64;
        }
        Ok(sampled)
    }

    fn notes(&self) -> Vec<String> {
        let later = [
            self.load.note(),
            self.note_of_skipped(),
            self.note_of_lost(),
        ];
        let later = later.into_iter().flatten();
        self.notes.iter().cloned().chain(later).collect()
    }

    fn absent(&self) -> Vec<(Labels, String)> {
        let left_out =
            |label, value: &str, why: &str| (labels([(label, value.into())]), why.to_owned());
        let cyclictest = self.without_cyclictest;
        let cyclictest = cyclictest.map(|why| left_out("tool", CYCLICTEST, why));
        let has_cpu = self.placement.cpu.is_some();
        let awake = (!has_cpu).then(|| left_out("cpu", AWAKE, NO_CPU));
        let absent = cyclictest.into_iter().chain(self.load.absent());
        absent.chain(awake).collect()
    }

    fn parameters(effort: Effort) -> Parameters {
        let left_out = (
            "samples_left_out_per_round",
            (WARM_UP + END.of(effort)).into(),
        );
        match effort {
            Effort::Emulated { .. } => labels([
                left_out,
                ("priority", u32::from(PRIORITY_EMULATED).into()),
                ("moments", DRAWN.into()),
            ]),
            Effort::Glance | Effort::Quick | Effort::Full => labels([
                left_out,
                ("cpu_kept_awake", "in the series with cpu = awake".into()),
            ]),
        }
    }
}

/// Without the first ones, in which caches are cold and the threads are still being looked at.
fn kept(late_ns: &[u64], effort: Effort) -> &[u64] {
    let end = late_ns.len().saturating_sub(END.of(effort));
    late_ns.get(WARM_UP..end).unwrap_or_default()
}

fn placement(context: &Context) -> Placement {
    let placement = context.launcher.placement;
    match context.effort {
        Effort::Emulated { .. } => Placement {
            fifo: placement.fifo.map(|_| PRIORITY_EMULATED),
            ..placement
        },
        Effort::Glance | Effort::Quick | Effort::Full => placement,
    }
}

/// The values of the label `cpu`.
const IDLE: &str = "idle";
const AWAKE: &str = "awake";
const LOADED: &str = "loaded";
/// The values of the label `tool`: our loop, and that of rt-tests.
const RTORB: &str = "rtorb";
const CYCLICTEST: &str = "cyclictest";
/// From one sample to the next: cyclictest's default. In an emulated machine as long as few of a kernel's paths are; a longer one
/// adds nothing but time in which nobody looks.
const INTERVAL_US: ByEffort = ByEffort {
    glance: 1_000,
    emulated: 200,
    quick: 1_000,
    full: 1_000,
};
const WARM_UP: usize = 20;
/// The last samples of a round that are not kept. In an emulated machine, the end of a thread may be in the last one.
const END: ByEffort = ByEffort {
    glance: 0,
    emulated: 1,
    quick: 0,
    full: 0,
};
/// That are kept, of each seed: with fewer, the largest of a seed says little of the kernel.
const SAMPLES_EMULATED: usize = 2_000;
/// Above the threads in which PREEMPT_RT handles interrupts, which have 50: what they do is not urgent to this thread.
const PRIORITY_EMULATED: u8 = 90;
const DRAWN: &str =
    "each from the seed of its round, evenly between 0.5 and 1.5 intervals after the last wake-up";
/// A run of half a second, and what a busy host may take to start it.
const ROUND_MAX: Duration = Duration::from_secs(60);

const SLEEPS: &str = "`cpu` = `idle`: nothing else runs there, and between two wake-ups the CPU goes idle; no deeper than into the state that \
                    /dev/cpu_dma_latency = 0 leaves it, where the laboratory may hold that. What a hypervisor does with an idle CPU \
                    it does not govern. Neither loop is given a first wake-up that differs from the others: both sleep until an \
                    absolute moment from the first one on, leave out moments that have passed, and lose as many samples at the \
                    beginning. A moment that was left out counts as late until the wake-up that left it out.";
const NEEDS_FIFO: &str = "Without SCHED_FIFO, cyclictest refuses to run: it was left out, and our loop ran as it could. \
                          `rtorb check` says how to get it.";
const NOT_INSTALLED: &str = "cyclictest is not installed (Debian: rt-tests): it was left out.";
const NO_CPU: &str = "No CPU was kept awake: the loops have none of their own.";
const NOT_AWAKE: &str = "the CPU cannot be kept awake: no thread of SCHED_IDLE is granted";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::processes::interrupt::Interrupt;

    #[test]
    fn a_full_run_keeps_a_hundred_thousand_samples_of_each() {
        let (rounds, samples) = STUDY.amounts.of(Effort::Full);
        assert!(rounds * (samples - WARM_UP) >= 100_000);
        assert_eq!(kept(&[7; 21], Effort::Full), [7]);
        assert!(kept(&[7; 3], Effort::Full).is_empty());
    }

    #[test]
    fn an_emulated_machine_has_a_round_a_seed_of_two_thousand_samples() {
        let effort = Effort::Emulated {
            seeds: 4,
            full: false,
        };
        let (rounds, samples) = STUDY.amounts.of(effort);
        assert_eq!((rounds, STUDY.cells(effort).len()), (4, 1));
        let mut late_ns = vec![7; samples];
        late_ns[WARM_UP - 1] = 9;
        *late_ns.last_mut().unwrap() = 9;
        assert_eq!(kept(&late_ns, effort), [7; 2_000]);
        assert!(kept(&[7; WARM_UP], effort).is_empty());
        // Of virtual time, which is most of what a boot costs.
        let busy_us = rounds * samples * INTERVAL_US.of(effort);
        assert!(busy_us < 2_100_000, "{busy_us}");
        let context = Context::new(effort, "/bin/false".into(), Interrupt::new()).unwrap();
        let fifo = context.launcher.placement.fifo;
        assert_eq!(placement(&context).fifo, fifo.map(|_| 90));
    }

    #[test]
    fn the_load_is_switched_on_last() {
        assert!(STUDY.varies_load());
        let cells = STUDY.cells(Effort::Quick);
        let shown = |cell: &rtorb_results::Labels| format!("{} {}", cell["cpu"], cell["tool"]);
        let cells: Vec<String> = cells.iter().map(shown).collect();
        let expected = [
            "idle rtorb",
            "idle cyclictest",
            "awake rtorb",
            "awake cyclictest",
            "loaded rtorb",
            "loaded cyclictest",
        ];
        assert_eq!(cells, expected);
    }
}
