//! The server's side of the scheduling service of RT-CORBA 1.x (RTCosScheduling): priorities by the names of objects. It follows a change
//! of the schedule.

use core::cmp::Reverse;
use rtorb::exception::local;
use rtorb::poa::ServedBy;
use rtorb::rt::{
    LanedThreadpool, Policy, Priority, PriorityModel, RtOrb, ThreadpoolId, ThreadpoolLane,
};
use rtorb::{ObjectRef, Orb, Poa, PoaError, PoaPolicies, SystemException};
use rtorb_os::sync::{Mutex, MutexGuard};
use std::sync::Arc;

use super::cos_scheduling::{CosSchedulingError, priority_of};
use super::schedule::Schedule;

/// The scheduling of a server's objects by their names (RTCosScheduling::ServerScheduler).
///
/// Its adapters share lanes: one for each level of the schedule.
#[derive(Clone, Debug)]
pub struct ServerScheduler(pub(super) Arc<ScheduledServer>);

/// The objects of a server scheduler, and the lanes that serve them.
#[derive(Debug)]
pub(super) struct ScheduledServer {
    orb: Orb,
    rt_orb: RtOrb,
    /// `None` for the ORB's own lanes.
    pool: Option<ThreadpoolId>,
    objects: Mutex<ScheduledObjects>,
}

#[derive(Debug)]
struct ScheduledObjects {
    schedule: Arc<Schedule>,
    adapters: Vec<Poa>,
    objects: Vec<ScheduledObject>,
}

/// An object with the priority of its name.
#[derive(Debug)]
struct ScheduledObject {
    poa: Poa,
    object: ObjectRef,
    name: String,
}

/// A change that cannot fail any more. No object is scheduled meanwhile. If it is dropped, lanes that have got threads give them back.
#[must_use]
#[derive(Debug)]
pub(super) struct ServerChange<'s> {
    server: &'s ScheduledServer,
    known: MutexGuard<'s, ScheduledObjects>,
    schedule: Arc<Schedule>,
    /// The lanes with the threads that they shall have in the end.
    lanes: Vec<ThreadpoolLane>,
}

/// What lanes lack for the levels of a schedule.
#[derive(Debug, Default)]
struct LackingLanes {
    /// Lanes of levels that have none.
    missing: Vec<ThreadpoolLane>,
    /// Lanes with too few threads, with the number that their level needs.
    small: Vec<ThreadpoolLane>,
    /// Lanes with another order, with the order that their level needs.
    differing: Vec<ThreadpoolLane>,
}

impl ServerScheduler {
    /// Creates a scheduler that reads priorities from `schedule`, and its thread pool.
    ///
    /// # Errors
    /// BAD_PARAM for a schedule without levels; the errors of
    /// [`create_threadpool_with_lanes`](rtorb::rt::RtOrb::create_threadpool_with_lanes).
    pub fn new(orb: &Orb, schedule: impl Into<Arc<Schedule>>) -> Result<Self, SystemException> {
        let schedule = schedule.into();
        orb.set_miss_ratios(schedule.miss_ratios().clone())?;
        let pool = orb.rt_orb().create_threadpool_with_lanes(LanedThreadpool {
            lanes: schedule.lanes(),
            ..LanedThreadpool::default()
        })?;
        Ok(Self::with_pool(orb, Some(pool), schedule))
    }

    /// Creates a scheduler whose objects the ORB's own lanes serve: those of
    /// [`OrbBuilder::lanes`](rtorb::OrbBuilder::lanes) with [`Schedule::lanes`]. The ORB begins to listen.
    ///
    /// # Errors
    /// BAD_PARAM if a level has no lane of its order with enough threads; the errors of [`Orb::root_poa`].
    pub fn with_lanes_of_orb(
        orb: &Orb,
        schedule: impl Into<Arc<Schedule>>,
    ) -> Result<Self, SystemException> {
        orb.root_poa()?;
        let schedule = schedule.into();
        let scheduler = Self::with_pool(orb, None, schedule.clone());
        let known = scheduler.0.rt_orb.lanes(None);
        let lacking = LackingLanes::of(&known, &schedule);
        let mut lacking = [lacking.missing, lacking.small, lacking.differing]
            .into_iter()
            .flatten();
        if let Some(lane) = lacking.next() {
            return Err(local::WRONG_LANES.with_detail(format_args!(
                "the ORB has no lane of priority {} with {} static threads and the order {}: build it with the lanes of the schedule",
                lane.lane_priority, lane.static_threads, lane.order
            )));
        }
        orb.set_miss_ratios(schedule.miss_ratios().clone())?;
        Ok(scheduler)
    }

