//! What a campaign over kernels has beside its results: the systems, when and how it was run, and why worst samples were slow.

use std::path::Path;

use rtorb_results::campaign::{PREFIX, Record, Wall};
use rtorb_results::explanation::Explanation;
use rtorb_results::{EmulatedSystem, Emulation, Results};

use crate::moment::said;

/// What lies beside the results in the folder of a campaign.
#[derive(Default)]
pub(crate) struct Beside {
    explained: Vec<Explained>,
    record: Option<Record>,
}

/// An explanation with its picture.
pub(crate) struct Explained {
    pub(crate) explanation: Explanation,
    /// The picture as the page's own data; empty where it is too large, or not there.
    pub(crate) picture: String,
}

impl Beside {
    /// What is in a folder; nothing where it is of no campaign. What cannot be read is left out: results are shown without it.
    pub(crate) fn read(folder: &Path) -> Self {
        Self {
            explained: explained(&folder.join(EXPLANATIONS)),
            record: Record::read(folder).ok(),
        }
    }

    /// The explanations of samples of an experiment.
    pub(crate) fn of(&self, results: &Results) -> Vec<&Explained> {
        let name = results.experiment.strip_prefix(PREFIX);
        let of_it = |one: &&Explained| Some(one.explanation.experiment.as_str()) == name;
        self.explained.iter().filter(of_it).collect()
    }
}

impl Explained {
    pub(crate) fn title(&self) -> String {
        format!("What {} were spent in", self.of())
    }

    /// `1501 k instr of 6.12-voluntary, load tmpfs`.
    pub(crate) fn of(&self) -> String {
        let explanation = &self.explanation;
        let load = match explanation.load.as_str() {
            "none" => "no load".to_owned(),
            load => format!("load {load}"),
        };
        let labels = &explanation.labels;
        let part = labels.get("service").or_else(|| labels.get("series"));
        let part = part.map_or_else(String::new, |part| format!(", {part}"));
        format!(
            "{} of {}, {load}{part}",
            explanation.shown_value(),
            explanation.system
        )
    }

    /// The most expensive functions: name, share, instructions, those with what it called, how often it was entered.
    pub(crate) fn rows(&self) -> Vec<[String; 5]> {
        let functions = self.explanation.functions.iter().take(FUNCTIONS_MAX);
        let row = functions.map(|function| {
            [
                function.name.clone(),
                format!("{:.1} %", 100.0 * function.share),
                function.instructions.to_string(),
                function.with_callees.to_string(),
                function.entered.to_string(),
            ]
        });
        row.collect()
    }

    /// How many functions the table leaves out.
    pub(crate) fn others(&self) -> usize {
        self.explanation
            .functions
            .len()
            .saturating_sub(FUNCTIONS_MAX)
    }
}

/// One campaign on the page.
pub(crate) struct CampaignPart<'a> {
    /// What its results have as `run`.
    pub(crate) run: &'a str,
    pub(crate) emulation: &'a Emulation,
    /// When it was run and how long, and whether a case that was run twice was the same; empty where that is not known.
    pub(crate) wall: Vec<String>,
    /// Whether it was found not to repeat.
    pub(crate) differs: bool,
}

impl CampaignPart<'_> {
    pub(crate) fn short(digest: &str) -> &str {
        digest.get(..DIGITS).unwrap_or(digest)
    }

    pub(crate) fn package(system: &EmulatedSystem) -> &str {
        match system.package.as_str() {
            "" => "a file of the user's",
            package => package,
        }
    }
}

/// Every campaign that the results are of, once.
pub(crate) fn of<'a>(all: &[&'a Results], beside: &Beside) -> Vec<CampaignPart<'a>> {
    let mut parts: Vec<CampaignPart<'a>> = Vec::new();
    for results in all {
        let Some(emulation) = &results.emulation else {
            continue;
        };
        if parts.iter().any(|part| part.run == results.run) {
            continue;
        }
        let record = beside.record.as_ref();
        let record = record.filter(|record| record.id.is_empty() || record.id == results.run);
        parts.push(CampaignPart {
            run: &results.run,
            emulation,
            wall: record.map(in_words).unwrap_or_default(),
            differs: record.is_some_and(|record| record.self_check.repeats == Some(false)),
        });
    }
    parts
}

/// Whether times are counts of instructions: then no host of the page is meant.
pub(crate) fn is_emulated(results: &Results) -> bool {
    results.time_unit().is_virtual()
}

fn in_words(record: &Record) -> Vec<String> {
    let Wall {
        started,
        duration_s,
        guests,
        ..
    } = &record.wall;
    let mut words = vec![format!(
        "Run {}, in {duration_s:.0} s, {guests} guests side by side: nothing in the results depends on that.",
        said(started)
    )];
    let case = &record.self_check.case;
    words.extend(record.self_check.repeats.map(|repeats| {
        if repeats {
            format!("Run twice, {case} said the same both times, octet by octet.")
        } else {
            format!("RUN TWICE, {case} DID NOT SAY THE SAME: no number here can be relied on.")
        }
    }));
    words
}

/// At most so many explanations, in the order of their files' names.
fn explained(folder: &Path) -> Vec<Explained> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "json")
    });
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        let explanation: Explanation = serde_json::from_slice(&bounded(path)?).ok()?;
        let is_plain = Path::new(&explanation.flame_graph).components().count() == 1;
        let picture = is_plain.then(|| bounded(&folder.join(&explanation.flame_graph)));
        (explanation.schema == Explanation::SCHEMA).then(|| Explained {
            picture: picture
                .flatten()
                .map(|svg| as_data(&svg))
                .unwrap_or_default(),
            explanation,
        })
    };
    paths
        .iter()
        .take(EXPLANATIONS_MAX)
        .filter_map(read)
        .collect()
}

fn bounded(path: &Path) -> Option<Vec<u8>> {
    let size = std::fs::metadata(path).ok()?.len();
    (size <= BYTES_MAX).then(|| std::fs::read(path).ok())?
}

/// As an image that needs no file. In an image no script of the picture runs, and its names do not meet those of the page.
fn as_data(svg: &[u8]) -> String {
    let mut data = "data:image/svg+xml,".to_owned();
    for &octet in svg {
        match octet {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => data.push(char::from(octet)),
            b' ' | b'-' | b'_' | b'.' | b'=' | b'/' | b':' | b',' | b';' | b'(' | b')' => {
                data.push(char::from(octet));
            }
            other => data.push_str(&format!("%{other:02X}")),
        }
    }
    data
}

const EXPLANATIONS: &str = "explanations";
const EXPLANATIONS_MAX: usize = 64;
/// Of a file; larger ones are left out of the page.
const BYTES_MAX: u64 = 2 << 20;
const FUNCTIONS_MAX: usize = 12;
const DIGITS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_can_stand_in_an_attribute_and_be_read_again() {
        let data = as_data(b"<svg a=\"b\">100 % # \xc3\xa4</svg>");
        assert!(!data.contains(['"', '<', '>', '#']), "{data}");
        assert!(data.contains("100 %25 %23 %C3%A4"), "{data}");
    }

    #[test]
    fn a_folder_of_no_campaign_has_nothing_beside_its_results() {
        let folder = tempfile::tempdir().unwrap();
        let beside = Beside::read(folder.path());
        assert!(beside.explained.is_empty() && beside.record.is_none());
    }
}
