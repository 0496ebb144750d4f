//! A second evaluator, as plain as can be: values instead of octets, a clock that visits every millisecond.

use super::lists::{UNITS_PER_MS, header, list};
use proptest::prelude::*;
use rtorb_services::events::filter::{Delivery, FilterKind, FilterLimits, Key, Subscription};

/// A subscription as a value.
#[derive(Clone, Debug)]
enum Wish {
    Event(Key),
    Masked(Key, Key),
    Not(Box<Wish>),
    And(Vec<Wish>),
    Mask(Key, Box<Wish>),
    Conjunction(Vec<Wish>),
    Disjunction(Vec<Wish>),
    /// Its word, and its period in ms.
    Time(&'static str, u64),
}

/// What is seen: an event of a supplier, or the timeout of this number.
#[derive(Clone, Debug, PartialEq)]
enum Seen {
    Event(Key, u8),
    /// Which of the tree's, and when it was due.
    Time(usize, u64),
}

/// What a wish has so far; the children of a conjunction with their events, in order of completion.
#[derive(Clone, Debug)]
struct Had {
    children: Vec<Had>,
    given: Vec<(usize, Vec<Seen>)>,
}

enum Answer {
    Ignored,
    Kept,
    Done(Vec<Seen>),
}

impl Wish {
    fn text(&self) -> String {
        let key = |key: &Key| format!("{}/{}", key.source, key.event_type);
        let many = |word: &str, children: &[Self]| {
            let texts: Vec<_> = children.iter().map(Self::text).collect();
            format!("{word}({})", texts.join(", "))
        };
        match self {
            Self::Event(wanted) => key(wanted),
            Self::Masked(masks, values) => format!("masked({}, {})", key(masks), key(values)),
            Self::Not(child) => format!("not({})", child.text()),
            Self::And(children) => many("and", children),
            Self::Mask(masks, child) => format!("mask({}, {})", key(masks), child.text()),
            Self::Conjunction(children) => many("conjunction", children),
            Self::Disjunction(children) => many("disjunction", children),
            Self::Time(word, period_ms) => format!("{word}({period_ms})"),
        }
    }

    fn children(&self) -> &[Self] {
        match self {
            Self::Not(child) | Self::Mask(_, child) => core::slice::from_ref(child),
            Self::And(children) | Self::Conjunction(children) | Self::Disjunction(children) => {
                children
            }
            Self::Event(_) | Self::Masked(..) | Self::Time(..) => &[],
        }
    }

    fn nothing(&self) -> Had {
        Had {
            children: self.children().iter().map(Self::nothing).collect(),
            given: Vec::new(),
        }
    }

    fn timeouts(&self) -> Vec<(&'static str, u64)> {
        match self {
            Self::Time(word, period_ms) => vec![(word, *period_ms)],
            _ => self.children().iter().flat_map(Self::timeouts).collect(),
        }
    }

    /// Whether the event alone satisfies it.
    fn matches(&self, event: Key) -> bool {
        let and = |key: Key, masks: Key| Key {
            source: key.source & masks.source,
            event_type: key.event_type & masks.event_type,
        };
        match self {
            Self::Event(key) => {
                (key.source == event.source || key.source * event.source == 0)
                    && (key.event_type == event.event_type
                        || key.event_type * event.event_type == 0)
            }
            Self::Masked(masks, values) => and(event, *masks) == *values,
            Self::Not(child) => !child.matches(event),
            Self::And(children) => children.iter().all(|child| child.matches(event)),
            Self::Disjunction(children) => children.iter().any(|child| child.matches(event)),
            Self::Mask(masks, child) => {
                let left = and(event, *masks);
                left.source != 0 && left.event_type != 0 && child.matches(event)
            }
            Self::Conjunction(_) | Self::Time(..) => unreachable!("never asked of one event"),
        }
    }

