//! The comparison of a priority with a reservation works.

#[test]
fn a_lane_misses_deadlines_beside_spinning_threads_unless_a_reservation_separates_them() {
    crate::judged(unless_a_reservation_separates_them);
}

fn unless_a_reservation_separates_them() -> Result<(), String> {
    let program = env!("CARGO_BIN_EXE_reservation");
    let Some(printed) = crate::measured(
        program,
        &["--json", "--seconds", "1"],
        &["real-time threads", "with its reservations"],
    ) else {
        return Ok(());
    };
    let missed: Vec<u64> = printed
        .lines()
        .map(|line| {
            let (_, missed) = line.split_once("\"missed\": ").expect("a count");
            let (missed, _) = missed.split_once(',').expect("more behind it");
            missed.parse().expect("a number")
        })
        .collect();
    let [lane, reserved_lane, foreign, reserved_axis] = missed[..] else {
        panic!("four cases: {printed}");
    };
    // They spin for 60 periods of 100.
    let is_right = lane >= 40 && foreign >= 40 && reserved_lane < 30 && reserved_axis < 30;
    crate::right_if(is_right, &printed)
}
