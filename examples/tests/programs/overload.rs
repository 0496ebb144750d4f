//! The comparison of lanes in an overload works, and each call has an outcome.

#[test]
fn an_overload_is_late_without_enforcement_and_shed_by_criticality_with_it() {
    crate::judged(shed_by_criticality);
}

fn shed_by_criticality() -> Result<(), String> {
    let program = env!("CARGO_BIN_EXE_overload");
    let Some(printed) = crate::measured(
        program,
        &["--json", "--seconds", "1"],
        &["real-time threads"],
    ) else {
        return Ok(());
    };
    let numbers: Vec<Vec<u64>> = printed.lines().map(numbers_of).collect();
    assert_eq!(numbers.len(), 9, "{printed}");
    for (line, clients) in numbers.iter().zip([3, 5, 5].repeat(3)) {
        let [periods, in_time, late, shed, refused, expired, _longest_us] = line[..] else {
            panic!("seven numbers a line: {printed}");
        };
        assert_eq!(periods, clients * 60, "{printed}");
        let outcomes = in_time + late + shed + refused + expired;
        assert_eq!(outcomes, periods, "{printed}");
    }
    let of_lane = |lane: usize, place: usize| -> u64 {
        let lines = &numbers[3 * lane..3 * lane + 3];
        lines.iter().map(|line| line[place]).sum()
    };
    // Thirteen tenths of what the CPU can do, even on a host that delays some of it.
    let late = format!("late without enforcement: {printed}");
    crate::right_if(of_lane(0, 2) > 100, &late)?;
    if of_lane(2, 5) > of_lane(2, 0) / 2 {
        eprintln!("skipped: other programs took the CPU until most calls expired: {printed}");
        return Ok(());
    }
    let shed = format!("shed by criticality: {printed}");
    crate::right_if(of_lane(2, 3) > 50, &shed)?;
    let [vital, .., low] = &numbers[6..] else {
        panic!("three lines a lane: {printed}");
    };
    let least = format!("the least critical: {printed}");
    crate::right_if(vital[3] == 0 && low[3] > 0, &least)
}

/// The numbers of a line, behind the two names.
fn numbers_of(line: &str) -> Vec<u64> {
    let fields = line.trim_matches(['{', '}']).split(", \"");
    let values = fields.filter_map(|field| field.rsplit(": ").next()?.parse().ok());
    values.collect()
}
