//! The scheduling service (RtecScheduler): rates, deadlines and criticalities to priorities, off line and at run time.
