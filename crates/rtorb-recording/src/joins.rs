//! The two ends of each call, the calls within servants, and how far the clocks of hosts are apart.

use std::collections::BTreeMap;

use crate::records::{
    CallOutcome, CallRecord, CallSide, HostRecord, ProcessRecord, Recording, ThreadRecord,
};

/// The place of a call in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallPlace {
    /// The index of its host.
    pub host: usize,
    /// The index of its process there.
    pub process: usize,
    /// The index of its thread there.
    pub thread: usize,
    /// Its index there.
    pub call: usize,
}

/// How the calls of a recording belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Joins {
    /// Of each call of a client, that of its server.
    pub server_of: BTreeMap<CallPlace, CallPlace>,
    /// The other way round.
    pub client_of: BTreeMap<CallPlace, CallPlace>,
    /// Of each call that a servant made, the call in which that servant executed.
    pub within: BTreeMap<CallPlace, CallPlace>,
    /// The other way round, in the order of time.
    pub nested: BTreeMap<CallPlace, Vec<CallPlace>>,
}

impl Recording {
    /// Returns the place of each call.
    pub fn places(&self) -> impl Iterator<Item = (CallPlace, &CallRecord)> {
        self.threads().flat_map(|(at, thread)| {
            let calls = thread.calls.iter().enumerate();
            calls.map(move |(call, record)| (CallPlace { call, ..at }, record))
        })
    }

    /// Returns each thread, with the place of its first call.
    fn threads(&self) -> impl Iterator<Item = (CallPlace, &ThreadRecord)> {
        self.hosts.iter().enumerate().flat_map(|(host, of_host)| {
            let processes = of_host.processes.iter().enumerate();
            processes.flat_map(move |(process, of_process)| {
                let threads = of_process.threads.iter().enumerate();
                threads.map(move |(thread, record)| {
                    let at = CallPlace {
                        host,
                        process,
                        thread,
                        call: 0,
                    };
                    (at, record)
                })
            })
        })
    }

    /// Returns the host of a call.
    pub fn host(&self, place: CallPlace) -> &HostRecord {
        &self.hosts[place.host]
    }

    /// Returns the process of a call.
    pub fn process(&self, place: CallPlace) -> &ProcessRecord {
        &self.host(place).processes[place.process]
    }

    /// Returns the thread of a call.
    pub fn thread(&self, place: CallPlace) -> &ThreadRecord {
        &self.process(place).threads[place.thread]
    }

    /// Returns the call at a place.
    pub fn call(&self, place: CallPlace) -> &CallRecord {
        &self.thread(place).calls[place.call]
    }

    /// Adds the hosts of another recording. A [host that is known](HostRecord::is) has the processes of both, and the kernel's record of either.
    pub fn add(&mut self, other: Self) {
        for host in other.hosts {
            let mut hosts = self.hosts.iter_mut();
            let known = hosts.find(|known| known.is(&host.name, host.boot_id.as_deref()));
            match known {
                Some(known) => {
                    known.processes.extend(host.processes);
                    known.boot_id = known.boot_id.take().or(host.boot_id);
                    if known.kernel.is_err() {
                        known.kernel = host.kernel;
                    }
                }
                None => self.hosts.push(host),
            }
        }
    }

