use std::fs;

use rtorb_results::synthetic::{results, series};
use rtorb_results::{Claim, LostRound, labels};
use tempfile::TempDir;

use super::*;

const ROW: &str = r#"
title = "A paper"
intro = "Once."

[[row]]
item = "Figure 1"
shows = "It is constant."
command = "none"
see = "{one} beside 1 client, {fifty} beside 50."
from = { of = "orb/clients", labels = "role=high" }
figure.one = { labels = "low_clients=1" }
figure.fifty = { labels = "low_clients=50" }
yes = ["fifty < 1.2 * one"]
partly = ["fifty < 2 * one"]
why.yes = "Nothing is shared, up to {fifty}."
why.open = "The command measures it."
"#;

fn measured(fifty_ns: u64) -> Results {
    let role =
        |low_clients: usize| labels([("role", "high".into()), ("low_clients", low_clients.into())]);
    let all = [(1, 10_000), (50, fifty_ns)];
    results(
        "orb/clients",
        all.map(|(clients, ns)| series(role(clients), [ns; 20]))
            .into(),
    )
}

/// A page whose first paper has these rows, without results.
fn page(rows: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("papers")).unwrap();
    let empty = "title = \"Empty\"\nintro = \"Never.\"\nrow = []\n";
    for paper in crate::PAPERS {
        let text = if paper.key == "P0" { rows } else { empty };
        fs::write(
            folder.path().join(format!("papers/{}.toml", paper.key)),
            text,
        )
        .unwrap();
    }
    for (name, text) in [(PAGE, ""), (HEAD, "# Papers\n\n{results}\n"), (RESULTS, "")] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn written(folder: &TempDir, results: &[Results]) -> Comparison {
    let mut papers = Papers::read(folder.path()).unwrap();
    papers.take_in(results).unwrap();
    let comparison = papers.compare().unwrap();
    papers.write(&comparison.page).unwrap();
    comparison
}

#[test]
fn figures_and_answers_follow_from_results() {
    for (fifty_ns, counts, cells) in [
        (
            11_000,
            [1, 0, 0, 0],
            "10 us beside 1 client, 11 us beside 50. | yes | Nothing is shared, up to 11 us. |",
        ),
        (
            15_000,
            [0, 1, 0, 0],
            "10 us beside 1 client, 15 us beside 50. | partly | Not explained yet. |",
        ),
        (
            31_343_000,
            [0, 0, 1, 0],
            "10 us beside 1 client, 31.3 ms beside 50. | no | Not explained yet. |",
        ),
    ] {
        let comparison = written(&page(ROW), &[measured(fifty_ns)]);
        assert_eq!(comparison.counts, counts);
        assert!(comparison.page.contains(cells), "{}", comparison.page);
        assert!(
            comparison.page.contains("* 1 experiment, quick: "),
            "{}",
            comparison.page
        );
    }
}

#[test]
fn what_is_not_measured_is_open() {
    let comparison = written(&page(ROW), &[]);
    assert_eq!(comparison.counts, [0, 0, 0, 1]);
    let cells =
        "| Not known: no stored results of `orb/clients`. | open | The command measures it. |";
    assert!(comparison.page.contains(cells), "{}", comparison.page);

    let tail = ROW.replace(
        "{ labels = \"low_clients=50\" }",
        "{ labels = \"low_clients=50\", statistic = \"p99\" }",
    );
    let comparison = written(&page(&tail), &[measured(10_000)]);
    assert!(
        comparison.page.contains("20 samples are too few"),
        "{}",
        comparison.page
    );

    let mut wrong = measured(10_000);
    wrong.series[1].wrong = 3;
    let comparison = written(&page(ROW), &[wrong]);
    assert!(
        comparison.page.contains("3 answers were wrong"),
        "{}",
        comparison.page
    );
}

#[test]
fn a_claim_that_the_run_cannot_tell_gives_no_figure() {
    let rows = ROW.replace(
        "{ labels = \"low_clients=50\" }",
        "{ claim = \"growth\", labels = \"low_clients=50\" }",
    );
    let mut results = measured(10_000);
    let claim = Claim::counted("growth", "it does not grow", 11.0, 12.0, "us");
    results.claims = vec![claim.clone()];
    assert_eq!(
        written(&page(&rows), &[results.clone()]).counts,
        [1, 0, 0, 0]
    );
    results.claims = vec![claim.not_judged("the rounds differ")];
    let comparison = written(&page(&rows), &[results]);
    assert_eq!(comparison.counts, [0, 0, 0, 1]);
    assert!(
        comparison.page.contains("the rounds differ"),
        "{}",
        comparison.page
    );
}

#[test]
fn a_written_page_agrees_until_a_figure_changes() {
    let folder = page(ROW);
    written(&folder, &[measured(11_000)]);
    let papers = Papers::read(folder.path()).unwrap();
    assert_eq!(papers.compare().unwrap().differences, Vec::<String>::new());

    let path = folder.path().join(PAGE);
    let text = fs::read_to_string(&path).unwrap();
    for (from, to, names) in [
        ("11 us beside 50", "12 us beside 50", "what we see"),
        ("| yes |", "| partly |", "agrees"),
        ("| P0 Figure 1 |", "| P0 Figure 2 |", "lacks the row"),
        ("# Papers", "# Paper", "outside"),
    ] {
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let comparison = Papers::read(folder.path()).unwrap().compare().unwrap();
        assert_eq!(comparison.differences.len(), 1, "{from}");
        assert!(
            comparison.differences[0].contains(names),
            "{:?}",
            comparison.differences
        );
    }
}

