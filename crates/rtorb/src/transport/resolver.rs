//! Host names to addresses, with a bound on the time.
//!
//! The system's resolver (getaddrinfo) takes as long as it likes. So one thread of the ORB asks it, one name after the other,
//! and a call waits for that thread until its own deadline at most. The thread starts with the first name that is no numeric
//! address. When the ORB ends while the system still looks for a name, the thread ends when the system has replied.
//!
//! If the system replies when nobody waits for the name any more, the thread keeps the addresses for some seconds: else calls whose
//! timeout is shorter than a lookup would never succeed.

use core::net::SocketAddr;
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sched::{SchedPolicy, current_affinity};
use rtorb_os::sync::{Condvar, Mutex};
use rtorb_os::thread::{JoinHandle, ThreadConfig, spawn};
use rustix::io::Errno;
use std::net::ToSocketAddrs;
use std::sync::Arc;

/// The names that an ORB looks for.
#[derive(Debug, Default)]
pub(crate) struct Resolver {
    shared: Arc<Shared>,
    /// The CPUs that the thread may use; none inherits those of the thread that starts it.
    cpus: Vec<usize>,
    thread: Mutex<Option<JoinHandle<Option<()>>>>,
}

/// Names in work at a time. One more is refused (NO_RESOURCES).
const NAMES_MAX: usize = 64;

/// Names at a time whose addresses nobody waited for. One more replaces the oldest.
const UNCLAIMED_MAX: usize = 4;

/// So long are they kept.
const UNCLAIMED_NS: u64 = 5_000_000_000;

/// The addresses of a name, with port 0 and the scope of local ones; none if it is unknown.
type Addresses = Arc<[SocketAddr]>;

#[derive(Debug, Default)]
struct Shared {
    names: Mutex<Names>,
    /// There is a name to look for, or the ORB ends.
    work: Condvar,
    /// A name is looked up.
    found: Condvar,
}

#[derive(Debug, Default)]
struct Names {
    /// Oldest first.
    wanted: Vec<Wanted>,
    /// Oldest first.
    unclaimed: Vec<Unclaimed>,
    next_number: u64,
    /// True while the system looks for a name.
    is_busy: bool,
    has_ended: bool,
}

/// A name, and the calls that wait for its addresses.
#[derive(Debug)]
struct Wanted {
    number: u64,
    host: Box<str>,
    waiting: usize,
    addresses: Option<Addresses>,
}

/// The addresses of a name that were found when its calls had given up.
#[derive(Debug)]
struct Unclaimed {
    host: Box<str>,
    addresses: Addresses,
    until_ns: u64,
}

impl Resolver {
    /// For an ORB that the calling thread builds: its thread uses the same CPUs.
    pub(crate) fn of_this_thread() -> Self {
        Self {
            shared: Arc::default(),
            cpus: current_affinity(),
            thread: Mutex::default(),
        }
    }

    /// The addresses of a host with that port: `TIMEDOUT` if the system does not find them by `until_ns`, `HOSTUNREACH` if there
    /// are none, `NOBUFS` if too many other names are looked for, `NOMEM` if the host refuses the thread.
    pub(crate) fn addresses(
        &self,
        host: &str,
        port: u16,
        until_ns: u64,
    ) -> Result<Vec<SocketAddr>, Errno> {
        if let Ok(address) = host.parse() {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let addresses = self.look_up(host, until_ns)?;
        if addresses.is_empty() {
            return Err(Errno::HOSTUNREACH);
        }
        let mut addresses = addresses.to_vec();
        for address in &mut addresses {
            address.set_port(port);
        }
        Ok(addresses)
    }

    #[cold]
    fn look_up(&self, host: &str, until_ns: u64) -> Result<Addresses, Errno> {
        self.start()?;
        let mut names = self.shared.names.lock();
        if let Some(addresses) = names.unclaimed(host, monotonic_ns()) {
            return Ok(addresses);
        }
        let number = names.want(host)?;
        self.shared.work.notify_one(&self.shared.names);
        loop {
            if let Some(addresses) = names.addresses(number) {
                names.give_up(number);
                return Ok(addresses);
            }
            if !self.shared.found.wait_until(&mut names, until_ns) {
                let addresses = names.addresses(number);
                names.give_up(number);
                return addresses.ok_or(Errno::TIMEDOUT);
            }
        }
    }

    /// Starts the thread, unless it runs. It is never urgent, whoever starts it.
    ///
    /// Nothing bounds the wait until it runs: where urgent threads leave its CPUs no time, the first call with a name waits as
    /// long, and others with it.
    fn start(&self) -> Result<(), Errno> {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let config = ThreadConfig {
                policy: Some(SchedPolicy::Other),
                affinity: self.cpus.clone(),
                ..ThreadConfig::default()
            };
            let shared = Arc::clone(&self.shared);
            let started = spawn("rtorb-resolver", &config, move || shared.run());
            *thread = Some(started.map_err(|refused| match refused.errno {
                // The host has no room for a thread. Of a socket, the same number says that time has passed.
                Errno::AGAIN => Errno::NOMEM,
                errno => errno,
            })?);
        }
        Ok(())
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        let mut names = self.shared.names.lock();
        names.has_ended = true;
        let is_busy = names.is_busy;
        self.shared.work.notify_one(&self.shared.names);
        drop(names);
        if let Some(thread) = self.thread.get_mut().take()
            && !is_busy
        {
            // It has nothing that could panic, and nothing to say.
            let _ = thread.join();
        }
    }
}

