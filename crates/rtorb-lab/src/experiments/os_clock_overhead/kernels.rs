//! The cost of a tick on each operating system.

use super::finest::{END_NS, of_limited};
use crate::experiments::prelude::*;
use crate::systems::essential;

/// What a tick costs, of medians: in those what else delays the program cancels.
pub(super) fn view(gathered: &Gathered<'_>) -> Results {
    let of = labels([("what", "overhead_from_medians".into())]);
    let mut by_thread = of.clone();
    by_thread.insert("tick".to_owned(), "thread".into());
    let compared = Compared {
        what: "Cost of a tick",
        of: &by_thread,
        by: By::Median,
    };
    let has_preempt_rt = gathered
        .parts
        .iter()
        .any(|part| part.results.host.preempt_rt);
    let mut view = essential(gathered, compared.what, &of);
    view.tables.push(TableView::new("finest", "How long the program takes beside more and more ticks")
        .caption(format!(
            "P3 section 5.1: the finest clock with which a system makes progress. The program computes for {} us. Ticks end after {} us: \
             where it takes longer than that, it made no progress beside them.",
            super::PROGRAM_NS / 1_000,
            END_NS / 1_000
        ))
        .of(of_limited())
        .rows([SYSTEM])
        .columns(["resolution_us"])
        .values([CellValue::Median]));
    Results {
        highlights: compared.highlight(gathered).into_iter().collect(),
        conclusions: compared.conclusions(gathered),
        notes: has_preempt_rt
            .then(|| NO_SIGNALS.to_owned())
            .into_iter()
            .collect(),
        ..view
    }
}

const NO_SIGNALS: &str = "On PREEMPT_RT, a thread of the kernel with a low priority sends the signals of POSIX timers. The program that is \
                          measured is more urgent and never sleeps: the signals come when it has ended, and what `signal` says there is \
                          no cost of a tick. Systems are compared by `thread`.";
