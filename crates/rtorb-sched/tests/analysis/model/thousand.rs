//! A thousand behaviours take few steps, so that an editor can check a system while the user types.

use rtorb_sched::SearchLimits;
use rtorb_sched::model::{BehaviourBound, CheckOptions, Standing, Trigger, check_composed};

use super::random::{Draw, Shape, composed, random_system};

const SHAPE: Shape = Shape {
    nodes: 4,
    cpus: 4,
    roots: 700,
    called: 300,
    load: 150,
    edf: false,
};

/// Every bound takes at most a two-hundredth of the steps that the limits allow, and few rounds.
#[test]
fn a_thousand_behaviours_take_few_steps() {
    let mut draw = Draw(4);
    let mut system = random_system(&mut draw, SHAPE);
    for behaviour in &mut system.behaviours {
        behaviour.priority = None;
        // No root ends after its next arrival.
        if let Trigger::Periodic { period_ns, .. } = &mut behaviour.trigger {
            *period_ns = (*period_ns).max(40_000_000);
            behaviour.deadline_ns = None;
        }
    }
    let composed = composed(&mut draw, &system);
    assert_eq!(system.behaviours.len(), 1_000);
    let options = CheckOptions {
        limits: SearchLimits {
            steps_max: 1_000,
            rounds_max: 50,
        },
        // This takes minutes without optimisation.
        sensitivity: !cfg!(debug_assertions),
        strategy: None,
    };
    let answer = check_composed(&system, &composed, &options).expect("there are priorities enough");
    let undecided = answer
        .behaviours
        .iter()
        .filter(|each| each.standing == Standing::NotProven);
    assert_eq!(undecided.count(), 0);
    assert_eq!(answer.standing, Standing::Holds);
    if options.sensitivity {
        let grows = |each: &&BehaviourBound| {
            let grows = each.sensitivity.as_ref();
            grows.is_some_and(|grows| grows.may_grow_ns >= Some(0))
        };
        assert_eq!(answer.behaviours.iter().filter(grows).count(), 1_000);
    }
    let most = answer.behaviours.iter().map(|each| each.shares.len()).max();
    assert!(
        most.is_some_and(|most| most < 60),
        "{most:?} shares are no table to read"
    );
}