    /// Finds how far the clocks of the hosts are apart: a request is not read before it is sent, and its reply is not there before it is
    /// sent. Each host that is joined by calls to the first, directly or by others, gets the middle of what these allow.
    pub fn align(&mut self, joins: &Joins) {
        let mut allowed: BTreeMap<(usize, usize), (i64, i64)> = BTreeMap::new();
        for (client, server) in &joins.server_of {
            if client.host == server.host {
                continue;
            }
            let (called, served) = (self.call(*client), self.call(*server));
            let most = difference(served.first_ns, called.second_or_last_ns());
            let waited_ns = called.last_ns.saturating_sub(called.second_or_last_ns());
            // Oneways and callers that gave up wait for no reply.
            let is_replied = called.outcome != CallOutcome::Timeout
                && served.last_ns.saturating_sub(served.first_ns) <= waited_ns;
            let least = if is_replied {
                difference(served.last_ns, called.last_ns)
            } else {
                i64::MIN
            };
            let both = allowed.entry((client.host, server.host));
            let both = both.or_insert((i64::MIN, i64::MAX));
            *both = (both.0.max(least), both.1.min(most));
        }
        let mut known: BTreeMap<usize, i64> = BTreeMap::from([(0, 0)]);
        for _ in 0..self.hosts.len() {
            for (&(client, server), &(least, most)) in &allowed {
                let ahead = if least == i64::MIN {
                    most
                } else {
                    least.saturating_add(most.saturating_sub(least) / 2)
                };
                match (known.get(&client).copied(), known.get(&server).copied()) {
                    (Some(of_client), None) => {
                        known.insert(server, of_client.saturating_add(ahead));
                    }
                    (None, Some(of_server)) => {
                        known.insert(client, of_server.saturating_sub(ahead));
                    }
                    _ => {}
                }
            }
        }
        for (host, ahead_ns) in known {
            if let Some(host) = self.hosts.get_mut(host) {
                host.ahead_ns = ahead_ns;
            }
        }
    }
}

impl Joins {
    /// Finds what belongs together. Ends join by their connection and the id of the request. If an end does not know its connection, they
    /// join by the id, the operation and their times, and only if no other ends could.
    pub fn of(recording: &Recording) -> Self {
        let mut joins = Self::default();
        let servers = ends(recording, CallSide::Server);
        let mut clients = ends(recording, CallSide::Client);
        clients.extend(ends(recording, CallSide::Started));
        clients.sort_unstable();
        for clients in clients.chunk_by(|one, other| one.request() == other.request()) {
            let request = clients[0].request();
            let first = servers.partition_point(|end| end.request() < request);
            let count = servers[first..].partition_point(|end| end.request() == request);
            joins.join(recording, clients, &servers[first..first + count]);
        }
        for (place, thread) in recording.threads() {
            joins.nest(place, thread);
        }
        joins
    }

    /// Joins ends of equal ids and operations.
    fn join(&mut self, recording: &Recording, clients: &[End<'_>], servers: &[End<'_>]) {
        let of_connections = servers.chunk_by(|one, other| one.connection == other.connection);
        let of_connections: Vec<&[End<'_>]> = of_connections.collect();
        let mut chosen: BTreeMap<CallPlace, Vec<CallPlace>> = BTreeMap::new();
        for (index, client) in clients.iter().enumerate() {
            let next = clients.get(index + 1);
            if let Some(server) = fitting(recording, client, next, &of_connections) {
                chosen.entry(server).or_default().push(client.place);
            }
        }
        for (server, clients) in chosen {
            if let [client] = clients[..] {
                self.server_of.insert(client, server);
                self.client_of.insert(server, client);
            }
        }
    }

    /// Finds the calls of a thread within the servants that it executed.
    fn nest(&mut self, at: CallPlace, thread: &ThreadRecord) {
        let of_side = |is_caller: bool| {
            let calls = thread.calls.iter().enumerate();
            let calls = calls.filter(move |(_, call)| match call.side {
                CallSide::Server => !is_caller && call.second_ns != 0,
                CallSide::Client | CallSide::Collocated | CallSide::Started => is_caller,
            });
            calls.collect::<Vec<_>>()
        };
        let mut executed = of_side(false);
        executed.sort_by_key(|(_, call)| call.second_ns);
        let mut made = of_side(true);
        made.sort_by_key(|(_, call)| call.first_ns);
        for (index, call) in made {
            // A servant's thread may serve other calls while it waits: the innermost is the last that began.
            let before = executed.partition_point(|(_, outer)| {
                outer.second_ns <= call.first_ns.saturating_add(ROUNDING_NS)
            });
            let began = executed[..before].iter().rev().take(DEPTH_MAX);
            let mut around = began
                .filter(|(_, outer)| outer.last_ns.saturating_add(ROUNDING_NS) >= call.last_ns);
            if let Some((outer, _)) = around.next() {
                let inner = CallPlace { call: index, ..at };
                let outer = CallPlace { call: *outer, ..at };
                self.within.insert(inner, outer);
                self.nested.entry(outer).or_default().push(inner);
            }
        }
    }
}

/// An end of a call, in the order in which ends are compared.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct End<'a> {
    request_id: u32,
    operation: &'a str,
    connection: u64,
    host: usize,
    first_ns: u64,
    place: CallPlace,
}

