//! Turns three motors at once, by tasks on one real-time thread, without an async runtime.
//!
//! `block-on [--best-effort]`: with the option, the thread has no priority.
#![forbid(unsafe_code)]
use rtorb::thread::{SchedPolicy, ThreadConfig};
use rtorb::{ConnectionStrategy, Orb, ReplyDriver, SystemException, WaitStrategy};
use rtorb_examples::{Serving, server};
use std::io::{Write as _, stdout};
use std::pin::pin;
use std::sync::atomic::{AtomicI32, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

rtorb::include_idl!("plotter");
use plotter::{Motor, MotorServant};

const PRIORITY: u8 = 40;

struct Stepper(AtomicI32);

impl MotorServant for Stepper {
    fn turn(&self, degrees: i32) -> Result<i32, SystemException> {
        Ok(self.0.fetch_add(degrees, Ordering::Relaxed) + degrees)
    }
}

/// Runs a future on the calling thread, which reads the replies that it waits for.
fn block_on<F: Future>(replies: &ReplyDriver, future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = replies.waker();
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return done;
        }
        replies.run_once(None);
    }
}

/// Turns all motors at once, and returns the sum of their positions.
async fn turn_all(motors: &[Motor], degrees: i32) -> Result<i32, SystemException> {
    let calls: Vec<_> = motors.iter().map(|it| it.start().turn(degrees)).collect();
    let mut sum = 0;
    for call in calls {
        sum += call.await?;
    }
    Ok(sum)
}

fn main() -> anyhow::Result<()> {
    let is_best_effort = std::env::args().any(|it| it == "--best-effort");
    let server = server("block-on").build()?;
    let root = server.root_poa()?;
    let serving = Serving::start(&server);
    let shared = ConnectionStrategy::Multiplexed {
        wait: WaitStrategy::LeaderFollowers,
    };
    let client = Orb::builder().connection(shared).build()?;
    let mut motors = Vec::new();
    for _ in 0..3 {
        let motor: Motor = root.activate(Stepper(AtomicI32::new(0)))?;
        let motor: Motor = client.string_to_reference(&motor.to_string())?;
        motor.as_object().validate_connection()?;
        motors.push(motor.with_deadline(Duration::from_secs(5)));
    }
    let replies = client.reply_driver()?;
    let config = ThreadConfig {
        policy: (!is_best_effort).then_some(SchedPolicy::Fifo(PRIORITY)),
        ..ThreadConfig::default()
    };
    let turning = move || block_on(&replies, turn_all(&motors, 90));
    let thread = rtorb_os::thread::spawn("plotter", &config, turning)?;
    let sum = thread.join().expect("no panic");
    writeln!(
        stdout(),
        "the motors stand at {} degrees together",
        sum.expect("it ends")?
    )?;
    serving.end()
}
