//! `cargo xtask pictures [REPORT]`: the pictures of the README, in `docs/pictures/`.
//!
//! They are photographs of a report, which Chromium makes: the overview, and one plot. Without a folder with a report, the command
//! measures this host first, which takes some minutes.

use std::path::{Path, PathBuf, absolute};

use anyhow::{Context, ensure};
use xshell::{Shell, cmd};

use crate::metadata::target_folder;

/// A photograph of the report.
struct Picture {
    file: &'static str,
    /// The plot that is shown alone, by its id on the page; `None` for the top of the page.
    plot: Option<&'static str>,
    width: u32,
    height: u32,
}

const PICTURES: [Picture; 2] = [
    Picture {
        file: "overview.png",
        plot: None,
        width: 1080,
        height: 860,
    },
    Picture {
        file: "architectures.png",
        plot: Some("orb-architectures-p1-latency"),
        width: 960,
        height: 440,
    },
];

/// Bound on each file: every clone of the repository has them.
const BYTES_MAX: u64 = 150_000;
const FOLDER: &str = "docs/pictures";

/// Makes every picture, of the report in a folder, or of a new one.
pub(crate) fn run(sh: &Shell, report: Option<PathBuf>) -> anyhow::Result<()> {
    let work = target_folder(sh)?.join("pictures");
    let report = match report {
        Some(folder) => absolute(folder)?,
        None => measure(sh, &work)?,
    };
    let html = sh.read_file(report.join("index.html"))?;
    for picture in &PICTURES {
        let copy = work.join(format!("{}.html", picture.file));
        sh.write_file(&copy, prepared(&html, picture)?)?;
        let file = sh.create_dir(FOLDER)?.join(picture.file);
        photograph(sh, &copy, picture, &file)?;
        let bytes = file
            .metadata()
            .context("the browser wrote no picture")?
            .len();
        ensure!(
            bytes <= BYTES_MAX,
            "{}: {bytes} bytes, and at most {BYTES_MAX} are allowed",
            file.display()
        );
        println!("{}: {bytes} bytes", file.display());
    }
    Ok(())
}

/// Measures this host; returns the folder of the report.
fn measure(sh: &Shell, work: &Path) -> anyhow::Result<PathBuf> {
    let report = work.join("report");
    sh.remove_path(report.join("index.html"))?;
    // A missed claim is a result too: then there is a report, and the status is not 0.
    let measure = cmd!(
        sh,
        "cargo run --release -p rtorb-cli -- measure --out {report}"
    );
    measure.ignore_status().run()?;
    Ok(report)
}

/// The page for a picture. For a plot, it has a script that removes everything else once the plot is drawn.
fn prepared(html: &str, picture: &Picture) -> anyhow::Result<String> {
    let Some(plot) = picture.plot else {
        return Ok(html.to_owned());
    };
    ensure!(
        html.contains(&format!("id=\"{plot}\"")),
        "the report has no plot {plot}: it needs the results of orb/architectures"
    );
    let script = format!(
        "<script>\n\
         const alone = () => {{\n\
           const plot = document.getElementById(\"{plot}\");\n\
           if (!plot.dataset.drawn) return setTimeout(alone, 50);\n\
           document.body.replaceChildren(plot);\n\
           document.body.style = \"display: block; margin: 0\";\n\
         }};\n\
         alone();\n\
         </script>\n</body>"
    );
    let end = html.rfind("</body>").context("the page has no end")?;
    Ok(format!(
        "{}{script}{}",
        &html[..end],
        &html[end + "</body>".len()..]
    ))
}

/// Opens the page in a browser without a window, and writes what it shows.
fn photograph(sh: &Shell, page: &Path, picture: &Picture, file: &Path) -> anyhow::Result<()> {
    let Picture { width, height, .. } = picture;
    let browsers = ["chromium", "chromium-browser", "google-chrome"];
    let is_there = |name: &&str| cmd!(sh, "{name} --version").quiet().read().is_ok();
    let browser = browsers.into_iter().find(is_there);
    let browser = browser.context("there is no chromium: apt install chromium")?;
    let options = [
        "--headless".to_owned(),
        "--no-sandbox".to_owned(),
        "--disable-gpu".to_owned(),
        "--hide-scrollbars".to_owned(),
        // The scripts of the page have this time, on a clock that goes on at once when they wait.
        "--virtual-time-budget=20000".to_owned(),
        format!("--window-size={width},{height}"),
        format!("--screenshot={}", file.display()),
        format!("file://{}", page.display()),
    ];
    Ok(cmd!(sh, "{browser} {options...}").ignore_stderr().run()?)
}
