//! The priority of a serving thread: before, during and after an upcall.

use crate::distributable;
use crate::exception::SystemException;
use crate::realtime::{
    NativePriority, Priority, RtCore, UpcallPriority, caller_policy, undemoted_policy,
};
use rtorb_os::sched::{SchedPolicy, current_policy};

/// The known priority of a serving thread. It saves system calls that would change nothing.
///
/// It is correct if only the ORB and [`RtCurrent`](crate::realtime::RtCurrent) change the priority.
#[derive(Debug)]
pub(crate) struct ThreadPriority {
    rule: PriorityRule,
    /// The scheduling of the thread between requests.
    resting: SchedPolicy,
    now: CurrentPriority,
}

/// The current scheduling of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CurrentPriority {
    /// The scheduling between requests.
    Resting,
    /// A native priority that was set for a call.
    At(NativePriority),
    /// Unknown: a servant has changed it, or the thread is still demoted.
    Unknown,
}

/// The rule by which a thread takes the priorities of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PriorityRule {
    /// The thread keeps its priority. Calls have this CORBA priority, that of the called endpoint.
    Lane(Priority),
    /// As `Lane`, but the server chooses the lane, so calls arrive at any endpoint.
    RoutedLane(Priority),
    /// The thread takes the call's priority, and returns to its own after each upcall.
    Return,
    /// As `Return`, for the client's own thread, which calls an object of its ORB.
    Caller,
    /// The thread takes the call's priority and keeps it until a call with another one: calls with equal priorities need no system
    /// call.
    Keep,
}

/// The CORBA priority of a call, and the native one.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallPriorities {
    pub(super) priority: Priority,
    pub(super) native: NativePriority,
}

impl ThreadPriority {
    /// Makes the state of the calling thread, which serves a lane and already has its priority.
    pub(crate) fn of_lane(priority: Priority) -> Self {
        Self::new(PriorityRule::Lane(priority))
    }

    /// Makes the state of the calling thread, which serves a lane that the server chooses, and already has its priority.
    pub(crate) fn of_routed_lane(priority: Priority) -> Self {
        Self::new(PriorityRule::RoutedLane(priority))
    }

    /// Makes the state of the calling thread, which serves requests of any priority.
    pub(crate) fn returning() -> Self {
        Self::new(PriorityRule::Return)
    }

    /// Makes the state of the calling thread, which serves one client.
    pub(crate) fn keeping() -> Self {
        Self::new(PriorityRule::Keep)
    }

    /// Makes the state of the calling thread, which serves its own call.
    #[inline]
    pub(crate) fn of_caller(rt: &RtCore) -> Self {
        Self {
            rule: PriorityRule::Caller,
            resting: caller_policy(rt),
            now: CurrentPriority::Resting,
        }
    }

    fn new(rule: PriorityRule) -> Self {
        Self {
            rule,
            resting: current_policy(),
            now: CurrentPriority::Resting,
        }
    }

    /// Moves the calling thread to a lane of another priority.
    ///
    /// # Errors
    /// DATA_CONVERSION 2 or NO_PERMISSION, as for [`RtCurrent::set_the_priority`](crate::realtime::RtCurrent::set_the_priority);
    /// nothing has changed then.
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

    /// Returns true if the thread keeps one priority for all calls.
    #[inline]
    pub(super) fn has_priority(&self) -> bool {
        matches!(
            self.rule,
            PriorityRule::Lane(_) | PriorityRule::RoutedLane(_)
        )
    }

    /// Returns true if the thread serves a lane of another priority. The object's references have endpoints of the right lane.
    #[inline]
    pub(super) fn is_of_lane_without(&self, declared: Priority) -> bool {
        matches!(self.rule, PriorityRule::Lane(lane) if lane != declared)
    }

    /// Begins a call of an object without a priority model, or any call on a thread that keeps its priority.
    ///
    /// # Errors
    /// NO_PERMISSION if the host refuses the return from the priority of an earlier call.
    #[inline(always)]
    pub(super) fn begin_unprioritised(
        &mut self,
        rt: &RtCore,
    ) -> Result<UpcallPriority, SystemException> {
        if self.now != CurrentPriority::Resting {
            self.rest(rt)?;
        }
        Ok(match self.rule {
            PriorityRule::Lane(priority) | PriorityRule::RoutedLane(priority) => {
                UpcallPriority::set(priority)
            }
            PriorityRule::Return | PriorityRule::Caller | PriorityRule::Keep => {
                UpcallPriority::unchanged()
            }
        })
    }

    /// Begins a call with a priority.
    ///
    /// # Errors
    /// NO_PERMISSION if the host refuses that priority.
    #[inline]
    pub(super) fn begin(
        &mut self,
        rt: &RtCore,
        call: CallPriorities,
    ) -> Result<UpcallPriority, SystemException> {
        #[cfg(simulation)]
        let call = CallPriorities {
            native: if rtorb_os::simulation::is_planted("priority-not-taken") {
                0
            } else {
                call.native
            },
            ..call
        };
        if self.now != CurrentPriority::At(call.native) {
            self.take(rt, call.native)?;
        }
        Ok(UpcallPriority::set(call.priority))
    }

    /// Notes that the thread no longer has the priority of its call, so [`end`](Self::end) resets it.
    #[cold]
    pub(super) fn note_changed(&mut self) {
        self.now = CurrentPriority::Unknown;
    }

    /// Ends a call, whatever its outcome.
    #[inline(always)]
    pub(super) fn end(&mut self, rt: &RtCore, running: UpcallPriority) {
        if running.has_left_changes()
            && let Some(before) = end_changes(rt, running)
        {
            if self.is_resting_caller() {
                self.resting = before;
            }
            self.now = CurrentPriority::Unknown;
        }
        let goes_back = match self.now {
            CurrentPriority::Resting => false,
            CurrentPriority::At(_) => self.rule != PriorityRule::Keep,
            CurrentPriority::Unknown => true,
        };
        if goes_back {
            // If it fails, the next call tries again, and is refused.
            let _ = self.rest(rt);
        }
    }

    fn take(&mut self, rt: &RtCore, native: NativePriority) -> Result<(), SystemException> {
        if self.now == CurrentPriority::Resting && self.resting == rt.policy(native) {
            return Ok(());
        }
        if self.is_resting_caller() {
            // The application's thread: what is known of it may be out of date, and it must get back what it had.
            self.resting = undemoted_policy();
            if self.resting.priority() == native {
                return Ok(());
            }
        }
        rt.apply(native)?;
        self.now = CurrentPriority::At(native);
        Ok(())
    }

    /// Returns true for a client's thread that has not taken the priority of its call.
    fn is_resting_caller(&self) -> bool {
        self.rule == PriorityRule::Caller && self.now == CurrentPriority::Resting
    }

    fn rest(&mut self, rt: &RtCore) -> Result<(), SystemException> {
        #[cfg(simulation)]
        if rtorb_os::simulation::is_planted("priority-kept") {
            return Ok(());
        }
        rt.apply_policy(self.resting)?;
        self.now = CurrentPriority::Resting;
        Ok(())
    }
}

/// Ends what a servant has left changed on its thread: the segments that it began, and the priority that it set. Returns the scheduling that the
/// thread is to get back, if the priority was changed.
#[cold]
#[inline(never)]
pub(super) fn end_changes(rt: &RtCore, running: UpcallPriority) -> Option<SchedPolicy> {
    distributable::end_segments_beyond(running.segments());
    running.end_changes(rt)
}
