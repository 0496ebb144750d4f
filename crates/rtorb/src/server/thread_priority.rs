//! Which priority a serving thread has: before, in and after an upcall.

use crate::exception::SystemException;
use crate::realtime::{NativePriority, Priority, RtCore, Running};
use rtorb_os::sched::{SchedPolicy, current_policy};

/// The priority of one serving thread, so that the kernel is told only what it does not know.
///
/// It is right as long as nobody but the ORB and [`RtCurrent`](crate::realtime::RtCurrent) changes it.
#[derive(Debug)]
pub(crate) struct ThreadPriority {
    rule: PriorityRule,
    /// How it runs when it serves nobody.
    resting: SchedPolicy,
    now: CurrentPriority,
}

/// How a thread runs now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CurrentPriority {
    /// As it rests.
    Resting,
    /// At the native priority that it was given for a call.
    At(NativePriority),
    /// As a servant has made it.
    Unknown,
}

/// What a thread does about the priorities of the calls that it serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PriorityRule {
    /// It never changes its own; calls run with this CORBA priority, which is that of the endpoint the client came to.
    Lane(Priority),
    /// As a lane, for calls that were given to it wherever they came in.
    Station(Priority),
    /// It takes the call's, and goes back to its own after each upcall.
    Return,
    /// It takes the call's, and keeps it until a call with another one comes: no system call while all have the same.
    Keep,
}

/// The priority of a call, in both measures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Called {
    pub(super) priority: Priority,
    pub(super) native: NativePriority,
}

impl ThreadPriority {
    /// Of the calling thread, which serves a lane: it runs at the lane's priority already.
    pub(crate) fn of_lane(priority: Priority) -> Self {
        Self::new(PriorityRule::Lane(priority))
    }

    /// Of the calling thread, which runs at that priority already and serves what is chosen for it.
    pub(crate) fn of_station(priority: Priority) -> Self {
        Self::new(PriorityRule::Station(priority))
    }

    /// Of the calling thread, which waits for requests of whatever priority in between.
    pub(crate) fn returning() -> Self {
        Self::new(PriorityRule::Return)
    }

    /// Of the calling thread, which serves one client.
    pub(crate) fn keeping() -> Self {
        Self::new(PriorityRule::Keep)
    }

    fn new(rule: PriorityRule) -> Self {
        Self {
            rule,
            resting: current_policy(),
            now: CurrentPriority::Resting,
        }
    }

    /// Lets the calling thread serve a lane of another priority from now on: it takes that one.
    ///
    /// # Errors
    /// DATA_CONVERSION 2 or NO_PERMISSION, as for [`RtCurrent::set_the_priority`](crate::realtime::RtCurrent::set_the_priority);
    /// all is as it was then.
    pub(crate) fn move_to_lane(
        &mut self,
        rt: &RtCore,
        priority: Priority,
    ) -> Result<(), SystemException> {
        let native = rt.to_native(priority)?;
        rt.apply(native)?;
        *self = Self {
            rule: PriorityRule::Lane(priority),
            resting: rt.policy(native),
            now: CurrentPriority::Resting,
        };
        Ok(())
    }

    /// True if the priority of a call is no business of this thread's.
    #[inline]
    pub(super) fn has_priority(&self) -> bool {
        matches!(self.rule, PriorityRule::Lane(_) | PriorityRule::Station(_))
    }

    /// True if the thread serves a lane, and one of another priority than that: clients have an endpoint of the right one.
    #[inline]
    pub(super) fn is_of_lane_without(&self, declared: Priority) -> bool {
        matches!(self.rule, PriorityRule::Lane(lane) if lane != declared)
    }

    /// Before a call of an object without a priority model, and before every call in a lane or station.
    ///
    /// # Errors
    /// NO_PERMISSION when the host does not let the thread go back from the priority of an earlier call.
    #[inline]
    pub(super) fn begin_as_it_is(&mut self, rt: &RtCore) -> Result<Running, SystemException> {
        if self.now != CurrentPriority::Resting {
            self.rest(rt)?;
        }
        Ok(match self.rule {
            PriorityRule::Lane(priority) | PriorityRule::Station(priority) => Running::at(priority),
            PriorityRule::Return | PriorityRule::Keep => Running::as_it_is(),
        })
    }

    /// Before a call with a priority.
    ///
    /// # Errors
    /// NO_PERMISSION when the host refuses the thread that priority.
    #[inline]
    pub(super) fn begin(&mut self, rt: &RtCore, call: Called) -> Result<Running, SystemException> {
        if self.now != CurrentPriority::At(call.native) {
            self.take(rt, call.native)?;
        }
        Ok(Running::at(call.priority))
    }

    /// After a call, however it ended.
    #[inline]
    pub(super) fn end(&mut self, rt: &RtCore, running: &Running) {
        if running.was_changed() {
            self.now = CurrentPriority::Unknown;
        }
        let goes_back = match self.now {
            CurrentPriority::Resting => false,
            CurrentPriority::At(_) => self.rule == PriorityRule::Return,
            CurrentPriority::Unknown => true,
        };
        if goes_back {
            // Should it fail, the next call tries again, and is refused.
            let _ = self.rest(rt);
        }
    }

    fn take(&mut self, rt: &RtCore, native: NativePriority) -> Result<(), SystemException> {
        if self.now == CurrentPriority::Resting && self.resting == rt.policy(native) {
            return Ok(());
        }
        rt.apply(native)?;
        self.now = CurrentPriority::At(native);
        Ok(())
    }

    fn rest(&mut self, rt: &RtCore) -> Result<(), SystemException> {
        rt.apply_policy(self.resting)?;
        self.now = CurrentPriority::Resting;
        Ok(())
    }
}
