//! What the hidden subcommand `child` does: this program again, as one of the processes that are measured.
//!
//! ```text
//! rtorb child --parent PID [--cpu N] [--fifo PRIORITY] ROLE ARGUMENT...
//! ```
//!
//! A child first takes the placement that it is told, then plays its role: a server prints `ready ADDRESS` and serves
//! until its standard input ends; a client prints `ready` and answers bursts ([`crate::contestants::burst`]).

use std::io::{self, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use rtorb::rt::{Policy, Priority, PriorityModel, ThreadpoolLane};
use rtorb::{Orb, PoaPolicies, Strategies};
use rtorb_host::placement::Placement;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use crate::contestants::burst;
use crate::contestants::cubit::{Bench, Server, Serving};
use crate::contestants::demux::{self, Kind};
use crate::contestants::event_channel::channel::Server as ChannelServer;
use crate::contestants::event_channel::consumers::Consumers;
use crate::contestants::event_channel::supplier::Supplier as EventSupplier;
use crate::contestants::ping_pong::{futex, tcp, unix};
use crate::contestants::rates;
use crate::contestants::rates::server::RateObject;
use crate::contestants::square_wave::pulse::Pulse;
use crate::contestants::square_wave::receiver::Receiver;
use crate::contestants::square_wave::supplier::Supplier;
use crate::contestants::square_wave::system::NO_CHANNEL;
use crate::contestants::whitebox::clients::Clients;
use crate::contestants::whitebox::{self, Priorities};
use crate::experiments::orb_footprint::clients as idle;
use crate::experiments::own_program;
use crate::inspect::ping::client_orb;
use crate::model::component::Component;
use crate::model::watcher::Watchers;
use crate::processes::load;
use crate::processes::probe;

/// Plays the role that the arguments after `child` name. What goes wrong is told to the laboratory on standard output.
#[must_use]
pub fn run(arguments: &[String]) -> ExitCode {
    match parse(arguments)
        .and_then(|(parent, placement, role)| begin(parent, &placement).and_then(|()| play(role)))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The laboratory may be gone, and then nobody wants to hear it.
            let _ = writeln!(io::stdout(), "error {}", error.replace('\n', " "));
            ExitCode::FAILURE
        }
    }
}

fn parse(arguments: &[String]) -> Result<(i32, Placement, &[String]), String> {
    let mut placement = Placement::default();
    let mut parent = 0;
    let mut rest = arguments;
    while let [option, value, tail @ ..] = rest
        && option.starts_with("--")
    {
        let number: i32 = value
            .parse()
            .map_err(|_| format!("{option} takes a number, not {value:?}"))?;
        match option.as_str() {
            "--parent" => parent = number,
            "--cpu" => placement.cpu = usize::try_from(number).ok(),
            "--fifo" => placement.fifo = u8::try_from(number).ok(),
            _ => return Err(format!("a child has no option {option}")),
        }
        rest = tail;
    }
    Ok((parent, placement, rest))
}

/// Ties this process's life to the laboratory's and takes the placement. Both survive `exec`.
fn begin(parent: i32, placement: &Placement) -> Result<(), String> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.to_string())?;
    // It may have died before the line above; then nobody would ever send the signal.
    if getppid() != Pid::from_raw(parent) {
        return Err("the laboratory that started this process is gone".to_owned());
    }
    placement.apply()
}

