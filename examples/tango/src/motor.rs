//! An example: a motor that turns with a constant speed, as a device of Tango.

use std::collections::VecDeque;

use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::Mutex;

use crate::attribute::Attribute;
use crate::class::{Class, Model};
use crate::command::Command;
use crate::failure::failed;
use crate::tango::{AttrQuality, DevFailed, DevState, DevVarDoubleStringArray};

/// A motor. It moves while nobody looks, because its position is computed from the time.
#[derive(Debug)]
pub struct Motor {
    motion: Mutex<Motion>,
}

#[derive(Debug)]
struct Motion {
    is_powered: bool,
    speed: f64,
    moves: i32,
    comment: String,
    waypoints: Vec<f64>,
    log: VecDeque<String>,
    begin: f64,
    begin_ns: u64,
    target: f64,
}

impl Motion {
    /// Switched off, at 0 degrees.
    fn new() -> Self {
        Self {
            is_powered: false,
            speed: 90.0,
            moves: 0,
            comment: String::new(),
            waypoints: Vec::new(),
            log: VecDeque::new(),
            begin: 0.0,
            begin_ns: monotonic_ns(),
            target: 0.0,
        }
    }

    fn position(&self) -> f64 {
        let elapsed = (monotonic_ns() - self.begin_ns) as f64 / 1e9;
        let way = self.target - self.begin;
        if elapsed * self.speed >= way.abs() {
            self.target
        } else {
            self.begin + way.signum() * elapsed * self.speed
        }
    }

    fn is_moving(&self) -> bool {
        self.position() != self.target
    }

    fn turn_to(&mut self, degrees: f64) {
        self.begin = self.position();
        self.begin_ns = monotonic_ns();
        self.target = degrees;
    }

    fn note(&mut self, text: String) {
        if self.log.len() == usize::from(LOG_MAX) {
            self.log.pop_front();
        }
        self.log.push_back(text);
    }
}

impl Default for Motor {
    fn default() -> Self {
        Self {
            motion: Mutex::new(Motion::new()),
        }
    }
}

impl Motor {
    fn switch(&self, is_powered: bool) {
        let mut motion = self.motion.lock();
        let position = motion.position();
        motion.turn_to(position);
        motion.is_powered = is_powered;
        motion.note(if is_powered { "on" } else { "off" }.to_owned());
    }

    fn move_to(&self, degrees: f64) -> Result<(), DevFailed> {
        if !(-DEGREES_MAX..=DEGREES_MAX).contains(&degrees) {
            let desc = format!("{degrees} degrees is beyond {DEGREES_MAX} degrees");
            return Err(failed("Motor_OutOfRange", desc, "Motor::move_to"));
        }
        let mut motion = self.motion.lock();
        if !motion.is_powered {
            let desc = "The motor is off: execute On first";
            return Err(failed("Motor_Off", desc, "Motor::move_to"));
        }
        motion.turn_to(degrees);
        motion.moves = motion.moves.saturating_add(1);
        motion.note(format!("to {degrees}\u{b0}"));
        Ok(())
    }

    fn stop(&self) {
        let mut motion = self.motion.lock();
        let position = motion.position();
        motion.turn_to(position);
        motion.note("stop".to_owned());
    }

    fn set_speed(&self, speed: f64) {
        let mut motion = self.motion.lock();
        let target = motion.target;
        motion.turn_to(target);
        motion.speed = speed;
    }

    /// The seconds after which a motor that starts now has reached each position.
    fn scan(&self, positions: &[f64]) -> Vec<f64> {
        let motion = self.motion.lock();
        let mut place = motion.position();
        let mut seconds = 0.0;
        let mut reached = Vec::with_capacity(positions.len());
        for position in positions {
            seconds += (position - place).abs() / motion.speed;
            place = *position;
            reached.push(seconds);
        }
        reached
    }

    fn summary(&self) -> DevVarDoubleStringArray {
        let motion = self.motion.lock();
        DevVarDoubleStringArray {
            dvalue: vec![motion.position(), motion.target, motion.speed],
            svalue: ["position", "target", "speed"].map(str::to_owned).to_vec(),
        }
    }
}