impl<'a> End<'a> {
    fn request(&self) -> (u32, &'a str) {
        (self.request_id, self.operation)
    }
}

/// The ends of one side, in their order. A client that has sent nothing has no server.
fn ends(recording: &Recording, side: CallSide) -> Vec<End<'_>> {
    let calls = recording
        .places()
        .filter(|(_, call)| call.side == side && (side == CallSide::Server || call.second_ns != 0));
    let ends = calls.map(|(place, call)| End {
        request_id: call.request_id,
        operation: &call.operation,
        connection: call.connection,
        host: place.host,
        first_ns: call.first_ns,
        place,
    });
    let mut ends: Vec<_> = ends.collect();
    ends.sort_unstable();
    ends
}

/// The only server that fits a client, of those of its id and operation, by their connections. `next` is the client behind it: on one host, a connection that uses
/// an id again does so after the call before.
fn fitting(
    recording: &Recording,
    client: &End<'_>,
    next: Option<&End<'_>>,
    of_connections: &[&[End<'_>]],
) -> Option<CallPlace> {
    let next = next.filter(|next| (next.connection, next.host) == (client.connection, client.host));
    let until_ns = match (client.connection, next) {
        (0, _) => (recording.call(client.place).last_ns).saturating_add(ROUNDING_NS + 1),
        (_, Some(next)) => next.first_ns,
        (_, None) => u64::MAX,
    };
    let list_of = |connection: u64| {
        let place = of_connections.binary_search_by_key(&connection, |list| list[0].connection);
        place.map(|place| of_connections[place]).ok()
    };
    let own = [list_of(0), list_of(client.connection)].map(Option::unwrap_or_default);
    let lists = match client.connection {
        0 if of_connections.len() > SERVERS_MAX => return None,
        0 => of_connections,
        _ => &own,
    };
    let able = lists.iter().flat_map(|list| window(list, client, until_ns));
    let mut found = None;
    for (number, server) in able.enumerate() {
        if is_fitting(recording, client.place, server.place)
            && found.replace(server.place).is_some()
            || number >= SERVERS_MAX
        {
            return None;
        }
    }
    found
}

/// The servers of one connection whose requests were read while a client could wait, as far as their clocks are the same.
fn window<'e, 'a>(
    list: &'e [End<'a>],
    client: &End<'_>,
    until_ns: u64,
) -> impl Iterator<Item = &'e End<'a>> + use<'e, 'a> {
    let before = |host: usize, at_ns: u64| {
        list.partition_point(|end| (end.host, end.first_ns) < (host, at_ns))
    };
    let from = before(client.host, client.first_ns.saturating_sub(ROUNDING_NS));
    let until = before(client.host, until_ns.saturating_sub(ROUNDING_NS)).max(from);
    let own = before(client.host, 0);
    let after = before(client.host + 1, 0);
    let others = list[..own].iter().chain(&list[after..]);
    list[from..until].iter().chain(others)
}

fn is_fitting(recording: &Recording, client: CallPlace, server: CallPlace) -> bool {
    let (called, served) = (recording.call(client), recording.call(server));
    if called.connection != 0 && served.connection != 0 {
        return called.connection == served.connection;
    }
    if client.host != server.host {
        return served.last_ns.saturating_sub(served.first_ns)
            <= called.last_ns.saturating_sub(called.first_ns);
    }
    // A thread may note that it has sent a message when the other end has it already.
    called.first_ns <= served.first_ns && served.second_or_last_ns() <= called.last_ns
}

fn difference(later_ns: u64, earlier_ns: u64) -> i64 {
    later_ns
        .cast_signed()
        .wrapping_sub(earlier_ns.cast_signed())
}

/// Times are made of ticks, by a rate that is measured anew whenever a recorder is read.
const ROUNDING_NS: u64 = 2_000;
/// How many servers are looked at for that of a client; among more, none is its own.
const SERVERS_MAX: usize = 256;
/// How many servants are looked at for a call within one of them.
const DEPTH_MAX: usize = 64;
