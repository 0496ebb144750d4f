//! What the guests of one operating system found, joined: one results file an experiment, with the series of every load in it.

use std::collections::BTreeMap;

use rtorb_results::{
    Claim, Derived, Labels, LostRound, ObtainedScheduling, Results, Series, distinct,
};

/// What a guest found under a load.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    pub(super) load: String,
    pub(super) results: Results,
}

/// Something of a system that was planned and is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Missing {
    pub(super) experiment: String,
    pub(super) load: String,
    pub(super) why: String,
}

/// One results file for each experiment, in the order of their first appearance.
pub(super) fn join(found: &[Found], missing: &[Missing]) -> Vec<Results> {
    let names = distinct(found.iter().map(|one| one.results.experiment.as_str()));
    let of = |name: &&str| {
        let under: Vec<&Found> = found
            .iter()
            .filter(|one| one.results.experiment == **name)
            .collect();
        let missing = missing.iter().filter(|one| one.experiment == **name);
        join_loads(&under, &missing.collect::<Vec<_>>())
    };
    names.iter().filter_map(of).collect()
}

fn join_loads(under: &[&Found], missing: &[&Missing]) -> Option<Results> {
    let first = &under.first()?.results;
    let lines = |of: fn(&Results) -> &[String]| in_words(under, of);
    let mut joined = Results {
        duration_s: under.iter().map(|one| one.results.duration_s).sum(),
        // Nobody takes an emulated CPU's virtual time.
        stolen_ms: None,
        complete: missing.is_empty() && under.iter().all(|one| one.results.complete),
        parameters: common_parameters(under),
        series: under.iter().flat_map(|one| labelled(one)).collect(),
        derived: under.iter().flat_map(|one| labelled_derived(one)).collect(),
        scheduling: scheduling(under),
        conclusions: lines(|results| &results.conclusions),
        notes: lines(|results| &results.notes),
        claims: under
            .iter()
            .flat_map(|one| claims(one, under.len()))
            .collect(),
        lost: under.iter().flat_map(|one| lost(one)).collect(),
        published: first.published.clone(),
        ..first.clone()
    };
    joined.highlights = Vec::new();
    for one in under {
        for highlight in &one.results.highlights {
            let mut highlight = highlight.clone();
            if under.len() > 1 {
                highlight.what = format!("{}, load {}", highlight.what, one.load);
            }
            joined.highlights.push(highlight);
        }
    }
    for plot in under.iter().flat_map(|one| &one.results.plots) {
        if joined.plots.iter().all(|known| known.id != plot.id) {
            joined.plots.push(plot.clone());
        }
    }
    let loads: Vec<&str> = under.iter().map(|one| one.load.as_str()).collect();
    let parameters = &mut joined.parameters;
    parameters.insert("loads".to_owned(), loads.join(", ").into());
    joined.notes.extend(missing.iter().map(|one| {
        let Missing { load, why, .. } = one;
        format!("Under the load {load}, nothing was measured: {why}")
    }));
    Some(joined)
}

/// Every series says its load: as `load`, or as `background_load` where `load` says how clients call.
fn labelled(found: &Found) -> impl Iterator<Item = Series> {
    found.results.series.iter().map(|series| Series {
        labels: with_load(&series.labels, &found.load),
        ..series.clone()
    })
}

fn labelled_derived(found: &Found) -> impl Iterator<Item = Derived> {
    found.results.derived.iter().map(|derived| Derived {
        labels: with_load(&derived.labels, &found.load),
        ..derived.clone()
    })
}

/// Every claim of a guest, which has judged it by its seeds. Under several loads, it says under which.
fn claims(found: &Found, loads: usize) -> impl Iterator<Item = Claim> {
    let with_load = move |claim: &Claim| {
        let load = &found.load;
        let mut claim = claim.clone();
        // Always: the id of another claim may end with the load, and no two are equal then.
        if loads > 1 {
            claim.id = format!("{}.{load}", claim.id);
            claim.statement = format!("Load {load}: {}", claim.statement);
        }
        claim
    };
    found.results.claims.iter().map(with_load)
}

/// Every round that was lost says under which load.
fn lost(found: &Found) -> impl Iterator<Item = LostRound> {
    found.results.lost.iter().map(|lost| LostRound {
        what: format!("load {}: {}", found.load, lost.what),
        ..lost.clone()
    })
}

fn with_load(labels: &Labels, load: &str) -> Labels {
    let mut labels = labels.clone();
    let is_said = |name| {
        labels
            .get(name)
            .is_some_and(|value| value.to_string() == load)
    };
    if is_said("load") || is_said("background_load") {
        return labels;
    }
    let name = if labels.contains_key("load") {
        "background_load"
    } else {
        "load"
    };
    labels.insert(name.to_owned(), load.into());
    labels
}

/// Those that are the same under every load.
fn common_parameters(under: &[&Found]) -> Labels {
    let mut common = under[0].results.parameters.clone();
    common.retain(|name, value| {
        let is_same = |one: &&Found| one.results.parameters.get(name) == Some(value);
        under.iter().all(is_same)
    });
    for own in ["load", "load_generator"] {
        common.remove(own);
    }
    common
}

