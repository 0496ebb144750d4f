//! Tests of what is refused, and of what is an interruption.

use rtorb_sched::model::{Layer, Share};

use super::*;

pub(super) mod by_hand;

#[test]
fn what_the_bounds_reckon_for_an_interrupt_is_no_interruption() {
    let system = by_hand::example("overloaded.toml");
    let mut checked = by_hand::checked(&system, None);
    assert_eq!(interruption_from_ns(&checked), 10_000);
    let share = |what: &str, times, ns| Share {
        layer: Layer::OperatingSystem,
        what: what.to_owned(),
        times,
        ns,
    };
    checked.behaviours[0].shares = vec![
        share("context switches", 1, 900_000),
        share("tick", 3, 45_000),
        share("release of vision.recognise", 2, 50_000),
    ];
    assert_eq!(interruption_from_ns(&checked), 50_000);
}

#[test]
fn a_duration_has_its_limits() {
    let system = by_hand::example("overloaded.toml");
    let checked = by_hand::checked(&system, None);
    let of = |duration| RunOptions {
        duration,
        ..RunOptions::default()
    };
    assert_eq!(refuse(&checked, &of(Duration::from_secs(1))), Ok(()));
    let refused = refuse(&checked, &of(Duration::from_secs(3_601))).unwrap_err();
    assert!(refused.contains("not 3601 s"), "{refused}");
}