    fn with_pool(orb: &Orb, pool: Option<ThreadpoolId>, schedule: Arc<Schedule>) -> Self {
        Self(Arc::new(ScheduledServer {
            orb: orb.clone(),
            rt_orb: orb.rt_orb(),
            pool,
            objects: Mutex::new(ScheduledObjects {
                schedule,
                adapters: Vec::new(),
                objects: Vec::new(),
            }),
        }))
    }

    /// Creates an adapter whose objects the schedule's lanes serve, each at the priority of its name. An object that is not
    /// [scheduled](Self::schedule_object) has the least urgent priority.
    ///
    /// # Errors
    /// Those of [`Poa::create_poa`]: InvalidPolicy if `policies` has a priority model or a thread pool of its own.
    //= RT-CORBA 1.2 §Scheduling Service
    //# An adapter of the server scheduler has the policies that the schedule needs.
    pub fn create_poa(
        &self,
        parent: &Poa,
        name: &str,
        policies: PoaPolicies,
    ) -> Result<Poa, PoaError> {
        let mut rt = policies.rt.iter();
        if let Some(index) = rt.position(|it| matches!(it, Policy::Threadpool(_))) {
            let reason = "the scheduler chooses the thread pool";
            return Err(PoaError::InvalidPolicy { index, reason });
        }
        let mut known = self.0.objects.lock();
        known.make_room();
        let pool = self.0.pool.map(Policy::Threadpool);
        let policies = pool.into_iter().fold(policies, PoaPolicies::with);
        let poa = parent.create_poa(
            name,
            policies.with(Policy::PriorityModel {
                model: PriorityModel::ServerDeclared,
                server_priority: least_urgent(&known.schedule),
            }),
        )?;
        known.adapters.push(poa.clone());
        Ok(poa)
    }

    /// Activates a servant in an adapter of this scheduler, as the object with that name in the schedule.
    ///
    /// An object has its priority from its activation on, so this does both.
    ///
    /// # Errors
    /// [`CosSchedulingError::UnknownName`]; those of [`Poa::activate_with_priority`].
    //= RT-CORBA 1.2 §Scheduling Service
    //# The calls of a scheduled object run at the priority of its name.
    pub fn schedule_object<
        I: ServedBy<S, Object = ObjectRef> + 'static,
        S: Send + Sync + 'static,
    >(
        &self,
        poa: &Poa,
        servant: S,
        name: &str,
    ) -> Result<I, CosSchedulingError> {
        let mut known = self.0.objects.lock();
        known.make_room();
        let priority = priority_of(&known.schedule, name)?;
        let object: I = poa.activate_with_priority(servant, priority)?;
        known.objects.push(ScheduledObject {
            poa: poa.clone(),
            object: object.as_object().clone(),
            name: name.to_owned(),
        });
        Ok(object)
    }

    /// Changes to another schedule while clients call: a level without a lane gets one, a lane gets the threads of its level, and each
    /// object takes the priority of its name. No request is lost, and each runs at the old or at the new priority. A lane that has no
    /// level any more stays with one thread, and sends clients that still call it to the new lane. The ORB's own lanes, which
    /// may serve other objects too, get no fewer threads. The ORB counts late calls by the [ratios](Schedule::miss_ratios) of the schedule.
    ///
    /// Threads are added before any object changes, and end [once no request of their lane is in
    /// progress](rtorb::rt::RtOrb::change_lane_threads).
    ///
    /// A [`Scheduling`](super::Scheduling) service of this process does it [by itself](super::Scheduling::change_server).
    ///
    /// # Errors
    /// [`CosSchedulingError::CannotChange`] if the schedule lacks an active object's name, if a lane or a thread cannot be added, or if a
    /// lane has another order than its level: a lane keeps its order, and one with an order by deadlines its threads. Nothing has
    /// changed then, except that lanes which were already added stay, idle.
    pub fn change(&self, schedule: impl Into<Arc<Schedule>>) -> Result<(), CosSchedulingError> {
        let change = self.0.prepare(schedule.into());
        change
            .map_err(CosSchedulingError::CannotChange)?
            .carry_out();
        Ok(())
    }
}

impl ScheduledObjects {
    fn forget_ended_objects(&mut self) {
        self.objects.retain(|it| it.poa.is_active(&it.object));
    }

    /// Forgets what has ended before the lists grow: a server may make and end objects for years.
    fn make_room(&mut self) {
        if self.objects.len() == self.objects.capacity() {
            self.forget_ended_objects();
        }
        if self.adapters.len() == self.adapters.capacity() {
            self.set_server_priority(least_urgent(&self.schedule));
        }
    }

    /// Sets the priority of objects without a name. Forgets the adapters that are destroyed.
    fn set_server_priority(&mut self, priority: Priority) {
        let adapters = &mut self.adapters;
        adapters.retain(|poa| poa.change_server_priority(priority).is_ok());
    }
}

