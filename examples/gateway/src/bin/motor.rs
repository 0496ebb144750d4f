//! Serves a motor, each of whose turns is a task. It prints the motor's reference, and serves until it is stopped.
#![forbid(unsafe_code)]
use rtorb::rt::Priority;
use rtorb::thread::ThreadConfig;
use rtorb::{Deferring, DispatchStrategy, Orb, SystemException, TaskServant};
use rtorb_tokio::{TaskLane, TaskLanes};
use std::io::{Write as _, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

rtorb::include_idl!("plotter");
use plotter::{Motor, MotorAsyncServant};

/// The time that it needs for a degree.
const DEGREE: Duration = Duration::from_millis(1);

struct Stepper(AtomicI32);

impl MotorAsyncServant for Stepper {
    async fn turn(&self, degrees: i32) -> Result<i32, SystemException> {
        for _ in 0..degrees.unsigned_abs() {
            tokio::time::sleep(DEGREE).await;
            self.0.fetch_add(degrees.signum(), Ordering::Relaxed);
        }
        Ok(self.0.load(Ordering::Relaxed))
    }
}

fn main() -> anyhow::Result<()> {
    // One thread reads all requests, and one runs all turns.
    let lanes = TaskLanes::start(vec![TaskLane {
        priority: Priority::MIN,
        thread: ThreadConfig::default(),
    }])?;
    let orb = Orb::builder()
        .dispatch(DispatchStrategy::Reactive)
        .args(std::env::args())
        .build()?;
    let stepper = TaskServant::new(Arc::new(Stepper(AtomicI32::new(0))), lanes.executor());
    let motor: Motor = orb.root_poa()?.activate(Deferring(stepper))?;
    writeln!(stdout(), "{motor}")?;
    orb.run()?;
    Ok(())
}
