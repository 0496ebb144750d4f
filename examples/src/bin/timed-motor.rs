//! Serves and turns a motor whose operations have times in IDL, and prints which call took longer.
#![forbid(unsafe_code)]
use rtorb::{Orb, SystemException};
use rtorb_os::clock::thread_cpu_ns;
use std::io::{Write, stdout};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc;
use std::thread;

rtorb::include_idl!("motor");
use robot::{Motor, MotorServant};

#[derive(Default)]
struct Joint {
    angle: AtomicI32,
}

impl MotorServant for Joint {
    /// Computes for 10 us a degree: by 720 degrees it is longer than the annotation says.
    fn turn(&self, degrees: i32) -> Result<(), SystemException> {
        let end_ns = thread_cpu_ns() + u64::from(degrees.unsigned_abs()) * 10_000;
        while thread_cpu_ns() < end_ns {}
        self.angle.fetch_add(degrees, Ordering::Relaxed);
        Ok(())
    }

    fn stop(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn angle(&self) -> Result<i32, SystemException> {
        Ok(self.angle.load(Ordering::Relaxed))
    }
}

fn main() -> anyhow::Result<()> {
    // The hook runs on the thread of the call: it only passes the violation to the thread that prints.
    let (sender, violations) = mpsc::sync_channel(16);
    let orb = Orb::builder()
        .on_timing_violation(move |violation| {
            let _ = sender.try_send(*violation);
        })
        .args(std::env::args())
        .build()?;
    let motor: Motor = orb.root_poa()?.activate(Joint::default())?;
    let server = orb.clone();
    let served = thread::spawn(move || server.run());
    for degrees in [45, 90, 720] {
        motor.turn(degrees)?;
    }
    writeln!(stdout(), "the motor is at {} degrees", motor.angle()?)?;
    let violation = violations.recv()?;
    writeln!(
        stdout(),
        "{}: {:?} of {:?} was {:?}, at the {:?}",
        violation.operation.name(),
        violation.kind,
        violation.limit,
        violation.observed,
        violation.side,
    )?;
    orb.shutdown();
    let _ = served.join();
    for counts in orb.timing() {
        writeln!(
            stdout(),
            "{} at the {:?}: {} calls, {} overruns, {} deadlines missed",
            counts.operation.name(),
            counts.side,
            counts.calls,
            counts.overruns,
            counts.deadline_misses,
        )?;
    }
    Ok(())
}
