//! Random systems with random costs, from a seed.

use rtorb_sched::Burst;
use rtorb_sched::model::{Composition, Interrupt, Layer, Part, Platform, System, compose};

use super::system;

/// SplitMix64 (Steele, Lea and Flood 2014).
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % end
    }

    fn place(&mut self, of: usize) -> usize {
        usize::try_from(self.below(of as u64)).expect("it is below a usize")
    }

    fn chance(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }
}

/// The parameters of a random system.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) nodes: u64,
    pub(crate) cpus: u64,
    pub(crate) roots: u64,
    pub(crate) called: u64,
    /// The utilisation of a CPU by all roots together, in thousandths.
    pub(crate) load: u64,
    /// Whether some nodes use earliest deadline first.
    pub(crate) edf: bool,
}

/// A behaviour before it becomes a table.
struct Draft {
    component: u64,
    head: String,
    calls: Vec<String>,
}

/// Creates a system with these parameters.
pub(crate) fn random_system(draw: &mut Draw, shape: Shape) -> System {
    let Shape { nodes, cpus, .. } = shape;
    let places = nodes * cpus;
    let each = shape.load * places * 1_000 / (shape.roots + shape.called).max(1);
    let mut all: Vec<Draft> = vec![];
    for index in 0..shape.roots {
        let period_us = [5, 10, 20, 25, 40, 50, 100][draw.place(7)] * 1_000;
        let execution_ns = (draw.below(2 * each + 1) * period_us / 1_000).max(1);
        let deadline = ["", "deadline = \"30ms\"\n", "deadline = \"200ms\"\n"][draw.place(3)];
        let jitter = if draw.chance(4) {
            format!("jitter = \"{}us\"\n", draw.below(3_000))
        } else {
            String::new()
        };
        let priority = if draw.chance(5) {
            format!("priority = {}\n", 1_000 * (draw.below(8) + 1))
        } else {
            String::new()
        };
        all.push(Draft {
            component: draw.below(places),
            head: format!(
                "name = \"root{index}\"\nperiod = \"{period_us}us\"\nexecution = \"{execution_ns}ns\"\n{deadline}{jitter}{priority}"
            ),
            calls: vec![],
        });
    }
    for index in 0..shape.called {
        let component = draw.below(places);
        let execution_ns = (draw.below(2 * each + 1) * 10).max(1);
        let caller = draw.place(all.len());
        let way = if draw.chance(2) { "one-way" } else { "two-way" };
        all[caller].calls.push(format!(
            "{{ to = \"c{component}.called{index}\", way = \"{way}\" }}"
        ));
        let head = format!(
            "name = \"called{index}\"\nexecution = \"{execution_ns}ns\"\ndeadline = \"400ms\"\n"
        );
        all.push(Draft {
            component,
            head,
            calls: vec![],
        });
    }
    system(&text(draw, shape, &all))
}

fn text(draw: &mut Draw, shape: Shape, all: &[Draft]) -> String {
    let mut text =
        "name = \"random\"\nstrategy = \"dms\"\n[priorities]\nmost_urgent = 32767\n".to_owned();
    for node in 0..shape.nodes {
        let edf = if shape.edf && draw.chance(3) {
            "scheduling = \"edf\"\n"
        } else {
            ""
        };
        text += &format!("[[node]]\nname = \"n{node}\"\ncpus = {}\n{edf}", shape.cpus);
    }
    for one in 0..shape.nodes {
        for other in one + 1..shape.nodes {
            text += &format!(
                "[[link]]\nbetween = [\"n{one}\", \"n{other}\"]\nlatency = \"{}us\"\n",
                1 + draw.below(500)
            );
        }
    }
    for component in 0..shape.nodes * shape.cpus {
        let (node, cpu) = (component / shape.cpus, component % shape.cpus);
        text +=
            &format!("[[component]]\nname = \"c{component}\"\nnode = \"n{node}\"\ncpu = {cpu}\n");
        for resource in ["r", "s"] {
            let mutex = if draw.chance(2) {
                "ceiling"
            } else {
                "inheritance"
            };
            text +=
                &format!("[[component.resource]]\nname = \"{resource}\"\nmutex = \"{mutex}\"\n");
        }
        for behaviour in all
            .iter()
            .filter(|behaviour| behaviour.component == component)
        {
            text += &format!(
                "[[component.behaviour]]\n{}calls = [{}]\n",
                behaviour.head,
                behaviour.calls.join(", ")
            );
            if draw.chance(3) {
                let resource = if draw.chance(2) { "r" } else { "s" };
                text +=
                    &format!("sections = [{{ resource = \"{resource}\", length = \"1ns\" }}]\n");
            }
        }
    }
    text
}

/// Composes a system with platforms that cost nothing, and then adds costs of every kind.
pub(crate) fn composed(draw: &mut Draw, system: &System) -> Composition {
    let platforms = vec![Platform::ideal(); system.nodes.len()];
    let mut composed = compose(system, &platforms).expect("it can be composed");
    let part = |layer, what: &str, times, ns| Part {
        layer,
        what: what.to_owned(),
        code_of: None,
        times,
        ns,
    };
    for processor in &mut composed.processors {
        for (what, period_ns) in [
            ("tick", 4_000_000),
            ("release of this", 7_000_000),
            ("release of that", 9_000_000),
        ] {
            let cost = part(Layer::OperatingSystem, what, 1, draw.below(9_000));
            processor.interrupts.push(Interrupt {
                period_ns,
                burst: Burst::NONE,
                jitter_ns: 0,
                cost,
            });
        }
    }
    for segment in &mut composed.segments {
        segment.execution.push(part(
            Layer::OperatingSystem,
            "context switches",
            2,
            draw.below(5_000),
        ));
        segment
            .execution
            .push(part(Layer::Orb, "calls", 1, draw.below(5_000)));
        segment.blocking.push(part(
            Layer::OperatingSystem,
            "kernel",
            1,
            draw.below(20_000),
        ));
        segment.contended_lock_ns = draw.below(3_000);
        if segment.after.is_none() {
            segment
                .jitter
                .push(part(Layer::OperatingSystem, "clock", 1, draw.below(20_000)));
        }
        for (_, section) in &mut segment.sections {
            section.length_ns = draw.below(50_000);
        }
    }
    composed
}
