//! Started calls by generated code: results of every shape, exceptions, inherited operations, and names that yield.

use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use rtorb::rt::Priority;
use rtorb::{ConnectionStrategy, Orb, ReplyDriver, SystemException, WaitStrategy};
use rtorb_tests::crane::{MachineServant, Overload, Winch, WinchLiftError, WinchServant};
use rtorb_tests::ours::Ours;

#[derive(Default)]
pub(crate) struct Hoist(Mutex<f64>);

impl MachineServant for Hoist {
    fn hours(&self) -> Result<i32, SystemException> {
        Ok(41)
    }

    fn start_(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl WinchServant for Hoist {
    fn lift(&self, kilograms: i32, who: &str) -> Result<(i32, String), WinchLiftError> {
        if kilograms > 1000 {
            return Err(Overload { limit: 1000 }.into());
        }
        Ok((kilograms + 1, format!("lifted by {who}")))
    }

    fn nudge(&self, _: i32) -> Result<(), SystemException> {
        Ok(())
    }

    fn speed(&self) -> Result<f64, SystemException> {
        Ok(*self.0.lock().unwrap())
    }

    fn set_speed(&self, value: f64) -> Result<(), SystemException> {
        *self.0.lock().unwrap() = value;
        Ok(())
    }
}

/// A server, and the winch as a client with shared connections sees it.
fn winch() -> (Ours, Winch) {
    let ours = Ours::serve();
    let served: Winch = ours.poa.activate(Hoist::default()).unwrap();
    let orb = Orb::builder().connection(ConnectionStrategy::Multiplexed {
        wait: WaitStrategy::LeaderFollowers,
    });
    let object = orb.build().unwrap().string_to_object(&served.to_string());
    let winch = Winch::narrow(&object.unwrap()).unwrap();
    (ours, winch)
}

#[test]
fn each_operation_can_be_started() {
    let (_ours, winch) = winch();
    let lifted = winch.start().lift(7, "Ada");
    let overloaded = winch.start().lift(1001, "Ada");
    let hours = winch.start().hours();
    let begun = winch.start().start_();
    winch.start().set_speed(2.5).wait().unwrap();
    let speed = winch.start_at(Priority::new(3).unwrap()).speed();
    assert_eq!(lifted.wait(), Ok((8, "lifted by Ada".to_owned())));
    let refused = overloaded.wait().unwrap_err();
    assert_eq!(refused, WinchLiftError::from(Overload { limit: 1000 }));
    assert_eq!((hours.wait(), begun.wait()), (Ok(41), Ok(())));
    assert_eq!(speed.wait(), Ok(2.5));
    assert_eq!(winch.start_(), Ok(()), "the blocking form");
}

/// Runs a future on this thread, which reads its replies.
fn block_on<F: Future>(replies: &ReplyDriver, future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = replies.waker();
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return done;
        }
        let until = Instant::now() + Duration::from_secs(30);
        assert!(replies.run_once(Some(until)));
    }
}

#[test]
fn a_started_call_is_a_future() {
    let (_ours, winch) = winch();
    let replies = winch.as_object().orb().reply_driver().unwrap();
    let sum = block_on(&replies, async {
        let (one, other) = (winch.start().lift(1, "Ada"), winch.start().lift(2, "Bob"));
        Ok::<_, WinchLiftError>(other.await?.0 + one.await?.0)
    });
    assert_eq!(sum, Ok(5));
}
