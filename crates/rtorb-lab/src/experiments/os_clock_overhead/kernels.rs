//! The cost of a tick on each operating system.

use crate::experiment::Outcome;
use rtorb_results::labels;

use crate::systems::{By, Compared, essential};
use rtorb_results::systems::Gathered;

/// What a tick costs, of medians: in those what else delays the program cancels.
pub(super) fn view(gathered: &Gathered<'_>) -> Outcome {
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
    Outcome {
        highlights: compared.highlight(gathered).into_iter().collect(),
        conclusions: compared.conclusions(gathered),
        notes: has_preempt_rt
            .then(|| NO_SIGNALS.to_owned())
            .into_iter()
            .collect(),
        ..essential(gathered, compared.what, &of)
    }
}

const NO_SIGNALS: &str = "On PREEMPT_RT, a thread of the kernel with a low priority sends the signals of POSIX timers. The program that is \
                          measured is more urgent and never sleeps: the signals come when it has ended, and what `signal` says there is \
                          no cost of a tick. Systems are compared by `thread`.";
