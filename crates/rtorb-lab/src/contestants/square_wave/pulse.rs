//! Where edges come from, and what an output is: lines of GPIO, or without them a timer, and memory or a datagram.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

use rtorb_os::clock::{monotonic_ns, sleep_until};
use rustix::net::getpeername;
use serde::{Deserialize, Serialize};

use super::gpio;
use super::oscilloscope::Signal;
use super::{Edge, Wave};
use crate::contestants::rates::GOLDEN;
use crate::experiment::GpioLines;

/// What makes the pulse of one wave.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pulse {
    /// A timer of the kernel: the edge is the moment for which it is set, so that the time from there until the thread runs
    /// is in the latency, as the time from the input's interrupt is in P4's. The output is a word in the receiver's memory.
    #[default]
    Timer,
    /// The same timer. The output is a datagram to this port of the laboratory's host, where an oscilloscope receives it.
    Datagram(u16),
    /// A generator that is wired to an input line; the output is a line too.
    Gpio(GpioLines),
}

impl Pulse {
    /// The value of the label `pulse`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Timer | Self::Datagram(_) => "timer",
            Self::Gpio(_) => "gpio",
        }
    }

    /// The supplier's side of a wave.
    ///
    /// # Errors
    /// That the line cannot be taken.
    pub fn input(&self) -> Result<Input, String> {
        Ok(match self {
            Self::Timer | Self::Datagram(_) => Input::Timer,
            Self::Gpio(lines) => Input::Line(gpio::Input::open(lines)?),
        })
    }

    /// The receiver's side.
    ///
    /// # Errors
    /// That the line cannot be taken, or the laboratory is not at the other end of standard input.
    pub fn output(&self) -> Result<Output, String> {
        Ok(match self {
            Self::Timer => Output::Memory,
            Self::Datagram(port) => Output::Datagram(Datagrams::to(*port)?),
            Self::Gpio(lines) => Output::Line(gpio::Output::open(lines)?),
        })
    }
}

/// The supplier's side of a wave: what it waits on.
#[derive(Debug)]
pub enum Input {
    /// A timer.
    Timer,
    /// A line.
    Line(gpio::Input),
}

/// The edges of a run, one after another. The first one rises.
#[derive(Debug)]
pub struct Edges<'a> {
    input: &'a Input,
    wave: &'a Wave,
    begin_ns: u64,
    end_ns: u64,
    count: u64,
}

impl Input {
    /// The edges from `begin_ns` on until `duration_ns` later.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn edges<'a>(
        &'a self,
        wave: &'a Wave,
        begin_ns: u64,
        duration_ns: u64,
    ) -> Result<Edges<'a>, String> {
        if let Self::Line(line) = self {
            sleep_until(begin_ns);
            line.forget()?;
        }
        Ok(Edges {
            input: self,
            wave,
            begin_ns,
            end_ns: begin_ns + duration_ns,
            count: 0,
        })
    }
}

impl Edges<'_> {
    /// Sleeps until the next edge; `None` when there is none any more in this run. Who comes late gets the edges that are
    /// over one after another, each with its own moment.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn wait(&mut self) -> Result<Option<Edge>, String> {
        match self.input {
            Input::Timer => {
                let edge = timer_edge(self.wave, self.begin_ns, self.count);
                if edge.at_ns > self.end_ns {
                    return Ok(None);
                }
                if monotonic_ns() < edge.at_ns {
                    sleep_until(edge.at_ns);
                }
                self.count += 1;
                Ok(Some(edge))
            }
            Input::Line(line) => loop {
                match line.wait(self.end_ns)? {
                    // The output is 0: to set it to 0 would change nothing.
                    Some(Edge { level: 0, .. }) if self.count == 0 => {}
                    Some(edge) => {
                        self.count += 1;
                        return Ok(Some(edge));
                    }
                    None => return Ok(None),
                }
            },
        }
    }
}

/// The edge of this number, from 0 on: one in each period, before its end by a lead that is spread evenly.
fn timer_edge(wave: &Wave, begin_ns: u64, number: u64) -> Edge {
    let lead_ns = (number as f64 * GOLDEN).fract() * wave.lead_ns_max as f64;
    Edge {
        at_ns: begin_ns + (number + 1) * wave.period_ns - lead_ns as u64,
        level: (number + 1) % 2,
    }
}

/// The receiver's side: what its servant sets.
#[derive(Debug)]
pub enum Output {
    /// A word of memory that the servant writes anyway.
    Memory,
    /// A datagram for each change.
    Datagram(Datagrams),
    /// A line.
    Line(gpio::Output),
}