fn scheduling(under: &[&Found]) -> Vec<ObtainedScheduling> {
    let all = under.iter().flat_map(|one| &one.results.scheduling);
    distinct(all.cloned())
}

/// Each line once; one that does not hold under every load says under which it does.
fn in_words(under: &[&Found], of: fn(&Results) -> &[String]) -> Vec<String> {
    let lines = distinct(under.iter().flat_map(|one| of(&one.results)));
    let mut loads: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in under {
        for line in of(&one.results) {
            loads.entry(line).or_default().push(&one.load);
        }
    }
    lines
        .into_iter()
        .map(|line| match &loads[line.as_str()] {
            all if all.len() == under.len() => line.to_owned(),
            some => format!("Load {}: {line}", some.join(", ")),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_results::{Verdict, labels, synthetic};

    fn found(load: &str, label: &str, notes: &[&str]) -> Found {
        let series = synthetic::series(labels([(label, "a".into())]), [1, 2, 3]);
        let mut results = synthetic::results("os/wakeup", vec![series]);
        results.notes = notes.iter().map(|note| (*note).to_owned()).collect();
        results
            .parameters
            .insert("load".to_owned(), load.to_owned().into());
        Found {
            load: load.to_owned(),
            results,
        }
    }

    #[test]
    fn every_series_says_its_load_and_none_is_lost() {
        let all = [found("none", "tool", &[]), found("tcp", "tool", &[])];
        let joined = join(&all, &[]);
        assert_eq!(joined.len(), 1);
        let loads: Vec<String> = joined[0]
            .series
            .iter()
            .map(|series| series.labels["load"].to_string())
            .collect();
        assert_eq!(loads, ["none", "tcp"]);
        assert!(joined[0].complete);
        assert_eq!(joined[0].parameters.get("load"), None);
        assert_eq!(joined[0].parameters["loads"].to_string(), "none, tcp");
    }

    #[test]
    fn a_load_is_in_the_background_where_clients_have_one() {
        let joined = join(&[found("tcp", "load", &[])], &[]);
        let labels = &joined[0].series[0].labels;
        assert_eq!(labels["load"].to_string(), "a");
        assert_eq!(labels["background_load"].to_string(), "tcp");
    }

    #[test]
    fn what_holds_under_some_loads_says_under_which() {
        let all = [
            found("none", "tool", &["both", "first"]),
            found("tcp", "tool", &["both"]),
        ];
        let notes = &join(&all, &[])[0].notes;
        assert!(notes.contains(&"both".to_owned()), "{notes:?}");
        assert!(notes.contains(&"Load none: first".to_owned()), "{notes:?}");
    }

    #[test]
    fn a_round_that_was_lost_under_a_later_load_is_lost() {
        let mut later = found("tcp", "tool", &[]);
        later.results.lost = vec![LostRound {
            round: 2,
            what: "tool a".to_owned(),
            why: "it was silent".to_owned(),
        }];
        let joined = join(&[found("none", "tool", &[]), later], &[]);
        let [lost] = &joined[0].lost[..] else {
            panic!("{:?}", joined[0].lost);
        };
        assert_eq!((lost.round, lost.what.as_str()), (2, "load tcp: tool a"));
    }

    #[test]
    fn the_claims_of_every_load_are_kept() {
        let under = |load: &str, count: f64| {
            let mut found = found(load, "tool", &[]);
            let claim = |id: &str| {
                Claim::counted(
                    id.to_owned(),
                    "switches".to_owned(),
                    count,
                    2.0,
                    "per_request",
                )
            };
            found.results.claims = vec![claim("os/x.switches"), claim("os/x.switches.tcp")];
            found
        };
        let of = |all: &[Found]| -> Vec<(String, Verdict)> {
            let mut joined = join(all, &[]);
            let claims = joined.remove(0).claims.into_iter();
            claims.map(|claim| (claim.id, claim.verdict)).collect()
        };
        let several = of(&[under("none", 2.0), under("tcp", 3.0)]);
        let expected = [
            ("os/x.switches.none", Verdict::Held),
            ("os/x.switches.tcp.none", Verdict::Held),
            ("os/x.switches.tcp", Verdict::Missed),
            ("os/x.switches.tcp.tcp", Verdict::Missed),
        ];
        assert_eq!(
            several,
            expected.map(|(id, verdict)| (id.to_owned(), verdict))
        );
        assert_eq!(of(&[under("none", 2.0)])[0].0, "os/x.switches");
    }

    #[test]
    fn what_is_missing_is_said_and_is_not_complete() {
        let missing = Missing {
            experiment: "os/wakeup".to_owned(),
            load: "fork".to_owned(),
            why: "the guest panicked".to_owned(),
        };
        let other = Missing {
            experiment: "os/mutex".to_owned(),
            ..missing.clone()
        };
        let joined = join(&[found("none", "tool", &[])], &[missing, other]);
        assert!(!joined[0].complete);
        let said = joined[0]
            .notes
            .iter()
            .filter(|note| note.contains("panicked"));
        assert_eq!(said.count(), 1);
    }
}