fn play(role: &[String]) -> Result<(), String> {
    let words: Vec<&str> = role.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["exec", program, ref arguments @ ..] => Err(Command::new(program).args(arguments).exec()),
        [own_program::ROLE, file, seed] => Err(own_program::become_program(file, seed)),
        ["tool", program, ref arguments @ ..] => Err(exec_tool(program, arguments)),
        ["raw-server" | "raw-client", ..] => raw(&words),
        ["cubit-server", endpoint] => cubit_server(endpoint),
        ["declared-lane-server", endpoint, priority] => {
            lane_server(endpoint, PriorityModel::ServerDeclared, number(priority)?)
        }
        ["propagated-lane-server", endpoint, priority] => {
            lane_server(endpoint, PriorityModel::ClientPropagated, number(priority)?)
        }
        ["cubit-client", reference] => cubit_client(reference),
        ["load", ref role @ ..] => load::own::play(role),
        ["probe"] => {
            ready("");
            probe::serve(BufReader::new(io::stdin()), io::stdout())
        }
        ["demux-server", endpoint, operations, objects] => {
            demux_server(endpoint, kind(operations)?, number(objects)?)
        }
        ["demux-client", operations, ref references @ ..] => {
            demux_client(kind(operations)?, references)
        }
        ["rate-server", endpoint, preset, ref objects @ ..] => {
            let objects: Vec<RateObject> = objects
                .iter()
                .map(|object| object.parse())
                .collect::<Result<_, _>>()?;
            return rates::server::Server::open(endpoint, preset, &objects)?.run(ready);
        }
        ["rate-clients", preset, ref references @ ..] => {
            let clients = rates::clients::Clients::open(preset, references)?;
            ready("");
            clients.serve()
        }
        ["put", ref role @ ..] => return put(role),
        ["events", ref role @ ..] => return events(role),
        ["model", ref role @ ..] => return model(role),
        ["idle-orb", preset] => return idle_orb(preset),
        ["idle-clients", preset, reference] => idle_clients(preset, reference)?.serve(),
        ["whitebox-server", preset, low, high] => {
            return whitebox_server(preset, priorities(low, high)?);
        }
        [
            "whitebox-clients",
            preset,
            low,
            high,
            low_object,
            high_object,
        ] => {
            let references = [low_object, high_object];
            whitebox_clients(preset, priorities(low, high)?, references)?.serve()
        }
        _ => return Err(format!("a child has no role {words:?}")),
    };
    done.map_err(|error| format!("{}: {error}", words.join(" ")))
}

/// One end of the exchange of octets without an ORB.
fn raw(role: &[&str]) -> io::Result<()> {
    let ends_with_input = || end_with_input().map_err(io::Error::other);
    match *role {
        ["raw-server", "tcp", address] => {
            ends_with_input().and_then(|()| tcp::serve(address, ready))
        }
        ["raw-server", "unix", path] => {
            ends_with_input().and_then(|()| unix::serve(Path::new(path), ready))
        }
        ["raw-server", "futex", path] => {
            ends_with_input().and_then(|()| futex::serve(Path::new(path), ready))
        }
        ["raw-client", "tcp", address] => {
            tcp::connect(address).and_then(|mut client| answer(|burst| client.burst(burst)))
        }
        ["raw-client", "unix", path] => unix::connect(Path::new(path))
            .and_then(|mut client| answer(|burst| client.burst(burst))),
        ["raw-client", "futex", path] => futex::FutexClient::connect(Path::new(path))
            .and_then(|mut client| answer(|burst| client.burst(burst))),
        _ => Err(io::Error::other("there is no such exchange")),
    }
}

/// Becomes a program whose complaints go where the laboratory reads its output, and not between the progress on the terminal.
pub(crate) fn exec_tool(program: &str, arguments: &[&str]) -> io::Error {
    match io::stdout().as_fd().try_clone_to_owned() {
        Ok(output) => Command::new(program)
            .args(arguments)
            .stderr(Stdio::from(output))
            .exec(),
        Err(error) => error,
    }
}

fn cubit_server(endpoint: &str) -> io::Result<()> {
    let serving = Serving {
        listen: vec![endpoint.to_owned()],
        ..Serving::default()
    };
    serve_cubit(&Server::open(serving).map_err(io::Error::other)?)
}

/// One lane of one thread and an object of its priority.
fn lane_server(endpoint: &str, model: PriorityModel, priority: usize) -> io::Result<()> {
    let number = i16::try_from(priority).map_err(io::Error::other)?;
    let priority = Priority::new(number).map_err(io::Error::other)?;
    let lane = ThreadpoolLane {
        lane_priority: priority,
        static_threads: 1,
        dynamic_threads: 0,
    };
    let policies = PoaPolicies::default().with(Policy::PriorityModel {
        model,
        server_priority: priority,
    });
    let builder = Orb::builder()
        .strategies(Strategies::TAO)
        .lanes([lane])
        .listen(endpoint);
    let server = builder.and_then(|builder| Server::with(builder, policies));
    serve_cubit(&server.map_err(io::Error::other)?)
}