impl ScheduledServer {
    /// Prepares a change: checks it, and adds the lanes and threads that it needs. Returns the reason in words if it cannot be made.
    pub(super) fn prepare(&self, schedule: Arc<Schedule>) -> Result<ServerChange<'_>, String> {
        let mut known = self.objects.lock();
        known.forget_ended_objects();
        let unknown = |scheduled: &&ScheduledObject| schedule.priority(&scheduled.name).is_none();
        if let Some(scheduled) = known.objects.iter().find(unknown) {
            return Err(format!(
                "the object {} is active, and has no priority in the new schedule: deactivate it first",
                scheduled.name
            ));
        }
        let lanes = self.rt_orb.lanes(self.pool);
        let lacking = LackingLanes::of(&lanes, &schedule);
        if let Some(lane) = lacking.differing.first() {
            return Err(format!(
                "the lane of priority {} has another order than {}, which its level needs: restart the server",
                lane.lane_priority, lane.order
            ));
        }
        let change = ServerChange {
            server: self,
            known,
            schedule,
            lanes,
        };
        for lane in lacking.missing {
            let added = self.rt_orb.add_lane(self.pool, lane);
            added.map_err(|refused| {
                format!(
                    "the lane of priority {} cannot be added: {refused}",
                    lane.lane_priority
                )
            })?;
        }
        for lane in lacking.small {
            self.set_threads(&lane).map_err(|refused| {
                format!(
                    "the lane of priority {} cannot have the {} threads that the new level needs: {refused}",
                    lane.lane_priority, lane.static_threads
                )
            })?;
        }
        Ok(change)
    }

    fn set_threads(&self, lane: &ThreadpoolLane) -> Result<(), SystemException> {
        self.rt_orb
            .change_lane_threads(self.pool, lane.lane_priority, lane.static_threads)
    }
}

impl LackingLanes {
    fn of(known: &[ThreadpoolLane], schedule: &Schedule) -> Self {
        let mut lacking = Self::default();
        for lane in schedule.lanes() {
            let mut known = known.iter();
            match known.find(|known| known.lane_priority == lane.lane_priority) {
                None => lacking.missing.push(lane),
                Some(known) if known.order != lane.order => lacking.differing.push(lane),
                Some(known) if known.static_threads < lane.static_threads => {
                    lacking.small.push(lane);
                }
                Some(_) => {}
            }
        }
        lacking
    }
}

impl ServerChange<'_> {
    /// Gives each object the priority of its name, the most urgent first.
    pub(super) fn carry_out(mut self) {
        let schedule = Arc::clone(&self.schedule);
        let priority = |scheduled: &ScheduledObject| schedule.priority(&scheduled.name);
        self.known
            .objects
            .sort_by_key(|scheduled| Reverse(priority(scheduled)));
        for scheduled in &self.known.objects {
            if let Some(priority) = priority(scheduled) {
                // An object that has ended meanwhile has no priority.
                let _ = scheduled.poa.change_priority(&scheduled.object, priority);
            }
        }
        // The sources of schedules accept only ratios that can be counted.
        let _ = (self.server.orb).set_miss_ratios(schedule.miss_ratios().clone());
        // An adapter that is destroyed has none either.
        let otherwise = least_urgent(&schedule);
        self.known.set_server_priority(otherwise);
        let levels = schedule.lanes();
        let of_level = |lane: &ThreadpoolLane| {
            let mut levels = levels.iter();
            let level = levels.find(|level| level.lane_priority == lane.lane_priority);
            level.map_or(1, |level| level.static_threads)
        };
        let is_own = self.server.pool.is_none();
        for lane in &mut self.lanes {
            let of_level = of_level(lane);
            lane.static_threads = if is_own {
                of_level.max(lane.static_threads)
            } else {
                of_level
            };
        }
        self.known.schedule = schedule;
    }
}

impl Drop for ServerChange<'_> {
    /// Takes threads away: those of levels that need fewer, or that were added for a change that is not made.
    fn drop(&mut self) {
        let present = self.server.rt_orb.lanes(self.server.pool);
        for lane in &self.lanes {
            // If its servants call it, or the ORB has ended, they stay.
            if !present.contains(lane) {
                let _ = self.server.set_threads(lane);
            }
        }
    }
}