    /// Shows something to it; `timeout` counts the timeouts of the tree in the order of the list.
    fn show(&self, had: &mut Had, seen: &Seen, timeout: &mut usize) -> Answer {
        let own = *timeout;
        *timeout += self.timeouts().len();
        let done = |yes: bool| {
            if yes {
                Answer::Done(vec![seen.clone()])
            } else {
                Answer::Ignored
            }
        };
        match (self, seen) {
            (Self::Time(..), Seen::Time(number, _)) => done(*number == own),
            (Self::Time(..), Seen::Event(..)) => Answer::Ignored,
            (Self::Conjunction(children), _) => {
                let mut number = own;
                for (place, child) in children.iter().enumerate() {
                    let mut next = number;
                    if !had.given.iter().any(|given| given.0 == place) {
                        match child.show(&mut had.children[place], seen, &mut next) {
                            Answer::Ignored => {}
                            Answer::Kept => return Answer::Kept,
                            Answer::Done(events) => {
                                had.given.push((place, events));
                                if had.given.len() < children.len() {
                                    return Answer::Kept;
                                }
                                let all = had.given.iter().flat_map(|given| given.1.clone());
                                return Answer::Done(all.collect());
                            }
                        }
                    }
                    number += child.timeouts().len();
                }
                Answer::Ignored
            }
            (Self::Disjunction(children), _) => {
                let mut answer = Answer::Ignored;
                let mut number = own;
                for (place, child) in children.iter().enumerate() {
                    match child.show(&mut had.children[place], seen, &mut number) {
                        Answer::Ignored => {}
                        Answer::Kept => answer = Answer::Kept,
                        done => return done,
                    }
                }
                answer
            }
            (Self::Mask(masks, child), Seen::Event(key, _)) => {
                if key.source & masks.source != 0 && key.event_type & masks.event_type != 0 {
                    child.show(&mut had.children[0], seen, &mut own.clone())
                } else {
                    Answer::Ignored
                }
            }
            (
                Self::Event(_) | Self::Masked(..) | Self::Not(_) | Self::And(_),
                Seen::Event(key, _),
            ) => done(self.matches(*key)),
            _ => Answer::Ignored,
        }
    }
}

/// One tree over time.
struct Watched {
    wish: Wish,
    had: Had,
    /// When each timeout is due.
    due_ms: Vec<Option<u64>>,
}

impl Watched {
    fn new(wish: Wish) -> Self {
        Self {
            had: wish.nothing(),
            due_ms: wish
                .timeouts()
                .iter()
                .map(|(_, period_ms)| Some(*period_ms))
                .collect(),
            wish,
        }
    }

    fn show(&mut self, seen: &Seen, now_ms: u64) -> Option<Vec<Seen>> {
        let Answer::Done(events) = self.wish.show(&mut self.had, seen, &mut 0) else {
            return None;
        };
        self.had = self.wish.nothing();
        for (due_ms, (word, period_ms)) in self.due_ms.iter_mut().zip(self.wish.timeouts()) {
            if word == "deadline" {
                *due_ms = Some(now_ms + period_ms);
            }
        }
        Some(events)
    }

    /// The timeouts of this millisecond.
    fn tick(&mut self, now_ms: u64) -> Vec<Vec<Seen>> {
        let mut pushes = Vec::new();
        for (number, (word, period_ms)) in self.wish.timeouts().into_iter().enumerate() {
            if self.due_ms[number] == Some(now_ms) {
                self.due_ms[number] = (word != "timeout").then_some(now_ms + period_ms);
                pushes.extend(self.show(&Seen::Time(number, now_ms), now_ms));
            }
        }
        pushes
    }
}

/// What the evaluator says of events, each with its millisecond.
fn expected(wish: &Wish, events: &[(u64, Key)]) -> Vec<(u64, Vec<String>)> {
    let mut watched = Watched::new(wish.clone());
    let mut pushes = Vec::new();
    for now_ms in 0..=END_MS {
        let at = |events: Vec<Seen>| (now_ms, events.iter().map(Seen::name).collect());
        pushes.extend(watched.tick(now_ms).into_iter().map(at));
        for (number, (_, key)) in events
            .iter()
            .enumerate()
            .filter(|(_, event)| event.0 == now_ms)
        {
            let seen = Seen::Event(*key, number as u8);
            pushes.extend(watched.show(&seen, now_ms).map(at));
        }
    }
    pushes
}

/// What the subscription says; its thread looks at the clock every millisecond.
fn delivered(text: &str, events: &[(u64, Key)]) -> Vec<(u64, Vec<String>)> {
    let mut subscription =
        Subscription::build(&list(text), FilterKind::Prefix, &FilterLimits::default(), 0)
            .unwrap_or_else(|error| panic!("{text}: {error}"));
    let mut pushes = Vec::new();
    for now_ms in 0..=END_MS {
        let now_ns = now_ms * 1_000_000;
        let mut deliver = |delivery: Delivery<'_>| {
            let names = delivery.events().map(|event| match event.header.ttl {
                0 => format!("@{}", event.header.creation_time / UNITS_PER_MS),
                _ => format!("{}", event.bytes[0]),
            });
            pushes.push((now_ms, names.collect()));
        };
        subscription.expire(now_ns, &mut deliver);
        for (number, (_, key)) in events
            .iter()
            .enumerate()
            .filter(|(_, event)| event.0 == now_ms)
        {
            let header = header(key.event_type, key.source, 0);
            subscription.accept(&header, &[number as u8], now_ns, &mut deliver);
        }
        if let Some(next_ns) = subscription.next_timeout_ns() {
            assert!(next_ns > now_ns, "{text}: due timeouts are left");
        }
    }
    pushes
}

impl Seen {
    fn name(&self) -> String {
        match self {
            Self::Event(_, number) => format!("{number}"),
            Self::Time(_, due_ms) => format!("@{due_ms}"),
        }
    }
}

fn any_key() -> impl Strategy<Value = Key> {
    (0..4, prop_oneof![1 => Just(0), 5 => 16..20])
        .prop_map(|(source, event_type)| Key { source, event_type })
}