impl Output {
    /// Sets it, and answers when it was set.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn set(&self, level: u64) -> Result<u64, String> {
        match self {
            Self::Memory => {}
            Self::Datagram(datagrams) => datagrams
                .send(level)
                .map_err(|error| format!("the datagram was not sent: {error}"))?,
            Self::Line(line) => line.set(level)?,
        }
        Ok(monotonic_ns())
    }

    /// How many datagrams were sent: the number of the next one.
    #[must_use]
    pub fn sent(&self) -> u64 {
        match self {
            Self::Datagram(datagrams) => datagrams.sent.load(Ordering::Relaxed),
            Self::Memory | Self::Line(_) => 0,
        }
    }

    /// The changes that something else than the servant saw since it was asked last; `None` where nothing else looks.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn monitored(&self) -> Result<Option<Vec<Edge>>, String> {
        match self {
            Self::Memory | Self::Datagram(_) => Ok(None),
            Self::Line(line) => line.monitored(),
        }
    }
}

/// The way of the output's changes to the oscilloscope.
#[derive(Debug)]
pub struct Datagrams {
    socket: UdpSocket,
    sent: AtomicU64,
}

impl Datagrams {
    /// To this port of the host at the other end of standard input: an agent gives a server the laboratory's connection there, so that no
    /// laboratory can make a server send to any other host.
    fn to(port: u16) -> Result<Self, String> {
        let laboratory = getpeername(io::stdin().as_fd())
            .ok()
            .and_then(|address| SocketAddr::try_from(address?).ok())
            .ok_or("standard input is no connection from a laboratory")?;
        Self::between(laboratory, port).map_err(|error| error.to_string())
    }

    fn between(laboratory: SocketAddr, port: u16) -> io::Result<Self> {
        let any = if laboratory.is_ipv4() {
            "0.0.0.0:0"
        } else {
            "[::]:0"
        };
        let socket = UdpSocket::bind(any)?;
        socket.connect(SocketAddr::new(laboratory.ip(), port))?;
        Ok(Self {
            socket,
            sent: AtomicU64::new(0),
        })
    }

    fn send(&self, level: u64) -> io::Result<()> {
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        self.socket
            .send(&Signal { number, level }.octets())
            .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::child::{value, word};

    fn wave(lead_ns_max: u64) -> Wave {
        Wave {
            receiver: 0,
            priority: 0,
            period_ns: 1_000_000,
            lead_ns_max,
        }
    }

    #[test]
    fn a_pulse_is_read_back() {
        let lines = "/dev/gpiochip0:1:2:3".parse().unwrap();
        for pulse in [Pulse::Timer, Pulse::Datagram(4_000), Pulse::Gpio(lines)] {
            let text = word(&pulse);
            assert!(!text.contains(['\n', ' ']), "{text}");
            assert_eq!(value(&text), Ok(pulse));
        }
        for text in [
            r#""Pigeon""#,
            r#"{"Datagram":"x"}"#,
            r#"{"Datagram":70000}"#,
        ] {
            assert!(value::<Pulse>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn edges_alternate_and_come_once_a_period() {
        let edges: Vec<Edge> = (0..3)
            .map(|number| timer_edge(&wave(0), 5, number))
            .collect();
        assert_eq!(edges.iter().map(|edge| edge.level).sum::<u64>(), 2);
        assert_eq!(
            edges.iter().map(|edge| edge.at_ns).collect::<Vec<_>>(),
            [1_000_005, 2_000_005, 3_000_005]
        );
    }

    #[test]
    fn leads_are_spread_evenly() {
        let leads: Vec<u64> = (0..1_000)
            .map(|number| (number + 1) * 1_000_000 - timer_edge(&wave(100_000), 0, number).at_ns)
            .collect();
        for tenth in 0..10u64 {
            let within = tenth * 10_000..(tenth + 1) * 10_000;
            let count = leads.iter().filter(|lead| within.contains(lead)).count();
            assert!((90..110).contains(&count), "{count} in {within:?}");
        }
    }

    #[test]
    fn a_timer_makes_the_edges_of_a_run_and_none_comes_early() {
        let wave = wave(500_000);
        let input = Pulse::Timer.input().unwrap();
        let mut edges = input.edges(&wave, monotonic_ns(), 10_000_000).unwrap();
        let mut count = 0;
        while let Some(edge) = edges.wait().unwrap() {
            assert!(monotonic_ns() >= edge.at_ns);
            count += 1;
        }
        assert_eq!(count, 10);
    }
}