/// The priority of objects without a name in the schedule.
fn least_urgent(schedule: &Schedule) -> Priority {
    let priorities = schedule.lane_priorities();
    priorities.last().copied().unwrap_or(Priority::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduling::Description;
    use rtorb::DispatchStrategy;
    use rtorb_tests::relay::{Served, has_priorities};
    use rtorb_tests::scratch::Scratch;
    use rtorb_tests::stubs::Relay;

    /// A schedule of two levels with so many threads; of one level only if there are none.
    fn schedule(threads: [u32; 2]) -> Schedule {
        let operation = |(period, threads): (&str, &u32)| {
            format!(
                r#"{{ name = "every {period}", period = "{period}", worst = "10us", threads = {threads} }}"#
            )
        };
        let operations = ["5ms", "8ms"].into_iter().zip(&threads);
        let operations: Vec<_> = operations
            .filter(|(_, threads)| **threads > 0)
            .map(operation)
            .collect();
        let text = format!(
            "priorities = {{ least_urgent = 29, most_urgent = 30 }}\noperation = [{}]",
            operations.join(", ")
        );
        let described = Description::of_text("the test", &text).expect("it is right");
        let computed = Schedule::compute(&described).expect("it can be met");
        computed.schedule
    }

    #[test]
    fn lanes_get_the_threads_of_their_levels_and_keep_them_if_the_change_is_not_made() {
        if !has_priorities() {
            return;
        }
        let served = Served::by(Orb::builder());
        let scheduler = ServerScheduler::new(&served.orb, schedule([1, 3])).expect("a pool");
        let lanes = || {
            let lanes = scheduler.0.rt_orb.lanes(scheduler.0.pool);
            let both = lanes
                .iter()
                .map(|it| (it.lane_priority.get(), it.static_threads));
            both.collect::<Vec<_>>()
        };
        assert_eq!(lanes(), [(30, 1), (29, 3)]);
        for (threads, expected) in [
            ([4, 2], [(30, 4), (29, 2)]),
            ([2, 0], [(30, 2), (29, 1)]),
            ([1, 3], [(30, 1), (29, 3)]),
        ] {
            scheduler.change(schedule(threads)).expect("there is room");
            assert_eq!(lanes(), expected);
        }
        // Another server cannot follow.
        let prepared = scheduler.0.prepare(Arc::new(schedule([5, 5])));
        assert_eq!(lanes(), [(30, 5), (29, 5)]);
        drop(prepared.expect("there is room"));
        assert_eq!(lanes(), [(30, 1), (29, 3)]);
        let refused = scheduler.change(schedule([5, 2000]));
        refused.expect_err("`pool_threads_max` is smaller");
        assert_eq!(lanes(), [(30, 1), (29, 3)]);
    }

    #[test]
    fn a_lane_keeps_its_order() {
        if !has_priorities() {
            return;
        }
        let by = |strategy: &str| {
            let text = format!(
                r#"
strategy = "{strategy}"
priorities = {{ least_urgent = 30, most_urgent = 30 }}
operation = [{{ name = "a", period = "5ms", worst = "10us" }}]
"#
            );
            let described = Description::of_text("the test", &text).expect("it is right");
            let computed = Schedule::compute(&described).expect("it can be met");
            computed.schedule
        };
        let served = Served::by(Orb::builder());
        let scheduler = ServerScheduler::new(&served.orb, by("rms")).expect("a pool");
        let refused = scheduler
            .change(by("edf"))
            .expect_err("it is fifo")
            .to_string();
        assert!(refused.contains("earliest_deadline"), "{refused}");
        let rate = Orb::builder().lanes(by("rms").lanes());
        let own = Served::by(rate.dispatch(DispatchStrategy::Lanes));
        let refused = ServerScheduler::with_lanes_of_orb(&own.orb, by("edf"));
        let reason = refused.expect_err("it is fifo").detail().map(str::to_owned);
        assert!(reason.is_some_and(|reason| reason.contains("earliest_deadline")));
    }

    #[test]
    fn objects_and_adapters_that_have_ended_do_not_stay() {
        if !has_priorities() {
            return;
        }
        let scratch = Scratch::new();
        let file = scratch.join("described.toml");
        let text = r#"operation = [{ name = "fast", period = "5ms", worst = "10us" }]"#;
        std::fs::write(&file, text).expect("written");
        let described = Description::read(&file).expect("it is right");
        let computed = Schedule::compute(&described).expect("it can be met");
        let served = Served::by(Orb::builder());
        let scheduler = ServerScheduler::new(&served.orb, computed.schedule).expect("a pool");
        for number in 0..100 {
            let poa =
                scheduler.create_poa(&served.root, &format!("A{number}"), PoaPolicies::default());
            let poa = poa.expect("a free name");
            let relay: Relay = scheduler
                .schedule_object(&poa, served.relayer("fast"), "fast")
                .expect("it is known");
            poa.deactivate(relay.as_object()).expect("it is active");
            poa.destroy();
        }
        let known = scheduler.0.objects.lock();
        let (objects, adapters) = (known.objects.len(), known.adapters.len());
        assert!(objects <= 4 && adapters <= 4, "{objects} and {adapters}");
    }
}
