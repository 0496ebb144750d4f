//! The lines of text in which a guest says what it found (`rtos/board/src/report.rs` writes them).

use rtorb_lab::experiments::os_operations::guest::{Answer, Samples};

const FORM: &str = "rtorb-guest/1";
/// The last line.
pub(super) const END: &str = "\nend\n";

/// Reads the lines, up to the last one.
pub(super) fn read(octets: &[u8], instructions: &str) -> Result<Answer, String> {
    let text = std::str::from_utf8(octets).map_err(|_| "what it said is no text".to_owned())?;
    let mut lines = text.lines();
    if lines.next() != Some(FORM) {
        return Err(format!("what it said does not begin with {FORM}"));
    }
    let mut answer = Answer {
        instructions: instructions.to_owned(),
        ..Answer::default()
    };
    for line in lines {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let unknown = || format!("cannot read its line {line:?}");
        match word {
            "release" => answer.release = rest.to_owned(),
            "preempt" => answer.preempt = rest.to_owned(),
            "samples" => answer.samples.push(samples(rest).ok_or_else(unknown)?),
            "without" => {
                let (operation, why) = rest.split_once(' ').ok_or_else(unknown)?;
                let without = (operation.to_owned(), why.to_owned());
                answer.without.push(without);
            }
            "end" => return Ok(answer),
            _ => return Err(unknown()),
        }
    }
    Err("it did not say its last line".to_owned())
}

/// `0 yield 60 61 60`: round, operation, samples.
fn samples(line: &str) -> Option<Samples> {
    let mut words = line.split(' ');
    let (round, operation) = (words.next()?.parse().ok()?, words.next()?.to_owned());
    let instructions: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
    let instructions = instructions.filter(|all| !all.is_empty())?;
    Some(Samples {
        round,
        operation,
        instructions,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "rtorb-guest/1\nrelease A kernel, 1.0\npreempt priority\nsamples 0 yield 60 61\nsamples 1 yield 60 60\n\
                         without tick it has none\nend\n";

    #[test]
    fn a_whole_answer_is_read() {
        let answer = read(WHOLE.as_bytes(), "Thumb-2").unwrap();
        assert_eq!(answer.release, "A kernel, 1.0");
        assert_eq!(answer.preempt, "priority");
        assert_eq!(answer.samples.len(), 2);
        assert_eq!(answer.samples[1].round, 1);
        assert_eq!(answer.samples[0].instructions, [60, 61]);
        let without = ("tick".to_owned(), "it has none".to_owned());
        assert_eq!(answer.without, [without]);
    }

    #[test]
    fn what_is_cut_short_or_is_something_else_is_refused() {
        let refused = |text: &str| read(text.as_bytes(), "Thumb-2").unwrap_err();
        assert!(refused("").contains("does not begin"));
        assert!(refused(&WHOLE.replace("end\n", "")).contains("last line"));
        assert!(refused(&WHOLE.replace("60 61", "60 x")).contains("60 x"));
        assert!(refused(&WHOLE.replace(" 60 61", "")).contains("samples 0 yield"));
        assert!(refused(&WHOLE.replace("preempt", "panic")).contains("panic priority"));
        assert!(read(&[0xff], "Thumb-2").is_err());
    }

    #[test]
    fn results_have_each_operation_and_its_ratio_to_the_yield_of_its_round() {
        let text = WHOLE.replace(
            "without",
            "samples 0 mutex 122\nsamples 1 mutex 180\nwithout",
        );
        let answer = read(text.as_bytes(), "Thumb-2").unwrap();
        let results = answer.results("mine", 2);
        assert_eq!(results.host.kernel_release, "A kernel, 1.0");
        assert_eq!(results.host.machine, "Thumb-2");
        let of = |labels: &[(&str, &str)]| results.matching(labels).next().unwrap().clone();
        assert_eq!(
            of(&[("operation", "mutex"), ("instructions", "Thumb-2")]).count,
            2
        );
        let ratio = of(&[("operation", "mutex"), ("in", "yields")]);
        assert_eq!(ratio.rounds_p50, [122.0 / 60.5, 3.0]);
        assert!(!ratio.labels.contains_key("instructions"));
        assert!(
            results
                .notes
                .iter()
                .any(|note| note.contains("no tick: it has none"))
        );
    }
}