/// Wishes that one event satisfies.
fn of_one_event() -> impl Strategy<Value = Wish> {
    let leaf = prop_oneof![
        4 => any_key().prop_map(Wish::Event),
        1 => (any_key(), any_key()).prop_map(|(masks, values)| Wish::Masked(masks, values)),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| {
        let several = prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            inner.clone().prop_map(|child| Wish::Not(Box::new(child))),
            several.clone().prop_map(Wish::And),
            several.prop_map(Wish::Disjunction),
            (any_key(), inner).prop_map(|(masks, child)| Wish::Mask(masks, Box::new(child))),
        ]
    })
}

/// Wishes of every kind, periods that do not divide each other.
fn any_wish() -> impl Strategy<Value = Wish> {
    let words = prop::sample::select(vec!["timeout", "interval", "deadline"]);
    let leaf = prop_oneof![
        6 => any_key().prop_map(Wish::Event),
        2 => of_one_event(),
        2 => (words, prop::sample::select(vec![3_u64, 7, 11])).prop_map(|(word, ms)| Wish::Time(word, ms)),
    ];
    leaf.prop_recursive(4, 14, 4, |inner| {
        let several = prop::collection::vec(inner, 1..5);
        prop_oneof![
            several.clone().prop_map(Wish::Conjunction),
            several.prop_map(Wish::Disjunction),
        ]
    })
}

/// Disjunctions of events.
fn plain_wish() -> impl Strategy<Value = Wish> {
    any_key()
        .prop_map(Wish::Event)
        .prop_recursive(3, 10, 4, |inner| {
            prop::collection::vec(inner, 1..5).prop_map(Wish::Disjunction)
        })
}

fn events() -> impl Strategy<Value = Vec<(u64, Key)>> {
    prop::collection::vec((0..END_MS, any_key()), 0..40).prop_map(|mut events| {
        events.sort_by_key(|event| event.0);
        events
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2 * ProptestConfig::default().cases, ..ProptestConfig::default() })]

    #[test]
    fn the_filter_says_what_the_plain_evaluator_says(wish in any_wish(), events in events()) {
        let text = wish.text();
        prop_assert_eq!(delivered(&text, &events), expected(&wish, &events), "{}", text);
    }

    #[test]
    fn an_event_that_matches_no_key_changes_nothing(wish in any_wish(), events in events()) {
        let text = wish.text();
        let subscription = Subscription::build(&list(&text), FilterKind::Prefix, &FilterLimits::default(), 0);
        let keys = subscription.expect("a subscription").keys().to_vec();
        // A key of no entry takes its event's place, so that the others keep their numbers.
        let masked: Vec<_> = events.iter().map(|(time, key)| {
            let is_wanted = keys.iter().any(|wanted| wanted.matches(*key));
            (if is_wanted { *time } else { END_MS + 1 }, *key)
        }).collect();
        prop_assert_eq!(delivered(&text, &events), delivered(&text, &masked), "{}", text);
    }

    #[test]
    fn the_keys_of_a_plain_subscription_say_all(wish in plain_wish(), events in events()) {
        let text = wish.text();
        let mut subscription = Subscription::build(&list(&text), FilterKind::Prefix, &FilterLimits::default(), 0)
            .expect("a subscription");
        prop_assert!(subscription.is_plain());
        for (_, key) in events {
            let mut pushes = 0;
            let event = header(key.event_type, key.source, 0);
            subscription.accept(&event, &[], 0, &mut |delivery| pushes += delivery.len());
            let is_wanted = subscription.keys().iter().any(|wanted| wanted.matches(key));
            prop_assert_eq!(pushes, usize::from(is_wanted), "{}", text);
        }
    }

    #[test]
    fn accepting_tells_what_is_due_before(wish in any_wish(), times in prop::collection::vec(0..END_MS, 1..8), key in any_key()) {
        let build = || Subscription::build(&list(&wish.text()), FilterKind::Prefix, &FilterLimits::default(), 0)
            .expect("a subscription");
        let (mut one, mut two) = (build(), build());
        let mut times = times;
        times.sort_unstable();
        let event = header(key.event_type, key.source, 0);
        for time_ms in times {
            let now_ns = time_ms * 1_000_000;
            let (mut ones, mut twos) = (Vec::new(), Vec::new());
            let names = |delivery: Delivery<'_>| delivery.events().map(|event| *event.header).collect::<Vec<_>>();
            one.accept(&event, &[], now_ns, &mut |delivery| ones.push(names(delivery)));
            two.expire(now_ns, &mut |delivery| twos.push(names(delivery)));
            two.accept(&event, &[], now_ns, &mut |delivery| twos.push(names(delivery)));
            prop_assert_eq!(ones, twos);
        }
        prop_assert_eq!(one.timeouts_missed(), two.timeouts_missed());
    }
}

const END_MS: u64 = 40;
