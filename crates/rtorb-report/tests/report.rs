//! The results file and the page made of it, from outside the crate.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod modelled;

use std::path::Path;
use std::process::Command;

use rtorb_host::Host;
use rtorb_host::preflight;
use rtorb_report as report;
use rtorb_results::statistics::Recorder;
use rtorb_results::{
    Claim, Derived, ExperimentFailure, Highlight, LabelValue, ObtainedScheduling, Plot, PlotKind,
    Published, PublishedPoints, Results, SCHEMA, Series, StatisticName, labels,
};

/// Results with one of everything, and with text that a page must not take for markup.
fn results() -> Results {
    let host = Host::describe();
    Results {
        schema: SCHEMA.to_owned(),
        experiment: "orb/throughput".to_owned(),
        title: "A <title> & more".to_owned(),
        reproduces: "P0 Figure 2".to_owned(),
        run: "2026-11-20T13:14:15Z-7".to_owned(),
        started: "2026-11-20T13:14:15Z".to_owned(),
        duration_s: 12.5,
        complete: false,
        parameters: labels([("rounds", 2usize.into()), ("effort", "quick".into())]),
        findings: preflight::findings(&host),
        server_host: None,
        further_hosts: Vec::new(),
        emulation: None,
        judgement: None,
        stolen_ms: None,
        host,
        scheduling: vec![ObtainedScheduling {
            process: "rtorb tcp server".to_owned(),
            threads: 2,
            policy: "SCHED_OTHER".to_owned(),
            priority: 0,
            cpus: "0-1".to_owned(),
            real_time: false,
        }],
        highlights: vec![Highlight {
            what: "cube_long, median".to_owned(),
            value: 7.25,
            unit: "us".to_owned(),
            beside: "raw octets 6.8 us".to_owned(),
        }],
        series: ["raw", "rtorb"]
            .into_iter()
            .flat_map(|orb| [series(orb, "long", 0), series(orb, "octetseq", 1024)])
            .collect(),
        columns: Vec::new(),
        tables: Vec::new(),
        plots: Vec::new(),
        derived: vec![Derived {
            name: "time_above_raw".to_owned(),
            labels: labels([
                ("operation", "long".into()),
                ("orb", "rtorb".into()),
                ("transport", "tcp".into()),
                ("payload_bytes", 4usize.into()),
            ]),
            unit: "ns".to_owned(),
            value: 450.0,
            rounds: vec![440.0, 460.0],
        }],
        lost: Vec::new(),
        claims: vec![Claim::counted(
            "share",
            "half of omniORB's",
            0.4,
            0.5,
            "ratio",
        )],
        conclusions: vec!["It is what it is.".to_owned()],
        published: vec![Published {
            source: "P0".to_owned(),
            what: "two-way".to_owned(),
            published: "about 10,000 calls/s".to_owned(),
            ours: "137,000 calls/s".to_owned(),
        }],
        notes: vec!["omniORB was left out.</script><script>alert(1)</script>".to_owned()],
    }
}

/// Results that ask for one plot of every kind, and whose labels are markup.
fn declared() -> Results {
    let mut series = Vec::new();
    for (pattern, load) in [("harmonic", "none"), (HOSTILE, HOSTILE)] {
        for timers in [1u32, 5, 20] {
            let mut recorder = Recorder::new();
            (1..=1_000u64)
                .for_each(|index| recorder.record(u64::from(timers) * 1_000 + index * index / 50));
            let of = labels([
                ("timers", timers.into()),
                ("pattern", pattern.into()),
                ("load", load.into()),
                ("real_time", true.into()),
            ]);
            series.push(Series::from_recorder(of, &recorder));
        }
    }
    let plot = |id: &str, kind| Plot {
        id: id.to_owned(),
        title: format!("Plot {id}"),
        caption: "What it says.".to_owned(),
        kind,
        choose: vec!["load".to_owned()],
        lines: vec!["pattern".to_owned()],
        x: "timers".to_owned(),
        x_title: "timers".to_owned(),
        ..Plot::default()
    };
    let published = PublishedPoints {
        source: "P3 5.1".to_owned(),
        name: "QNX".to_owned(),
        of: labels([("load", "none".into())]),
        points: vec![(LabelValue::Number(1), 3.0), (LabelValue::Number(20), 60.0)],
    };
    Results {
        experiment: "os/interval-jitter".to_owned(),
        complete: true,
        series,
        columns: vec!["timers".to_owned()],
        plots: vec![
            Plot {
                values: vec![StatisticName::Min, StatisticName::Mean, StatisticName::Max],
                published: vec![published],
                log_y: true,
                ..plot("jitter", PlotKind::Lines)
            },
            plot("bars", PlotKind::Bars),
            Plot {
                log_x: true,
                ..plot("spread", PlotKind::Histogram)
            },
            plot("tail", PlotKind::Percentiles),
        ],
        derived: Vec::new(),
        ..results()
    }
}

