//! The calls that warm all threads of a lane, which are all in progress at the same time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rtorb::Orb;
use rtorb::thread::ThreadConfig;
use rtorb_os::thread::spawn;

use super::idl::model::Behaviour;
use super::servant::Performer;
use crate::contestants::event_channel::rtec::take_priority;

/// Has all threads of a lane open their ways, by as many calls at once; `in_all` have been made then, with those to other lanes.
///
/// # Errors
/// That not all of them were reached.
pub(super) fn gather(
    (orb, performer): (&Orb, &Arc<Performer>),
    gatherer: &Behaviour,
    (priority, threads): (u8, u32),
    in_all: u32,
) -> Result<(), String> {
    let levels = performer.plan.levels;
    let by_deadline = levels.is_some_and(|levels| levels.lowest == priority);
    let call = |number: u32| {
        let orb = orb.clone();
        let gatherer = if by_deadline {
            // Each is more urgent than those before it: it takes the next level.
            gatherer.with_end_time(Instant::now() + PATIENCE + STEP * (threads - number))
        } else {
            gatherer.clone()
        };
        let call = move || {
            take_priority(&orb, priority)?;
            gatherer
                .gather(in_all)
                .map_err(|exception| exception.to_string())
        };
        let call = spawn("gather", &ThreadConfig::default(), call);
        let call = call.map_err(|refused| refused.to_string())?;
        if by_deadline {
            let begun = performer.await_gathered(in_all - threads + number + 1);
            begun.map_err(|_| format!("level {number} of lane {priority} was not reached"))?;
        }
        Ok(call)
    };
    let calls = (0..threads).map(call);
    let calls: Vec<_> = calls.collect::<Result<_, String>>()?;
    for call in calls {
        let ended = call.join().ok().flatten().ok_or("a thread panicked")?;
        ended.map_err(|what| {
            format!("the {threads} threads of lane {priority} were not all reached: {what}")
        })?;
    }
    Ok(())
}

/// Longer than all calls of a lane take.
const PATIENCE: Duration = Duration::from_secs(8);
/// Between two deadlines: far more than the time between two calls.
const STEP: Duration = Duration::from_secs(4);