#[test]
fn other_results_take_the_place_of_those_of_the_same_experiment_alone() {
    let folder = page(ROW);
    let other = results("os/services", Vec::new());
    written(&folder, &[measured(11_000), other]);
    let comparison = written(&folder, &[measured(15_000)]);
    assert_eq!(comparison.differences.len(), 1);
    assert!(
        comparison.page.contains("* 2 experiments, quick: "),
        "{}",
        comparison.page
    );
}

#[test]
fn results_whose_numbers_say_nothing_are_refused() {
    type Spoil = fn(&mut Results);
    let spoilt: [(&str, Spoil); 5] = [
        ("not complete", |it| it.complete = false),
        ("a glance", |it| {
            it.parameters.insert("effort".to_owned(), "glance".into());
        }),
        ("lost rounds", |it| {
            it.lost = vec![LostRound {
                round: 3,
                what: "tao".to_owned(),
                why: "it ended".to_owned(),
            }];
        }),
        ("not measured in real time", |it| {
            for scheduling in &mut it.scheduling {
                scheduling.real_time = false;
            }
        }),
        ("beside a load", |it| {
            it.parameters.insert("load".to_owned(), "hog".into());
        }),
    ];
    let folder = page(ROW);
    for (says, spoil) in spoilt {
        let mut results = measured(10_000);
        spoil(&mut results);
        let mut papers = Papers::read(folder.path()).unwrap();
        let refused = papers.take_in(&[results]).unwrap_err().to_string();
        assert!(refused.contains(says), "{refused}");
        assert_eq!(papers.compare().unwrap().counts, [0, 0, 0, 1]);
    }
}

#[test]
fn a_row_that_is_older_than_its_experiment_does_not_fit_it() {
    let misfits = |rows: &str| {
        let papers = Papers::read(page(rows).path()).unwrap();
        papers.misfits(&measured(11_000)).join("; ")
    };
    assert_eq!(misfits(ROW), "");
    // A run at a glance has other levels.
    assert_eq!(
        misfits(&ROW.replace("low_clients=50", "low_clients=20")),
        ""
    );
    for (to, says) in [
        ("hertz=50", "P0 Figure 1: fifty selects no series"),
        ("low_clients=50, role=low", "selects no series"),
        ("!part", "selects several series"),
    ] {
        let found = misfits(&ROW.replace("low_clients=50", to));
        assert!(found.contains(says), "{to}: {found}");
    }
    let derived = ROW.replace(
        "{ labels = \"low_clients=50\" }",
        "{ derived = \"spread\" }",
    );
    assert!(misfits(&derived).contains("selects no spread"));
    // A host may lack all that an experiment needs.
    let mut nothing = measured(11_000);
    nothing.series.clear();
    let papers = Papers::read(page(&ROW.replace("=50", "=sixty")).path()).unwrap();
    assert_eq!(papers.misfits(&nothing), Vec::<String>::new());
}

#[test]
fn a_row_that_says_what_no_result_says_is_refused() {
    for (from, to, error) in [
        ("beside 50.", "beside 51.", "51 in what we see"),
        ("{one} beside", "10.2 us beside", "10.2 in what we see"),
        (
            "{fifty} beside",
            "{sixty} beside",
            "there is no figure sixty",
        ),
        ("yes = [", "yes = [\"1 < 2\", ", "follows from no figure"),
        (
            "yes = [",
            "figure.any = {}\nyes = [\"any < one\", ",
            "2 of series",
        ),
        (
            "labels = \"low_clients=1\"",
            "value = \"10\"",
            "follows from no figure",
        ),
        (
            "labels = \"low_clients=1\"",
            "value = \"2 * one\", labels = \"low_clients=1\"",
            "there is no figure one",
        ),
        (
            "yes = [\"fifty < 1.2 * one\"]",
            "agrees = \"open\"",
            "either compares",
        ),
        (
            "partly = [\"fifty < 2 * one\"]",
            "agree = \"yes\"",
            "unknown field",
        ),
        ("It is constant.", "one | two", "does not fit into a cell"),
    ] {
        let folder = page(&ROW.replacen(from, to, 1));
        let compared = Papers::read(folder.path()).and_then(|mut papers| {
            papers.take_in(&[measured(11_000)])?;
            papers.compare()
        });
        let refused = compared.unwrap_err().to_string();
        assert!(refused.contains(error), "{to}: {refused}");
    }
}

#[test]
fn the_page_of_this_crate_follows_from_its_results() {
    let comparison = Papers::built_in().unwrap().compare().unwrap();
    assert_eq!(comparison.differences, Vec::<String>::new());
    assert!(comparison.counts.iter().sum::<usize>() > 80);
    assert!(!comparison.page.contains("Not explained yet."));
}