fn serve_cubit(server: &Server) -> io::Result<()> {
    end_with_input().map_err(io::Error::other)?;
    ready(server.reference());
    server.run().map_err(io::Error::other)
}

fn cubit_client(reference: &str) -> io::Result<()> {
    let orb = client_orb(CALL_TIMEOUT).map_err(io::Error::other)?;
    let object = orb.string_to_object(reference).map_err(io::Error::other)?;
    let bench = Bench::new(&object).map_err(io::Error::other)?;
    answer(|burst| bench.burst(burst))
}

fn demux_server(endpoint: &str, kind: Kind, objects: usize) -> io::Result<()> {
    let server = demux::Server::open(endpoint, kind, objects).map_err(io::Error::other)?;
    end_with_input().map_err(io::Error::other)?;
    ready(&server.references().join(" "));
    server.run().map_err(io::Error::other)
}

fn demux_client(kind: Kind, references: &[&str]) -> io::Result<()> {
    let orb = client_orb(CALL_TIMEOUT).map_err(io::Error::other)?;
    let client = demux::Client::new(&orb, kind, references).map_err(io::Error::other)?;
    answer(|burst| client.burst(burst))
}

/// One of those from a digital input to a digital output ([`crate::contestants::square_wave`]).
fn put(role: &[&str]) -> Result<(), String> {
    match *role {
        ["receiver", endpoint, priority, pulse, channel, source] => {
            put_receiver((endpoint, priority, pulse), (channel, source))
        }
        ["supplier", channel, ref receivers @ ..] => put_supplier(channel, receivers)?
            .serve()
            .map_err(|error| error.to_string()),
        _ => Err(format!("a child has no role put {role:?}")),
    }
}

fn put_receiver(
    (endpoint, priority, pulse): (&str, &str, &str),
    (channel, source): (&str, &str),
) -> Result<(), String> {
    let receiver = Receiver::open(endpoint, small(priority)?, &pulse.parse()?)?;
    let receiver = match channel {
        NO_CHANNEL => receiver,
        _ => receiver.with_events(channel, small(source)?)?,
    };
    // What is refused, the host's findings tell.
    let _ = rtorb_os::memory::lock_all();
    receiver.run(ready)
}

/// Of each receiver the pulse and the reference.
fn put_supplier(channel: &str, receivers: &[&str]) -> Result<Supplier, String> {
    let receivers = receivers.as_chunks::<2>().0.iter();
    let receivers: Vec<(Pulse, &str)> = receivers
        .map(|[pulse, reference]| Ok((pulse.parse()?, *reference)))
        .collect::<Result<_, String>>()?;
    let supplier = Supplier::open(&receivers)?;
    let supplier = match channel {
        NO_CHANNEL => supplier,
        _ => supplier.with_channel(channel),
    };
    let _ = rtorb_os::memory::lock_all();
    ready("");
    Ok(supplier)
}

/// One of those whose events go through the event channel ([`crate::contestants::event_channel`]).
fn events(role: &[&str]) -> Result<(), String> {
    // What is refused, the host's findings tell.
    let _ = rtorb_os::memory::lock_all();
    match *role {
        ["channel", endpoint, served] => {
            ChannelServer::open(endpoint, &served.parse()?)?.run(ready)
        }
        ["consumers", endpoint, channel, subscribers] => {
            Consumers::open(endpoint, channel, &subscribers.parse()?)?.run(ready)
        }
        ["supplier", channel, source, priority] => {
            let supplier = EventSupplier::open(channel, small(source)?, small(priority)?)?;
            ready("");
            supplier.serve().map_err(|error| error.to_string())
        }
        _ => Err(format!("a child has no role events {role:?}")),
    }
}

/// One of those of an analysed system ([`crate::model`]).
fn model(role: &[&str]) -> Result<(), String> {
    // What is refused, the host's findings tell.
    let _ = rtorb_os::memory::lock_all();
    match *role {
        ["component", plan] => Component::open(Path::new(plan))?.run(ready),
        ["watcher", room, ref cpus @ ..] => {
            let cpus = cpus.iter().map(|cpu| number(cpu));
            let watchers = Watchers::new(number(room)?, cpus.collect::<Result<_, _>>()?);
            ready("");
            watchers.serve().map_err(|error| error.to_string())
        }
        _ => Err(format!("a child has no role model {role:?}")),
    }
}

