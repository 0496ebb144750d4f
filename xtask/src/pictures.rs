//! `cargo xtask pictures [REPORT]`: the pictures of the README, in `docs/pictures/`.
//!
//! They are photographs of a report, which Chromium makes: the overview, and one plot. Without a folder with a report, the command
//! measures this host first, which takes some minutes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

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
const OCTETS_MAX: u64 = 150_000;
const FOLDER: &str = "docs/pictures";

/// Makes every picture, of the report in a folder, or of a new one.
pub(crate) fn run(workspace: &Path, report: Option<&str>) -> anyhow::Result<()> {
    let work = target_folder(workspace)?.join("pictures");
    fs::create_dir_all(&work).with_context(|| work.display().to_string())?;
    let report = match report {
        Some(folder) => PathBuf::from(folder),
        None => measure(workspace, &work)?,
    };
    let page = report.join("index.html");
    let html = fs::read_to_string(&page).with_context(|| page.display().to_string())?;
    for picture in &PICTURES {
        let copy = work.join(format!("{}.html", picture.file));
        fs::write(&copy, prepared(&html, picture)?).with_context(|| copy.display().to_string())?;
        let file = workspace.join(FOLDER).join(picture.file);
        photograph(&copy, picture, &file)?;
        let octets = fs::metadata(&file)
            .with_context(|| file.display().to_string())?
            .len();
        ensure!(
            octets <= OCTETS_MAX,
            "{}: {octets} octets, and at most {OCTETS_MAX} are allowed",
            file.display()
        );
        println!("{}: {octets} octets", file.display());
    }
    Ok(())
}

/// Measures this host; returns the folder of the report. A missed claim is a result too.
fn measure(workspace: &Path, work: &Path) -> anyhow::Result<PathBuf> {
    let report = work.join("report");
    let status = Command::new("cargo")
        .current_dir(workspace)
        .args([
            "run",
            "--release",
            "-p",
            "rtorb-cli",
            "--",
            "measure",
            "--out",
        ])
        .arg(&report)
        .status()
        .context("cargo run")?;
    ensure!(
        matches!(status.code(), Some(0 | 1)),
        "rtorb measure: {status}"
    );
    Ok(report)
}

/// The page as the picture needs it: for a plot, a script removes all else once the plot is drawn.
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
fn photograph(page: &Path, picture: &Picture, file: &Path) -> anyhow::Result<()> {
    let folder = file.parent().context("a picture has a folder")?;
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let browser = ["chromium", "chromium-browser", "google-chrome"];
    let program = browser
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok())
        .context("there is no chromium: apt install chromium")?;
    let output = Command::new(program)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
        ])
        // The scripts of the page have this time, on a clock that goes on at once when they wait.
        .arg("--virtual-time-budget=20000")
        .arg(format!(
            "--window-size={},{}",
            picture.width, picture.height
        ))
        .arg(format!("--screenshot={}", file.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .context(program)?;
    ensure!(
        output.status.success() && file.exists(),
        "{program}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