const ORDER: [&str; 2] = ["os/interval-jitter", "orb/throughput"];
const HOSTILE: &str = "</script><img src=x onerror=alert(1)><a href=\"http://example.org\">x</a>";

fn series(orb: &str, operation: &str, len: usize) -> Series {
    let mut recorder = Recorder::new();
    (1..=1_000).for_each(|index| recorder.record(6_000 + index * 3 + len as u64));
    let labels = labels([
        ("operation", operation.into()),
        ("orb", orb.into()),
        ("transport", "tcp".into()),
        ("len", len.into()),
        ("payload_bytes", (len + 4).into()),
        ("part", "call".into()),
        ("real_time", false.into()),
    ]);
    Series {
        rounds_p50: vec![7_400.0, 7_600.0],
        ..Series::from_recorder(labels, &recorder)
    }
}

#[test]
fn a_results_file_is_read_back_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let results = results();
    let path = results.write(folder.path()).unwrap();
    assert_eq!(path, folder.path().join("results/orb/throughput.json"));
    assert!(
        Results::read(&path).unwrap() == results,
        "the file differs from what was written"
    );
    assert!(
        Results::read_folder(folder.path()).unwrap() == [results],
        "so does the folder's"
    );
}

#[test]
fn a_series_has_the_fields_that_are_documented() {
    let folder = tempfile::tempdir().unwrap();
    let path = results().write(folder.path()).unwrap();
    let file: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let documented = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/results.md"),
    )
    .unwrap();
    for object in [&file, &file["series"][0], &file["derived"][0]] {
        for name in object.as_object().unwrap().keys() {
            assert!(
                documented.contains(&format!("`{name}`")),
                "{name} is not in docs/reference/results.md"
            );
        }
    }
    for name in [
        "labels", "unit", "count", "min", "mean", "stddev", "p50", "p90", "p99", "p99_9", "max",
    ] {
        assert!(!file["series"][0][name].is_null(), "{name}");
    }
}

#[test]
fn another_schema_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let mut other = results();
    other.schema = "rtorb-results/99".to_owned();
    let path = other.write(folder.path()).unwrap();
    let error = Results::read(&path).unwrap_err().to_string();
    assert!(
        error.contains("rtorb-results/99") && error.contains(SCHEMA),
        "{error}"
    );
}

#[test]
fn the_page_says_what_was_not_real_time_and_fetches_nothing() {
    let page = report::render(&[results()], &ORDER).unwrap();
    assert!(page.contains("Not measured in real time."));
    assert!(page.contains("rtorb tcp server: SCHED_OTHER, CPUs 0-1"));
    assert!(page.contains("Interrupted."));
    assert!(
        page.contains("A &#60;title&#62;"),
        "text is not taken for markup"
    );
    assert!(!page.contains("<script>alert"));
    assert!(page.contains("<noscript>"));
    assert!(page.contains("It is what it is."));
    assert!(page.contains("<td>0.4 times</td><td>0.5 times</td>"));
    for fetching in ["<script src", "<link ", "<img src=\"http", "@import"] {
        assert!(!page.contains(fetching), "{fetching}");
    }
    assert!(
        page.contains("default-src 'none'"),
        "the page itself forbids the network"
    );
}

