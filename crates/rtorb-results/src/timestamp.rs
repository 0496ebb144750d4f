//! Wall-clock time as text. Only for people: nothing is measured with it.

use jiff::Timestamp;

/// Now, in UTC to the second, as RFC 3339 has it: `2026-11-20T13:14:15Z`.
#[must_use]
pub fn now() -> String {
    rfc3339(Timestamp::now())
}

fn rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_that_of_the_results() {
        let leap_day = Timestamp::from_second(1_709_251_199).expect("in range");
        assert_eq!(rfc3339(leap_day), "2024-02-29T23:59:59Z");
    }
}
