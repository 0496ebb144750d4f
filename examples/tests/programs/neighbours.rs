//! The comparison of policies for overruns works, and has the form that scripts rely on.

#[test]
fn a_neighbour_misses_deadlines_only_if_overruns_are_only_counted() {
    crate::judged(only_if_overruns_are_only_counted);
}

fn only_if_overruns_are_only_counted() -> Result<(), String> {
    let program = env!("CARGO_BIN_EXE_neighbours");
    let Some(printed) = crate::measured(
        program,
        &["--json", "--deadlines", "100"],
        &["real-time threads"],
    ) else {
        return Ok(());
    };
    let inner = printed
        .trim()
        .strip_prefix("[{")
        .expect("a list of objects");
    let inner = inner.strip_suffix("}]").expect("a list of objects");
    let outcomes: Vec<Vec<(&str, &str)>> = inner
        .split("}, {")
        .map(|object| {
            let fields = object.split(", ");
            fields
                .map(|field| field.split_once(": ").expect("a name and a value"))
                .collect()
        })
        .collect();
    let mut missed = Vec::new();
    for (outcome, policy) in outcomes.iter().zip(["count", "demote", "stop"]) {
        let names: Vec<&str> = outcome.iter().map(|(name, _)| *name).collect();
        let expected = [
            "\"policy\"",
            "\"neighbour_calls\"",
            "\"neighbour_missed\"",
            "\"longest_neighbour_us\"",
        ];
        assert_eq!(names, expected);
        assert_eq!(outcome[0].1, format!("\"{policy}\""));
        let number = |place: usize| outcome[place].1.parse::<u64>().expect("a number");
        assert!(number(1) >= 10 && number(3) > 0, "{printed}");
        missed.push(number(2));
    }
    // The work of one call takes as long as 80 periods.
    let is_right = missed[0] > 40 && missed[1] < 20 && missed[2] < 20;
    crate::right_if(is_right, &printed)
}