#[test]
fn the_page_of_a_run_names_what_others_left_and_shows_none_of_it() {
    let folder = tempfile::tempdir().unwrap();
    results().write(folder.path()).unwrap();
    let mut other = declared();
    other.run = "2026-10-01T00:00:00Z-1".to_owned();
    other.started = "2026-10-01T00:00:00Z".to_owned();
    other.title = "Measured on another day".to_owned();
    other.write(folder.path()).unwrap();
    let failures = [ExperimentFailure {
        experiment: "os/wakeup".to_owned(),
        why: "the probe <died>".to_owned(),
    }];
    let run = report::Run {
        id: &results().run,
        failures: &failures,
        order: &ORDER,
    };
    let page = std::fs::read_to_string(report::write_run(folder.path(), &run).unwrap()).unwrap();
    assert!(!page.contains("Measured on another day") && !page.contains("Plot jitter"));
    assert!(page.contains("of other runs"));
    assert!(page.contains("href=\"results/os/interval-jitter.json\""));
    assert!(page.contains("measured 2026-10-01 00:00:00 UTC"));
    assert!(page.contains("os/wakeup: the probe &#60;died&#62;"));
    let all = std::fs::read_to_string(report::write(folder.path(), &ORDER).unwrap()).unwrap();
    assert!(all.contains("Measured on another day") && all.contains("Results of 2 runs."));
    assert!(!all.contains("of other runs"));
    let unknown = report::Run {
        id: "no such run",
        failures: &[],
        order: &ORDER,
    };
    assert!(report::write_run(folder.path(), &unknown).is_err());
}

#[test]
fn results_of_two_hosts_never_look_like_those_of_one() {
    let mut other = declared();
    other.host.name = Some("board".to_owned());
    other.host.cpu_model = Some("Cortex-A53".to_owned());
    let page = report::render(&[results(), other], &ORDER).unwrap();
    assert!(page.contains("Measured on 2 hosts."));
    assert!(page.contains("host 1: ") && page.contains("host 2: "));
    assert!(page.contains("Cortex-A53"));
    let mut served = declared();
    served.server_host = Some(Host {
        name: Some("board".to_owned()),
        ..Host::describe()
    });
    let page = report::render(&[served], &ORDER).unwrap();
    assert!(page.contains("Servers ran on another host.</strong> board: "));
    let page = report::render(&[results(), declared()], &ORDER).unwrap();
    assert!(
        !page.contains("Measured on 2 hosts") && !page.contains("host 1"),
        "one host is not numbered"
    );
}

#[test]
fn the_page_begins_with_what_a_call_costs_and_explains_its_words() {
    let page = report::render(&[results()], &ORDER).unwrap();
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    let answer = place("What does a call cost here? Can a loop of 1 kHz make one?");
    assert!(answer < place("class=\"words overview\""));
    assert!(page.contains("<td>over TCP</td><td>7.50 µs</td><td>8.9"));
    assert!(page.contains("Yes, in this run."));
    assert!(page.contains("<code>htb</code>") && page.contains("8.68 yields"));
    let none = report::render(&[declared()], &ORDER).unwrap();
    assert!(!none.contains("1 kHz"));
}

#[test]
fn statistics_that_are_alike_can_be_told_apart() {
    let page = report::render(&[declared()], &ORDER).unwrap();
    // Lines by their points and dashes, of which a legend shows little.
    for (symbol, dash) in [
        ("triangle-down", "dot"),
        ("diamond-open", "longdashdot"),
        ("triangle-up", "dash"),
    ] {
        assert!(
            page.contains(&format!("\"symbol\":\"{symbol}\"")),
            "{symbol}"
        );
        assert!(page.contains(&format!("\"dash\":\"{dash}\"")), "{dash}");
    }
    // Bars by a colour that the legend has too.
    let mut bars = declared();
    bars.plots[1].values = vec![StatisticName::P50, StatisticName::Max];
    let page = report::render(&[bars], &ORDER).unwrap();
    for alpha in ["7f", "ff"] {
        assert!(
            page.contains(&format!("\"color\":\"#2f7ed8{alpha}\"")),
            "{alpha}"
        );
    }
}

#[test]
fn every_figure_says_which_series_it_was_drawn_from() {
    let page = report::render(&[declared()], &ORDER).unwrap();
    let figures = page.matches("data-figure>").count();
    let link = "Data: <a href=\"results/os/interval-jitter.json\">";
    assert_eq!((figures, page.matches(link).count()), (4, 4));
    assert!(page.contains(
        "data-source=\"3 series with load none, pattern harmonic, real time true, 3000 samples\""
    ));
    assert!(!page.contains("data-source=\"\""));
    let page = report::render(&[results()], &ORDER).unwrap();
    assert!(!page.contains("data-source=\"\""));
}