/// An ORB and nothing else, until standard input ends.
fn idle_orb(preset: &str) -> Result<(), String> {
    let orb = idle::orb(preset)?;
    ready("");
    let ended = io::copy(&mut io::stdin(), &mut io::sink());
    drop(orb);
    ended.map(drop).map_err(|error| error.to_string())
}

fn idle_clients(preset: &str, reference: &str) -> Result<idle::IdleClients, String> {
    let clients = idle::IdleClients::new(preset, reference)?;
    ready("");
    Ok(clients)
}

fn whitebox_server(preset: &str, priorities: Priorities) -> Result<(), String> {
    whitebox::start_counting();
    whitebox::server::Server::open(preset, priorities)?.run(ready)
}

fn whitebox_clients(
    preset: &str,
    priorities: Priorities,
    references: [&str; 2],
) -> Result<Clients, String> {
    whitebox::start_counting();
    let clients = Clients::start(preset, priorities, references)?;
    ready("");
    Ok(clients)
}

fn priorities(low: &str, high: &str) -> Result<Priorities, String> {
    let priority = |word: &str| {
        let number = word.parse::<u8>().ok().filter(|number| *number <= 99);
        number.ok_or_else(|| format!("not a priority: {word:?}"))
    };
    Ok(Priorities {
        low: priority(low)?,
        high: priority(high)?,
    })
}

fn kind(operations: &str) -> Result<Kind, String> {
    Kind::with_operations(number(operations)?)
        .ok_or_else(|| format!("no object has {operations} operations"))
}

fn small<N: TryFrom<usize>>(word: &str) -> Result<N, String> {
    let number = number(word)?;
    N::try_from(number).map_err(|_| format!("too large: {word:?}"))
}

fn number(word: &str) -> Result<usize, String> {
    word.parse().map_err(|_| format!("not a number: {word:?}"))
}

/// Tells the laboratory that this process can be used.
pub(crate) fn ready(text: &str) {
    // The laboratory may be gone; the death signal then ends this process.
    let _ = writeln!(io::stdout(), "ready {text}");
    let _ = io::stdout().flush();
}

fn answer(run: impl FnMut(&burst::Burst) -> Result<burst::Samples, String>) -> io::Result<()> {
    ready("");
    burst::serve(BufReader::new(io::stdin()), io::stdout(), run)
}

/// Ends this process when the laboratory closes its input, whatever the role is doing.
fn end_with_input() -> Result<(), String> {
    let watch = || {
        let mut ignored = [0; 64];
        while matches!(io::stdin().read(&mut ignored), Ok(count) if count > 0) {}
        std::process::exit(0);
    };
    rtorb_os::thread::spawn("end-of-input", &Default::default(), watch)
        .map(drop)
        .map_err(|error| error.to_string())
}

/// Far longer than any call takes, far shorter than the laboratory waits for a burst.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn options_come_before_the_role() {
        let arguments = words("--parent 7 --cpu 1 --fifo 50 exec true --fifo 3");
        let (parent, placement, role) = parse(&arguments).unwrap();
        assert_eq!(
            (parent, placement),
            (
                7,
                Placement {
                    cpu: Some(1),
                    fifo: Some(50)
                }
            )
        );
        assert_eq!(role, words("exec true --fifo 3"));
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(
            parse(&words("--cpu one raw-server"))
                .unwrap_err()
                .contains("--cpu")
        );
        assert!(
            parse(&words("--color 1 raw-server"))
                .unwrap_err()
                .contains("--color")
        );
        assert!(
            play(&words("raw-server pigeon"))
                .unwrap_err()
                .contains("pigeon")
        );
    }

    #[test]
    fn a_child_of_nobody_does_not_begin() {
        assert!(
            begin(i32::MAX, &Placement::default())
                .unwrap_err()
                .contains("gone")
        );
        set_parent_process_death_signal(None).unwrap();
    }
}
