//! Random systems with one cause-effect chain, as files, and the tasks that the simulator runs for them.

use rtorb_sched::model::{CheckReport, System, Trigger};

use super::super::simulator::distributed::Chances;
use super::registers::{SimulatedChain, SimulatedTask};

/// The periods of tasks, in us. Their hyperperiod is 200 ms.
const PERIODS_US: [u64; 6] = [5_000, 8_000, 10_000, 20_000, 25_000, 40_000];

/// The end of arrivals, in us: several hyperperiods.
const HORIZON_US: u64 = 1_000_000;

/// Returns the text of a system with a chain through two to five of its behaviours, on one or two CPUs of one node.
pub(super) fn system_text(chances: &mut Chances) -> String {
    let cpus = 1 + chances.below(2);
    let roots = 2 + chances.below(4);
    let is_let = chances.below(3) == 0;
    let has_offsets = chances.below(2) == 0;
    let mut priorities: Vec<usize> = (1..=2 * roots).collect();
    let mut texts = vec![String::new(); cpus];
    let mut through = Vec::new();
    let share = 1_200 * cpus as u64 / roots as u64;
    for root in 0..roots {
        let period_us = PERIODS_US[chances.below(PERIODS_US.len())];
        let most_us = (period_us * (1 + chances.next() % share) / 2_000).max(2);
        let least_us = 1 + chances.next() % most_us;
        let mut priority = || priorities.swap_remove(chances.below(priorities.len()));
        let (own, called) = (priority(), priority());
        let (cpu, callee_cpu) = (chances.below(cpus), chances.below(cpus));
        let trigger = match chances.below(4) {
            0 if !is_let => format!(
                "minimum_gap = \"{period_us}us\"\nmaximum_gap = \"{}us\"",
                period_us + chances.next() % period_us
            ),
            _ if has_offsets => format!(
                "period = \"{period_us}us\"\noffset = \"{}us\"",
                chances.next() % period_us
            ),
            _ => format!("period = \"{period_us}us\""),
        };
        let jitter = match chances.below(3) {
            0 => format!("jitter = \"{}us\"\n", chances.next() % (period_us / 4)),
            _ => String::new(),
        };
        let has_callee = chances.below(4) == 0;
        let calls = if has_callee {
            format!("calls = [{{ to = \"c{callee_cpu}.called{root}\", way = \"one-way\" }}]\n")
        } else {
            String::new()
        };
        texts[cpu] += &format!(
            "[[component.behaviour]]\nname = \"root{root}\"\n{trigger}\n{jitter}{calls}priority = {own}\ndeadline = \"10s\"\n\
             execution = {{ least = \"{least_us}us\", most = \"{most_us}us\" }}\n"
        );
        through.push(format!("\"c{cpu}.root{root}\""));
        if has_callee {
            texts[callee_cpu] += &format!(
                "[[component.behaviour]]\nname = \"called{root}\"\npriority = {called}\ndeadline = \"10s\"\n\
                 execution = {{ least = \"1us\", most = \"{}us\" }}\n",
                1 + most_us / 4
            );
            through.push(format!("\"c{callee_cpu}.called{root}\""));
        }
    }
    let mut text = format!("name = \"random\"\n[[node]]\nname = \"node\"\ncpus = {cpus}\n");
    for (cpu, behaviours) in texts.iter().enumerate() {
        text += &format!("[[component]]\nname = \"c{cpu}\"\ncpu = {cpu}\n{behaviours}");
    }
    text + &format!(
        "[[cause_effect_chain]]\nname = \"chain\"\ncommunication = \"{}\"\nthrough = [{}]\n",
        if is_let { "let" } else { "implicit" },
        through.join(", ")
    )
}

/// Returns the tasks of a system, with arrivals that its file allows.
pub(super) fn tasks(
    system: &System,
    report: &CheckReport,
    chances: &mut Chances,
) -> Vec<SimulatedTask> {
    let behaviours = system.behaviours.iter().zip(&report.behaviours);
    let task = |(behaviour, bound): (
        &rtorb_sched::model::Behaviour,
        &rtorb_sched::model::BehaviourBound,
    )| {
        let rtorb_sched::model::Execution::Range { least_ns, most_ns } = behaviour.execution else {
            panic!("each execution is a range");
        };
        SimulatedTask {
            processor: system.components[behaviour.component].cpu as usize,
            priority: bound.priority.expect("fixed priorities"),
            execution: (least_ns / 1_000, most_ns / 1_000),
            calls: behaviour.calls.first().map(|call| call.to[0]),
            arrivals: arrivals(behaviour, chances),
            jitter: behaviour.jitter_ns / 1_000,
        }
    };
    behaviours.map(task).collect()
}

fn arrivals(behaviour: &rtorb_sched::model::Behaviour, chances: &mut Chances) -> Vec<u64> {
    let (least_us, most_us, first_us) = match behaviour.trigger {
        Trigger::Called => return Vec::new(),
        Trigger::Periodic {
            period_ns,
            offset_ns,
        } => {
            let offset_us = offset_ns.map(|offset_ns| offset_ns / 1_000);
            let period_us = period_ns / 1_000;
            let first_us = offset_us.unwrap_or_else(|| chances.next() % period_us);
            (period_us, period_us, first_us)
        }
        Trigger::Sporadic { gap_ns, .. } => {
            let gap_us = gap_ns / 1_000;
            let most_us = behaviour.gap_max_ns.expect("a maximum gap") / 1_000;
            (gap_us, most_us, chances.next() % most_us)
        }
    };
    let gap_us = |at: &u64| Some(at + least_us + chances.up_to(most_us - least_us));
    let all = core::iter::successors(Some(first_us), gap_us);
    all.take_while(|at| *at < HORIZON_US).collect()
}

/// Returns the chain of a system.
pub(super) fn chain(system: &System) -> SimulatedChain {
    let chain = &system.cause_effect_chains[0];
    let period = |stage: &Vec<usize>| {
        let period_ns = system.behaviours[stage[0]].trigger.period_ns();
        period_ns.expect("a root") / 1_000
    };
    let is_let = chain.communication == rtorb_sched::model::Communication::LogicalExecutionTime;
    SimulatedChain {
        stages: chain
            .stages
            .iter()
            .map(|stage| (stage[0], stage[stage.len() - 1]))
            .collect(),
        let_periods: is_let.then(|| chain.stages.iter().map(period).collect()),
    }
}
