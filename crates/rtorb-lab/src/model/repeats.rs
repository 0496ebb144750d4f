//! What several runs of one system say together.

use rtorb_results::Results;
use rtorb_results::judgement::{Judgement, Observed};

use super::causes::REPEAT;
use super::outcome::all;

/// Answers the least favourable of the runs. Its causes and next steps then say which behaviours exceeded their bounds or deadlines
/// in how many of all runs, and what follows. `None` if there was no run.
#[must_use]
pub fn least_favourable(runs: Vec<Results>) -> Option<Results> {
    let judgements: Vec<&Judgement> = runs.iter().filter_map(judgement).collect();
    let (counts, count) = (Count::of_each(&judgements), judgements.len());
    let worst = runs.iter().filter_map(judgement).map(disfavour).max();
    let mut runs = runs.into_iter().enumerate();
    let (index, mut shown) = runs.find(|(_, run)| judgement(run).map(disfavour) == worst)?;
    shown.parameters.insert("runs".to_owned(), count.into());
    let judgement = shown.judgement.as_mut()?;
    if count > 1 && counts.iter().any(|of| of.exceeded > 0) {
        let number = index + 1;
        let first = format!("This is run {number} of {count}, the least favourable one.");
        let each = counts.iter().filter(|of| of.exceeded > 0);
        judgement.causes.insert(0, first);
        judgement.causes.extend(each.map(|of| of.sentence(count)));
        judgement.next.retain(|one| one != REPEAT);
        judgement.next.push(conclusion(&counts, count));
    }
    Some(shown)
}

fn judgement(run: &Results) -> Option<&Judgement> {
    run.judgement.as_ref()
}

/// The larger, the worse a run is.
fn disfavour(judgement: &Judgement) -> impl Ord + use<> {
    let sum = |of: fn(&Observed) -> u64| all(judgement).map(of).sum::<u64>();
    (
        !judgement.is_kept(),
        judgement.standing,
        sum(|one| one.misses),
        sum(|one| one.unexplained),
        sum(|one| one.above),
    )
}

/// In how many runs a behaviour or a chain exceeded its bound or its deadline.
struct Count {
    name: String,
    exceeded: usize,
    /// In how many of them the host's interruptions do not explain it.
    unexplained: usize,
}

impl Count {
    /// For each behaviour and chain, in the order of the system: it is the same in each run.
    fn of_each(judgements: &[&Judgement]) -> Vec<Self> {
        let ends = judgements.first().into_iter().flat_map(|first| all(first));
        let is_exceeded = |one: &Observed| one.above > 0 || one.misses > 0;
        let count = |index, is: &dyn Fn(&Observed) -> bool| {
            let same = judgements.iter().filter_map(|each| all(each).nth(index));
            same.filter(|one| is(one)).count()
        };
        let counted = ends.enumerate().map(|(index, end)| Self {
            name: end.name(),
            exceeded: count(index, &is_exceeded),
            unexplained: count(index, &|one| one.unexplained > 0),
        });
        counted.collect()
    }

    fn sentence(&self, runs: usize) -> String {
        let Self {
            name,
            exceeded,
            unexplained,
        } = self;
        let unexplained = match unexplained {
            0 => "the host's interruptions explain each".to_owned(),
            of => format!("the host's interruptions do not explain {of} of them"),
        };
        format!(
            "{name} exceeded its bound or deadline in {exceeded} of {runs} runs; {unexplained}."
        )
    }
}

fn conclusion(counts: &[Count], runs: usize) -> String {
    let always = counts
        .iter()
        .filter(|of| of.exceeded == runs && of.unexplained > 0);
    let always: Vec<&str> = always.map(|of| of.name.as_str()).collect();
    if always.is_empty() {
        return "No behaviour exceeds its bound without an explanation in every run, so the host is the likely cause: find a quieter \
                host."
            .to_owned();
    }
    let named = always.join(", ");
    format!(
        "In every run the same exceed their bounds: {named}. Measure the profile again (`rtorb lab run profile --out DIR`), and look at \
         the model of these."
    )
}

#[cfg(test)]
mod tests {
    use rtorb_results::judgement::ObservedStanding;
    use rtorb_results::judgement::ObservedStanding::{ExplainedByTheHost, Unexplained, Within};
    use rtorb_results::synthetic;

    use super::*;
    use crate::model::judging::nothing_observed;

    /// A run of two behaviours with these standings.
    fn run(standings: [ObservedStanding; 2]) -> Results {
        let observed = |(name, standing): (&str, ObservedStanding)| Observed {
            behaviour: name.to_owned(),
            root: name.to_owned(),
            above: u64::from(standing > Within),
            unexplained: u64::from(standing == Unexplained),
            standing,
            ..nothing_observed()
        };
        let judgement = Judgement {
            standing: standings[0].max(standings[1]),
            behaviours: ["c.first", "c.second"]
                .into_iter()
                .zip(standings)
                .map(observed)
                .collect(),
            next: vec![REPEAT.to_owned()],
            ..Judgement::default()
        };
        Results {
            judgement: Some(judgement),
            ..synthetic::results("model/two", Vec::new())
        }
    }

    /// Causes and next steps of the run that is shown.
    fn said(runs: &[[ObservedStanding; 2]]) -> (String, String) {
        let shown = least_favourable(runs.iter().map(|each| run(*each)).collect()).unwrap();
        assert_eq!(shown.parameters["runs"].to_string(), runs.len().to_string());
        let judgement = shown.judgement.unwrap();
        (judgement.causes.join("\n"), judgement.next.join("\n"))
    }

    #[test]
    fn no_run_is_no_result() {
        assert!(least_favourable(Vec::new()).is_none());
    }

    #[test]
    fn what_exceeds_in_every_run_is_a_matter_of_the_model() {
        let (causes, next) = said(&[
            [Within, Unexplained],
            [Unexplained, Unexplained],
            [ExplainedByTheHost, Unexplained],
        ]);
        for words in [
            "This is run 2 of 3",
            "c.first exceeded its bound or deadline in 2 of 3 runs; the host's interruptions do not explain 1 of them.",
            "c.second exceeded its bound or deadline in 3 of 3 runs",
        ] {
            assert!(causes.contains(words), "{words} in {causes}");
        }
        assert!(
            next.contains("exceed their bounds: c.second. Measure"),
            "{next}"
        );
    }

    #[test]
    fn what_exceeds_in_some_runs_is_a_matter_of_the_host() {
        let (causes, next) = said(&[[Within, Unexplained], [ExplainedByTheHost, Within]]);
        assert!(causes.contains("run 1 of 2"), "{causes}");
        assert!(
            causes.contains("c.first") && causes.contains("explain each"),
            "{causes}"
        );
        assert!(
            next.contains("a quieter host") && !next.contains(REPEAT),
            "{next}"
        );
    }

    #[test]
    fn runs_within_their_bounds_have_nothing_to_say() {
        assert_eq!(said(&[[Within; 2]; 2]).0, "");
    }
}