impl Names {
    /// Adds a call that waits for a name, and returns the number of the name.
    fn want(&mut self, host: &str) -> Result<u64, Errno> {
        let known = self
            .wanted
            .iter_mut()
            .find(|wanted| wanted.addresses.is_none() && *wanted.host == *host);
        if let Some(known) = known {
            known.waiting += 1;
            return Ok(known.number);
        }
        if self.wanted.len() >= NAMES_MAX {
            return Err(Errno::NOBUFS);
        }
        let number = self.next_number;
        self.next_number += 1;
        self.wanted.push(Wanted {
            number,
            host: host.into(),
            waiting: 1,
            addresses: None,
        });
        Ok(number)
    }

    fn addresses(&self, number: u64) -> Option<Addresses> {
        let wanted = self.wanted.iter().find(|wanted| wanted.number == number);
        wanted?.addresses.clone()
    }

    /// Removes a call that waits for a name, and the name with the last of them.
    fn give_up(&mut self, number: u64) {
        if let Some(wanted) = self.wanted.iter_mut().find(|it| it.number == number) {
            wanted.waiting -= 1;
        }
        self.wanted.retain(|wanted| wanted.waiting > 0);
    }

    /// Gives addresses to all calls that wait for the name, also those that came after the lookup began; false if there are none.
    fn deliver(&mut self, host: &str, addresses: &Addresses) -> bool {
        let mut wanted = self.wanted.iter_mut();
        let wanted = wanted.find(|it| it.addresses.is_none() && *it.host == *host);
        wanted
            .map(|it| it.addresses = Some(Arc::clone(addresses)))
            .is_some()
    }

    /// Keeps addresses for later calls.
    fn keep(&mut self, host: Box<str>, addresses: Addresses, now_ns: u64) {
        if self.unclaimed.len() == UNCLAIMED_MAX {
            self.unclaimed.remove(0);
        }
        self.unclaimed.push(Unclaimed {
            host,
            addresses,
            until_ns: now_ns + UNCLAIMED_NS,
        });
    }

    /// The addresses that were kept for a name; forgets the old ones of all names.
    fn unclaimed(&mut self, host: &str, now_ns: u64) -> Option<Addresses> {
        self.unclaimed.retain(|kept| kept.until_ns > now_ns);
        let kept = self.unclaimed.iter().rfind(|kept| *kept.host == *host);
        kept.map(|kept| Arc::clone(&kept.addresses))
    }
}

impl Shared {
    /// Looks for one name after the other until the ORB ends.
    fn run(&self) {
        let mut names = self.names.lock();
        while !names.has_ended {
            let next = names.wanted.iter().find(|it| it.addresses.is_none());
            let Some(host) = next.map(|it| it.host.clone()) else {
                self.work.wait(&mut names);
                continue;
            };
            names.is_busy = true;
            drop(names);
            let addresses = system_addresses(&host);
            names = self.names.lock();
            names.is_busy = false;
            if names.deliver(&host, &addresses) {
                self.found.notify_all(&self.names);
            } else {
                names.keep(host, addresses, monotonic_ns());
            }
        }
    }
}

