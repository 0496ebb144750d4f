//! Sentences with places for figures: `Median {one} beside 1 client`.

use super::Trouble;

/// Puts a figure in each place.
pub(super) fn fill(
    template: &str,
    figure: &dyn Fn(&str) -> Result<String, Trouble>,
) -> Result<String, Trouble> {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after
            .split_once('}')
            .ok_or_else(|| Trouble::Mistake(format!("a brace of {template:?} stays open")))?;
        text.push_str(before);
        text.push_str(&figure(name)?);
        rest = after;
    }
    text.push_str(rest);
    Ok(text)
}

/// A number of the template that is none of the levels. What stands in braces or between backquotes, the target of a link, and a
/// word that begins with a letter, such as `P1`, are no numbers.
pub(super) fn foreign_number(template: &str, levels: &[&str]) -> Option<String> {
    let plain = outside(&outside(&outside(template, "`", "`"), "{", "}"), "](", ")");
    let is_of_word = |it: char| it.is_alphanumeric() || "_.,".contains(it);
    let words = plain.split(|it| !is_of_word(it));
    let numbers = words.filter(|word| word.starts_with(|it: char| it.is_ascii_digit()));
    let mut numbers = numbers.map(|word| {
        let word = word.replace(',', "");
        let end = word.find(|it: char| !it.is_ascii_digit() && it != '.');
        let number = word.split_at(end.unwrap_or(word.len())).0;
        number.trim_end_matches('.').to_owned()
    });
    numbers.find(|number| !levels.contains(&number.as_str()))
}

/// The text without what stands between these marks.
fn outside(text: &str, open: &str, close: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(open) {
        kept.push_str(before);
        kept.push(' ');
        rest = after.split_once(close).map_or("", |(_, after)| after);
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_its_figure() {
        let figure = |name: &str| Ok(format!("<{name}>"));
        let filled = fill("Median {one} beside 1, {fifty} beside 50.", &figure);
        assert_eq!(
            filled,
            Ok("Median <one> beside 1, <fifty> beside 50.".to_owned())
        );
        let open = fill("Median {one", &figure);
        assert!(matches!(open, Err(Trouble::Mistake(_))));
    }

    #[test]
    fn a_number_that_is_no_figure_is_found() {
        let levels = ["1", "50", "4096", "99"];
        for fine in [
            "Median {one} beside 1 client, {fifty} beside 50.",
            "P1 and `rate 20`, the 99th percentile, a sequence of 4,096.",
            "[page](../../p-7.md#8) is text",
        ] {
            assert_eq!(foreign_number(fine, &levels), None, "{fine}");
        }
        for (wrong, number) in [
            ("Median 15.8 us beside 1 client.", "15.8"),
            ("{one} beside 20, {fifty} beside 50", "20"),
            ("41,000 and {one}", "41000"),
            ("3x as long", "3"),
            ("[page 7](p.md)", "7"),
        ] {
            assert_eq!(
                foreign_number(wrong, &levels).as_deref(),
                Some(number),
                "{wrong}"
            );
        }
    }
}