#[test]
fn nothing_measured_still_gives_a_page() {
    let mut empty = results();
    empty.series.clear();
    empty.claims.clear();
    empty.highlights.clear();
    assert!(
        report::render(&[empty], &ORDER)
            .unwrap()
            .contains("Interrupted.")
    );
    assert!(report::render(&[], &ORDER).is_err());
}

// A test for each width, because a browser takes long beside other work.
#[test]
fn a_browser_draws_every_figure_on_a_narrow_phone() {
    a_browser_draws_every_figure(360);
}

#[test]
fn a_browser_draws_every_figure_on_a_phone() {
    a_browser_draws_every_figure(390);
}

#[test]
fn a_browser_draws_every_figure_on_a_desk() {
    a_browser_draws_every_figure(1400);
}

fn a_browser_draws_every_figure(width: u32) {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    results().write(folder.path()).unwrap();
    declared().write(folder.path()).unwrap();
    modelled::results().write(folder.path()).unwrap();
    let page = report::write(folder.path(), &ORDER).unwrap();
    let dom = dom(browser, &page, width);
    // Whatever the browser makes of a window's size, this is the width that the page saw.
    assert!(dom.contains(&format!("data-width=\"{width}\"")), "{width}");
    // The page counts what it has drawn when its script is through: tails; those declared; and those of a system that was run: bounds in
    // percent and in time, responses, tails, interruptions.
    assert!(
        dom.contains("data-figures=\"10\""),
        "width {width}: {}",
        &dom[..dom.len().min(400)]
    );
    assert_eq!(dom.matches("data-drawn=\"yes\"").count(), 10);
    assert!(dom.contains("class=\"main-svg\""), "the plots are drawn");
    let fits = dom.split("data-fits=\"").nth(1).map(|rest| &rest[..20]);
    assert!(
        fits.is_some_and(|fits| fits.starts_with("yes")),
        "width {width}: {fits:?}"
    );
    assert!(!dom.contains("<img src=x"), "labels are text");
    for link in ["<a href=\"http://example", "xlink:href=\"http://example"] {
        assert!(!dom.contains(link), "and never links");
    }
}

/// The page as the browser has it when its scripts are through, in a frame of this width: no window of a browser is as narrow as
/// that of a phone.
fn dom(browser: &str, page: &Path, width: u32) -> String {
    let frame = page.with_file_name(format!("frame-{width}.html"));
    std::fs::write(&frame, FRAME.replace("{width}", &width.to_string())).unwrap();
    let profile = page.with_file_name(format!("profile-{width}"));
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-sync",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--virtual-time-budget=20000",
            "--allow-file-access-from-files",
            "--window-size=1600,2000",
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg("--dump-dom")
        .arg(format!("file://{}", frame.display()))
        .output()
        .unwrap();
    // The frame's page stands in the dump as text.
    String::from_utf8_lossy(&output.stdout)
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

/// Shows the page in a frame, and puts its markup beside it as text once all is drawn.
const FRAME: &str = r#"<!doctype html><body><iframe src="index.html" style="border:0;width:{width}px;height:1900px"></iframe>
<pre></pre><script>
const timer = setInterval(() => {
  const page = document.querySelector("iframe").contentDocument?.documentElement;
  if (!page?.dataset.fits) return;
  clearInterval(timer);
  document.querySelector("pre").textContent = page.outerHTML;
}, 50);
</script>"#;

/// A headless browser; `None`, with the reason printed, when there is none and none is required.
fn browser() -> Option<&'static str> {
    let found = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| {
            Command::new(name)
                .arg("--version")
                .output()
                .is_ok_and(|output| output.status.success())
        });
    if found.is_none() {
        let required = std::env::var("RTORB_REQUIRE_PEERS").is_ok_and(|value| value == "1");
        assert!(
            !required,
            "chromium is required by RTORB_REQUIRE_PEERS=1 and is not installed"
        );
        eprintln!(
            "skipped: the report was not looked at in a browser; install chromium to have it checked"
        );
    }
    found
}
