//! Every way in which calls come from a root to a behaviour: the tree of calls, flat.

use rtorb_sched::model::{CallWay, System, Trigger};

use super::plan::{NOBODY, PlaceOf};

/// All places, callers before those whom they call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tree {
    pub(crate) places: Vec<Place>,
}

/// A behaviour, called in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// In the system.
    pub(crate) behaviour: usize,
    /// The place of who calls; `None` of a root.
    pub(crate) caller: Option<usize>,
    /// Which of the caller's calls.
    pub(crate) call: usize,
    /// The behaviour at the beginning.
    pub(crate) root: usize,
    /// The CORBA priority of its calls. By priority, it is the native one that it runs at.
    pub(crate) priority: u8,
    /// How often for each job of the root.
    pub(crate) times: u64,
}

impl Tree {
    /// The tree of a system, whose behaviours have these priorities of their own.
    ///
    /// # Errors
    /// That there are too many ways, or no end to them.
    pub(crate) fn of(system: &System, priorities: &[Option<u8>]) -> Result<Self, String> {
        let mut tree = Self::default();
        let behaviours = system.behaviours.iter().enumerate();
        for (root, _) in behaviours.filter(|(_, one)| one.trigger != Trigger::Called) {
            let first = tree.places.len();
            tree.places.push(Place {
                behaviour: root,
                caller: None,
                call: 0,
                root,
                priority: priorities[root].unwrap_or(1),
                times: 1,
            });
            tree.grow(system, priorities, first)?;
        }
        Ok(tree)
    }

    /// Adds whom the places from `first` on call, and whom these call.
    fn grow(
        &mut self,
        system: &System,
        priorities: &[Option<u8>],
        first: usize,
    ) -> Result<(), String> {
        let mut next = first;
        while let Some(caller) = self.places.get(next).cloned() {
            let calls = system.behaviours[caller.behaviour].calls.iter().enumerate();
            for (index, call) in calls {
                for to in &call.to {
                    self.places.push(Place {
                        behaviour: *to,
                        caller: Some(next),
                        call: index,
                        root: caller.root,
                        priority: match call.way {
                            CallWay::TwoWay => caller.priority,
                            _ => priorities[*to].unwrap_or(caller.priority),
                        },
                        times: caller.times.saturating_mul(u64::from(call.count.max(1))),
                    });
                }
            }
            if self.places.len() > PLACES_MAX {
                return Err(format!(
                    "calls reach behaviours in more than {PLACES_MAX} ways, or in a circle: a run keeps each way apart"
                ));
            }
            next += 1;
        }
        Ok(())
    }

    /// Where a behaviour is, sorted by who calls.
    pub(crate) fn places_of(&self, behaviour: usize) -> Vec<PlaceOf> {
        let ours = self.places.iter().enumerate();
        let ours = ours.filter(|(_, place)| place.behaviour == behaviour);
        let mut found: Vec<PlaceOf> = ours
            .map(|(index, place)| PlaceOf {
                caller: place.caller.map_or(NOBODY, |caller| caller as u32),
                call: place.call as u32,
                place: index as u32,
                priority: place.priority,
            })
            .collect();
        found.sort_unstable();
        found
    }

    /// The places from the root to this one.
    pub(crate) fn way(&self, place: usize) -> Vec<usize> {
        let mut way: Vec<usize> =
            std::iter::successors(Some(place), |place| self.places[*place].caller).collect();
        way.reverse();
        way
    }

    /// Whether the behaviours from the root to a place are these.
    pub(crate) fn is_way(&self, place: usize, through: &[usize]) -> bool {
        let way = self.way(place).into_iter();
        way.map(|place| self.places[place].behaviour)
            .eq(through.iter().copied())
    }

    /// The least time between two arrivals of its root, in ns.
    pub(crate) fn period_ns(&self, system: &System, place: &Place) -> u64 {
        match system.behaviours[place.root].trigger {
            Trigger::Periodic { period_ns, .. } => period_ns,
            Trigger::Sporadic { gap_ns, .. } => gap_ns,
            Trigger::Called => u64::MAX,
        }
    }
}

/// Far more than any system that somebody can run on one host.
const PLACES_MAX: usize = 10_000;
