//! Timing annotations in generated code, and the counts of calls that use them.

use std::time::Duration;

use crate::common::Pair;
use rtorb::timing::{Criticality, OperationTiming, TimingSide};
use rtorb::{Interface, SystemException};
use rtorb_tests::inheritance::Elsewhere;
use rtorb_tests::timing::{Base, BaseServant, Clockwork, ClockworkFailError, ClockworkServant};

/// Returns at once.
struct Idle;

impl BaseServant for Idle {
    fn plain(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn again(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl ClockworkServant for Idle {
    fn execute(&self, _: u32) -> Result<(), SystemException> {
        Ok(())
    }

    fn pause(&self, _: u32) -> Result<(), SystemException> {
        Ok(())
    }

    fn answer_after(&self, us: u32) -> Result<u32, SystemException> {
        Ok(us)
    }

    fn finish_after(&self, _: u32) -> Result<(), SystemException> {
        Ok(())
    }

    fn cube(&self, n: i32) -> Result<i32, SystemException> {
        Ok(n * n * n)
    }

    fn fail(&self, _: bool) -> Result<(), ClockworkFailError> {
        Ok(())
    }

    fn setting(&self) -> Result<i32, SystemException> {
        Ok(3)
    }

    fn set_setting(&self, _: i32) -> Result<(), SystemException> {
        Ok(())
    }
}

fn of<I: Interface>(name: &str) -> &'static OperationTiming {
    let mut all = I::timings().iter();
    all.find(|timing| timing.name() == name).unwrap()
}

#[test]
fn an_interface_has_the_timings_of_all_its_annotated_operations() {
    let names: Vec<_> = Clockwork::timings()
        .iter()
        .map(OperationTiming::name)
        .collect();
    let expected = [
        "again",
        "execute",
        "pause",
        "answer_after",
        "finish_after",
        "cube",
        "fail",
        "_get_setting",
        "_set_setting",
    ];
    assert_eq!(
        names,
        expected.map(|name| format!("Timing::Clockwork::{name}"))
    );
    let names: Vec<_> = Base::timings().iter().map(OperationTiming::name).collect();
    assert_eq!(names, ["Timing::Base::again"]);
    assert!(
        Elsewhere::timings().is_empty(),
        "nothing there is annotated"
    );
}

#[test]
fn timings_equal_their_annotations() {
    let cube = of::<Clockwork>("Timing::Clockwork::cube");
    assert_eq!(cube.worst_case_time(), Some(Duration::from_secs(10)));
    assert_eq!(cube.deadline(), Some(Duration::from_secs(20)));
    assert_eq!(cube.period(), Some(Duration::from_nanos(1)));
    assert_eq!(cube.criticality(), Some(Criticality::Medium));
    assert!(!cube.is_oneway());
    let finish = of::<Clockwork>("Timing::Clockwork::finish_after");
    assert!(finish.is_oneway());
    assert_eq!(finish.worst_case_time(), None);
    let answer = of::<Clockwork>("Timing::Clockwork::answer_after");
    assert_eq!(answer.criticality(), Some(Criticality::VeryHigh));
}

#[test]
fn calls_are_counted_for_the_interface_of_the_reference() {
    let pair = Pair::new();
    let clockwork: Clockwork = pair.serve(Idle);
    let base = Base::from(&clockwork);
    base.again().unwrap();
    base.plain().unwrap();
    clockwork.again().unwrap();
    clockwork.set_setting(3).unwrap();
    assert_eq!(clockwork.setting(), Ok(3));
    assert_eq!(clockwork.answer_after(7), Ok(7));
    clockwork.finish_after(0).unwrap();
    let counted: Vec<_> = clockwork
        .as_object()
        .orb()
        .timing()
        .into_iter()
        .map(|counts| (counts.operation.name(), counts.side, counts.calls))
        .collect();
    let once = |name| (name, TimingSide::Client, 1);
    let expected = [
        once("Timing::Base::again"),
        once("Timing::Clockwork::_get_setting"),
        once("Timing::Clockwork::_set_setting"),
        once("Timing::Clockwork::again"),
        once("Timing::Clockwork::answer_after"),
    ];
    assert_eq!(
        counted, expected,
        "neither what is not annotated nor the oneway"
    );
}
