//! Call stacks as a picture: a flame graph, whose widths are instructions.

use std::collections::BTreeMap;

use inferno::flamegraph::color::{BasicPalette, Palette};
use inferno::flamegraph::{self, Options};

/// Draws call stacks: the same picture for the same stacks. It moves by a script of its own, and needs nothing from elsewhere.
///
/// # Errors
/// That there is nothing to draw.
pub(crate) fn draw(folded: &BTreeMap<String, u64>, title: &str) -> Result<String, std::io::Error> {
    let mut options = Options::default();
    options.title = title.to_owned();
    options.subtitle = Some(SUBTITLE.to_owned());
    options.count_name = "instructions".to_owned();
    // The colour of a function is that of its name in every picture.
    options.colors = Palette::Basic(BasicPalette::Hot);
    options.deterministic = true;
    options.hash = true;
    let lines: Vec<String> = lines(folded).collect();
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut svg)
        .map_err(std::io::Error::other)?;
    String::from_utf8(svg).map_err(std::io::Error::other)
}

/// The stacks as other tools read them: a line for each, and its instructions.
pub(crate) fn text(folded: &BTreeMap<String, u64>) -> String {
    lines(folded).map(|line| line + "\n").collect()
}

fn lines(folded: &BTreeMap<String, u64>) -> impl Iterator<Item = String> {
    folded
        .iter()
        .map(|(stack, instructions)| format!("{stack} {instructions}"))
}

const SUBTITLE: &str = "width: guest instructions; below: the task";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_the_same_for_the_same_stacks_and_needs_nothing() {
        let folded = BTreeMap::from([("measured;a;b".to_owned(), 700), ("idle;c".to_owned(), 300)]);
        let svg = draw(&folded, "a sample").unwrap();
        assert_eq!(svg, draw(&folded, "a sample").unwrap());
        assert!(svg.contains("700 instructions"), "{svg}");
        assert!(!svg.contains("src=\"http") && !svg.contains("@import"));
        assert_eq!(text(&folded), "idle;c 300\nmeasured;a;b 700\n");
    }

    #[test]
    fn nothing_is_not_drawn() {
        assert!(draw(&BTreeMap::new(), "nothing").is_err());
    }
}
