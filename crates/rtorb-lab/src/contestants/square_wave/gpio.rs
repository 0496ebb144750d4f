//! Real lines, through the kernel's character device for GPIO (Documentation/userspace-api/gpio/chardev.rst, version 2).
//!
//! An edge is stamped by the kernel's interrupt handler, by CLOCK_MONOTONIC, before anything is woken.

use std::time::Duration;

use gpiocdev::Request;
use gpiocdev::line::{EdgeDetection, EdgeKind, EventClock, Value};
use rtorb_os::clock::monotonic_ns;

use super::{EDGES_MAX, Edge};
use crate::experiment::GpioLines;

/// An input whose edges are waited for.
#[derive(Debug)]
pub struct Input {
    request: Request,
}

impl Input {
    /// Takes the line.
    ///
    /// # Errors
    /// What the kernel said, with the line and what to look at.
    pub fn open(lines: &GpioLines) -> Result<Self, String> {
        let request = watch(lines, lines.input)?;
        Ok(Self { request })
    }

    /// Forgets the edges until now.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn forget(&self) -> Result<(), String> {
        events(&self.request, |_| ())
    }

    /// Sleeps until the next edge, or until `end_ns`.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn wait(&self, end_ns: u64) -> Result<Option<Edge>, String> {
        let left = Duration::from_nanos(end_ns.saturating_sub(monotonic_ns()));
        let told = |error: gpiocdev::Error| error.to_string();
        if !self.request.wait_edge_event(left).map_err(told)? {
            return Ok(None);
        }
        let event = self.request.read_edge_event().map_err(told)?;
        // Of edges that come faster than they are served there is always a next one.
        Ok((event.timestamp_ns <= end_ns).then(|| Edge {
            at_ns: event.timestamp_ns,
            level: level(event.kind),
        }))
    }
}

/// An output, and the input that is wired to it, if there is one.
#[derive(Debug)]
pub struct Output {
    request: Request,
    monitor: Option<Request>,
}

impl Output {
    /// Takes the lines; the output is 0 then.
    ///
    /// # Errors
    /// As [`Input::open`].
    pub fn open(lines: &GpioLines) -> Result<Self, String> {
        let request = Request::builder()
            .on_chip(&lines.chip)
            .with_consumer(CONSUMER)
            .with_line(lines.output)
            .as_output(Value::Inactive)
            .request()
            .map_err(|error| refused(lines, lines.output, &error))?;
        let monitor = lines
            .monitor
            .map(|offset| watch(lines, offset))
            .transpose()?;
        Ok(Self { request, monitor })
    }

    /// Sets the output.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn set(&self, level: u64) -> Result<(), String> {
        let value = match level {
            0 => Value::Inactive,
            _ => Value::Active,
        };
        let set = self.request.set_lone_value(value);
        set.map_err(|error| error.to_string())
    }

    /// The changes that the monitor saw since it was asked last; `None` without a monitor.
    ///
    /// The kernel keeps [`MONITORED_MAX`] of them, so that nothing has to run for the monitor while calls are measured.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn monitored(&self) -> Result<Option<Vec<Edge>>, String> {
        let Some(monitor) = &self.monitor else {
            return Ok(None);
        };
        let mut seen = Vec::new();
        events(monitor, |edge| seen.push(edge))?;
        Ok(Some(seen))
    }
}

fn watch(lines: &GpioLines, offset: u32) -> Result<Request, String> {
    Request::builder()
        .on_chip(&lines.chip)
        .with_consumer(CONSUMER)
        .with_kernel_event_buffer_size(MONITORED_MAX)
        .with_line(offset)
        .as_input()
        .with_edge_detection(EdgeDetection::BothEdges)
        .with_event_clock(EventClock::Monotonic)
        .request()
        .map_err(|error| refused(lines, offset, &error))
}

/// Takes what has come until now.
fn events(request: &Request, mut take: impl FnMut(Edge)) -> Result<(), String> {
    let told = |error: gpiocdev::Error| error.to_string();
    for _ in 0..EDGES_MAX {
        if !request.has_edge_event().map_err(told)? {
            return Ok(());
        }
        let event = request.read_edge_event().map_err(told)?;
        take(Edge {
            at_ns: event.timestamp_ns,
            level: level(event.kind),
        });
    }
    Err("edges come faster than they can be read".to_owned())
}

fn level(kind: EdgeKind) -> u64 {
    u64::from(kind == EdgeKind::Rising)
}

fn refused(lines: &GpioLines, offset: u32, error: &gpiocdev::Error) -> String {
    let chip = lines.chip.display();
    format!(
        "line {offset} of {chip} cannot be taken: {error}; `ls /dev/gpiochip*` lists the chips, and reading and writing them must \
         be allowed"
    )
}

const CONSUMER: &str = "rtorb";
/// The most that the kernel keeps for a line: 16 for each of the 64 that a request may have.
pub const MONITORED_MAX: u32 = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chip_that_is_not_there_is_named() {
        let lines: GpioLines = "rtorb-no-such-chip:3:4:5".parse().unwrap();
        let input = Input::open(&lines).map(drop).unwrap_err();
        let output = Output::open(&lines).map(drop).unwrap_err();
        for (error, line) in [(input, "line 3"), (output, "line 4")] {
            assert!(error.contains(line), "{error}");
            assert!(error.contains("/dev/rtorb-no-such-chip"), "{error}");
        }
    }
}
