//! The number of random sets for each property.

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

fn sets() -> u32 {
    let chosen = std::env::var("RTORB_SCHED_SETS").ok();
    chosen.map_or(300, |text| {
        text.parse()
            .expect("RTORB_SCHED_SETS is a number of task sets")
    })
}

pub(crate) fn check<S: Strategy>(
    strategy: &S,
    property: impl Fn(S::Value) -> Result<(), TestCaseError>,
) where
    S::Value: core::fmt::Debug,
{
    let config = Config {
        cases: sets(),
        failure_persistence: None,
        max_global_rejects: 1_000_000,
        ..Config::default()
    };
    if let Err(error) = TestRunner::new(config).run(strategy, property) {
        panic!("{error}");
    }
}
