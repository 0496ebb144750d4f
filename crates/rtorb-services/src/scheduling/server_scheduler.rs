//! The server's side of the scheduling service of RT-CORBA 1.x (RTCosScheduling): priorities by the names of objects. It follows a change
//! of the schedule.

use core::cmp::Reverse;
use rtorb::exception::local;
use rtorb::poa::ServedBy;
use rtorb::rt::{LanedThreadpool, Policy, Priority, PriorityModel, RtOrb, ThreadpoolId};
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

/// A change that cannot fail any more. No object is scheduled meanwhile.
#[must_use]
#[derive(Debug)]
pub(super) struct ServerChange<'s> {
    orb: &'s Orb,
    known: MutexGuard<'s, ScheduledObjects>,
    schedule: Arc<Schedule>,
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
    /// BAD_PARAM if a level has no lane with enough threads; the errors of [`Orb::root_poa`].
    pub fn with_lanes_of_orb(
        orb: &Orb,
        schedule: impl Into<Arc<Schedule>>,
    ) -> Result<Self, SystemException> {
        orb.root_poa()?;
        let schedule = schedule.into();
        let scheduler = Self::with_pool(orb, None, schedule.clone());
        let missing = scheduler.0.missing_lanes(&schedule);
        let missing = missing.map_err(|reason| local::WRONG_LANES.with_detail(reason))?;
        match missing.first() {
            None => {
                let ratios = scheduler.0.objects.lock().schedule.miss_ratios().clone();
                orb.set_miss_ratios(ratios)?;
                Ok(scheduler)
            }
            Some(lane) => Err(local::WRONG_LANES.with_detail(format_args!(
                "the ORB has no lane of priority {}: build it with the lanes of the schedule",
                lane.lane_priority
            ))),
        }
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

    /// Changes to another schedule while clients call: a level without a lane gets one, and each object takes the priority of its
    /// name. No request is lost, and each runs at the old or at the new priority. A lane that has no level any more stays, and sends
    /// clients that still call it to the new lane. The ORB counts late calls by the [ratios](Schedule::miss_ratios) of the schedule.
    ///
    /// A [`Scheduling`](super::Scheduling) service of this process does it [by itself](super::Scheduling::change_server).
    ///
    /// # Errors
    /// [`CosSchedulingError::CannotChange`] if the schedule lacks an active object's name, a lane cannot be added, or one has too few
    /// threads.
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
    /// Prepares a change: checks it, and adds the lanes that it needs. Returns the reason in words if it cannot be made.
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
        for lane in self.missing_lanes(&schedule)? {
            let added = self.rt_orb.add_lane(self.pool, lane);
            added.map_err(|refused| {
                format!(
                    "the lane of priority {} cannot be added: {refused}",
                    lane.lane_priority
                )
            })?;
        }
        Ok(ServerChange {
            orb: &self.orb,
            known,
            schedule,
        })
    }

    /// The lanes of the levels that have none; in words, which lane has too few threads.
    fn missing_lanes(&self, schedule: &Schedule) -> Result<Vec<rtorb::rt::ThreadpoolLane>, String> {
        let known = self.rt_orb.lanes(self.pool);
        let mut missing = Vec::new();
        for lane in schedule.lanes() {
            let mut lanes = known.iter();
            match lanes.find(|known| known.lane_priority == lane.lane_priority) {
                None => missing.push(lane),
                Some(known) if known.static_threads < lane.static_threads => {
                    return Err(format!(
                        "the lane of priority {} has {} threads, and the new level needs {}: the threads of a lane do not change while it runs, so restart the server",
                        lane.lane_priority, known.static_threads, lane.static_threads
                    ));
                }
                Some(_) => {}
            }
        }
        Ok(missing)
    }
}

impl ServerChange<'_> {
    /// Gives each object the priority of its name, the most urgent first.
    pub(super) fn carry_out(mut self) {
        let schedule = &self.schedule;
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
        let _ = self.orb.set_miss_ratios(schedule.miss_ratios().clone());
        // An adapter that is destroyed has none either.
        let otherwise = least_urgent(schedule);
        self.known.set_server_priority(otherwise);
        self.known.schedule = self.schedule;
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
    use rtorb_tests::relay::{Served, has_priorities};
    use rtorb_tests::scratch::Scratch;
    use rtorb_tests::stubs::Relay;

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