impl Model for Motor {
    fn state(&self) -> DevState {
        let motion = self.motion.lock();
        match (motion.is_powered, motion.is_moving()) {
            (false, _) => DevState::Off,
            (true, true) => DevState::Moving,
            (true, false) => DevState::On,
        }
    }

    fn status(&self) -> String {
        let motion = self.motion.lock();
        let position = motion.position();
        if !motion.is_powered {
            return format!("off at {position:.1} degrees");
        }
        if motion.is_moving() {
            return format!(
                "at {position:.1} degrees, on the way to {:.1} degrees",
                motion.target
            );
        }
        format!("at rest at {position:.1} degrees")
    }

    fn init(&self) -> Result<(), DevFailed> {
        *self.motion.lock() = Motion::new();
        Ok(())
    }
}

/// The class of a motor.
#[must_use]
pub fn class() -> Class<Motor> {
    let class = Class::new("RtorbMotor", "A motor that turns with a constant speed");
    let class = class
        .attribute(
            Attribute::writable(
                "position",
                |motor: &Motor| Ok(motor.motion.lock().position()),
                Motor::move_to,
            )
            .unit("deg")
            .description("The angle; writing it starts a move")
            .range(-DEGREES_MAX, DEGREES_MAX)
            .quality(|motor| {
                if motor.motion.lock().is_moving() {
                    AttrQuality::AttrChanging
                } else {
                    AttrQuality::AttrValid
                }
            }),
        )
        .attribute(
            Attribute::writable(
                "speed",
                |motor: &Motor| Ok(motor.motion.lock().speed),
                |motor, speed| {
                    motor.set_speed(speed);
                    Ok(())
                },
            )
            .unit("deg/s")
            .range(1.0, 3600.0),
        )
        .attribute(
            Attribute::readable("moves", |motor: &Motor| Ok(motor.motion.lock().moves))
                .description("Moves since the start"),
        )
        .attribute(Attribute::writable(
            "powered",
            |motor: &Motor| Ok(motor.motion.lock().is_powered),
            |motor, is_powered| {
                motor.switch(is_powered);
                Ok(())
            },
        ))
        .attribute(Attribute::writable(
            "comment",
            |motor: &Motor| Ok(motor.motion.lock().comment.clone()),
            |motor, comment| {
                motor.motion.lock().comment = comment;
                Ok(())
            },
        ))
        .attribute(
            Attribute::writable(
                "waypoints",
                |motor: &Motor| Ok(motor.motion.lock().waypoints.clone()),
                |motor, waypoints| {
                    motor.motion.lock().waypoints = waypoints;
                    Ok(())
                },
            )
            .elements_max(64)
            .range(-DEGREES_MAX, DEGREES_MAX),
        )
        .attribute(
            Attribute::readable("log", |motor: &Motor| {
                Ok(Vec::from(motor.motion.lock().log.clone()))
            })
            .elements_max(LOG_MAX),
        );
    with_commands(class)
}

fn with_commands(class: Class<Motor>) -> Class<Motor> {
    class
        .command(Command::new("On", |motor: &Motor, ()| {
            motor.switch(true);
            Ok(())
        }))
        .command(Command::new("Off", |motor: &Motor, ()| {
            motor.switch(false);
            Ok(())
        }))
        .command(
            Command::new("Stop", |motor: &Motor, ()| {
                motor.stop();
                Ok(())
            })
            .only_in(&[DevState::Moving, DevState::On]),
        )
        .command(
            Command::new("MoveTo", Motor::move_to)
                .input("The angle in degrees")
                .only_in(&[DevState::Moving, DevState::On]),
        )
        .command(
            Command::new("Scan", |motor: &Motor, positions: Vec<f64>| {
                Ok(motor.scan(&positions))
            })
            .input("Angles in degrees")
            .output("The seconds until each is reached, one after the other"),
        )
        .command(
            Command::new("Echo", |_: &Motor, text: String| Ok(text))
                .input("A text")
                .output("The same text"),
        )
        .command(
            Command::new("Summary", |motor: &Motor, ()| Ok(motor.summary()))
                .output("Position, target and speed, and these words"),
        )
}

const DEGREES_MAX: f64 = 180.0;
const LOG_MAX: u16 = 16;