/// Asks the system, however long that takes.
fn system_addresses(host: &str) -> Addresses {
    #[cfg(test)]
    let host = tests::delay(host);
    let addresses = (host, 0).to_socket_addrs();
    addresses.map_or_else(|_| Addresses::default(), Iterator::collect)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use core::net::SocketAddrV6;
    use std::thread;

    /// The system never finds names that end so.
    pub(crate) const SILENT: &str = "silent.test";

    /// The system finds this name, but late.
    const SLOW: &str = "slow.test";

    /// Does not return for a silent name. Returns late for the slow name, with that of this host.
    pub(super) fn delay(host: &str) -> &str {
        while host.ends_with(SILENT) {
            thread::park();
        }
        if host != SLOW {
            return host;
        }
        let late_ns = rtorb_os::clock::monotonic_ns() + 5 * MOMENT_NS;
        rtorb_os::clock::sleep_until(late_ns);
        "localhost"
    }

    const MOMENT_NS: u64 = 20_000_000;

    #[test]
    fn a_numeric_address_needs_no_thread() {
        let resolver = Resolver::default();
        for host in ["127.0.0.1", "::1"] {
            let addresses = resolver.addresses(host, 7, 0).expect("it is one");
            assert_eq!(
                addresses,
                [SocketAddr::new(host.parse().expect("legal"), 7)]
            );
        }
        assert!(resolver.thread.lock().is_none());
    }

    #[test]
    fn a_name_has_its_addresses_or_none() {
        let resolver = Resolver::default();
        let until_ns = monotonic_ns() + 10_000_000_000;
        let addresses = resolver.addresses("localhost", 7, until_ns).expect("known");
        assert!(
            addresses
                .iter()
                .all(|it| it.ip().is_loopback() && it.port() == 7)
        );
        assert!(resolver.shared.names.lock().wanted.is_empty());
    }

    #[test]
    fn the_scope_of_a_local_address_is_kept() {
        let resolver = Resolver::of_this_thread();
        let until_ns = monotonic_ns() + 10_000_000_000;
        let addresses = resolver
            .addresses("fe80::1%1", 7, until_ns)
            .expect("numeric");
        let ip = "fe80::1".parse().expect("legal");
        assert_eq!(addresses, [SocketAddr::V6(SocketAddrV6::new(ip, 7, 0, 1))]);
    }

    #[test]
    fn a_name_whose_lookup_takes_longer_than_each_call_is_found_by_a_later_call() {
        let resolver = Resolver::default();
        let ask = || resolver.addresses(SLOW, 7, monotonic_ns() + MOMENT_NS);
        assert_eq!(ask(), Err(Errno::TIMEDOUT));
        let given_up_ns = monotonic_ns() + 500 * MOMENT_NS;
        while ask() == Err(Errno::TIMEDOUT) {
            assert!(monotonic_ns() < given_up_ns);
        }

        // Nobody waits when the addresses of this lookup come.
        let resolver = Resolver::default();
        let ask = |ns| resolver.addresses(SLOW, 7, monotonic_ns() + ns);
        assert_eq!(ask(MOMENT_NS), Err(Errno::TIMEDOUT));
        while resolver.shared.names.lock().unclaimed.is_empty() {
            thread::yield_now();
        }
        assert!(ask(0).is_ok() && ask(0).is_ok());
    }

    #[test]
    fn addresses_that_nobody_waited_for_are_few_and_are_forgotten() {
        let mut names = Names::default();
        for number in 0..=UNCLAIMED_MAX {
            names.keep(number.to_string().into(), Addresses::default(), 7);
        }
        assert_eq!(names.unclaimed.len(), UNCLAIMED_MAX);
        assert!(names.unclaimed("0", 8).is_none() && names.unclaimed("1", 8).is_some());
        assert!(names.unclaimed("1", 7 + UNCLAIMED_NS).is_none());
        assert!(names.unclaimed.is_empty());
    }

    #[test]
    fn names_that_the_system_does_not_find_in_time_are_bounded_in_time_and_number() {
        let resolver = Arc::new(Resolver::default());
        let wait = |host: &str, ns| resolver.addresses(host, 7, monotonic_ns() + ns);
        assert_eq!(wait(SILENT, MOMENT_NS), Err(Errno::TIMEDOUT));
        assert!(resolver.shared.names.lock().wanted.is_empty());
        let start = |number| {
            let resolver = Arc::clone(&resolver);
            let work = move || {
                let host = format!("{number}.{SILENT}");
                resolver.addresses(&host, 7, monotonic_ns() + 500 * MOMENT_NS)
            };
            spawn("waits", &ThreadConfig::default(), work).expect("a thread")
        };
        let waiting: Vec<_> = (0..NAMES_MAX).map(start).collect();
        while resolver.shared.names.lock().wanted.len() < NAMES_MAX {
            thread::yield_now();
        }
        assert_eq!(wait("another", MOMENT_NS), Err(Errno::NOBUFS));
        // Whoever waits for a name that is looked for already takes no place of its own.
        let host = format!("3.{SILENT}");
        assert_eq!(wait(&host, MOMENT_NS), Err(Errno::TIMEDOUT));
        let mut names = resolver.shared.names.lock();
        for wanted in &mut names.wanted {
            wanted.addresses = Some(Addresses::default());
        }
        resolver.shared.found.notify_all(&resolver.shared.names);
        drop(names);
        for thread in waiting {
            let found = thread.join().expect("no panic");
            assert_eq!(found, Some(Err(Errno::HOSTUNREACH)));
        }
        assert!(resolver.shared.names.lock().wanted.is_empty());
        // Its thread is still busy, and this does not wait for it.
        drop(resolver);
    }
}
