//! A member of a federation, and its thread.

use std::collections::BTreeMap;
use std::sync::Arc;

use rtorb::{Orb, Poa};
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::Mutex;
use rtorb_os::thread::{JoinHandle, spawn};
use rtorb_services::events::gateway::Find;
use zenoh::Wait;
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::sample::Locality;

use crate::config::{FederationConfig, FederationError, FederationNews};
use crate::connection::ChannelConnection;
use crate::keys::KeyPattern;
use crate::message::VERSION;
use crate::session::{LinkWatch, Reach};
use crate::shared::Shared;
use crate::statistics::FederationStatistics;
use crate::work_queue::FederationWork;

/// A member of a federation: it joins one channel to those of the other members. Dropping it stops it.
#[derive(Debug)]
pub struct Federation {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<Option<()>>>>,
}

impl Federation {
    /// Starts a member with objects of `orb`, for the channel that `find` finds. The ORB must serve, and its calls should have a timeout: it
    /// bounds each step, such as connecting to the channel. The member reports to `tell` on its own thread, so `tell` must not
    /// [stop](Self::stop) it.
    ///
    /// # Errors
    /// A value out of its range, an endpoint that Zenoh refuses or cannot listen at, or an error of the ORB or the host. Members and routers
    /// that cannot be reached are no error, and neither is the channel: it is reported and tried again.
    pub fn start(
        orb: &Orb,
        find: Find,
        mut config: FederationConfig,
        tell: impl Fn(&FederationNews) + Send + 'static,
    ) -> Result<Self, FederationError> {
        config.check()?;
        // The member's thread creates the lanes', and takes the priorities of the events that it delivers.
        config.thread = config.thread.or_as_here();
        let poa = orb.root_poa()?;
        let thread = config.thread.clone();
        let listens = !config.network.listen.is_empty() || config.network.multicast;
        let shared = Arc::new(Shared::new(config)?);
        let declared = DeclaredKeys::declare(&shared).map_err(|error| {
            // The callbacks hold the shared state, and the session holds them.
            let _ = shared.session().close().wait();
            refused(error)
        })?;
        let run = FederationRun {
            orb: orb.clone(),
            poa,
            find,
            shared: Arc::clone(&shared),
            declared: Some(declared),
            subscribers: BTreeMap::new(),
            wanted: Vec::new(),
            links: LinkWatch::new(listens),
            look_ns: 0,
        };
        let thread = spawn("rtorb-federate", &thread, move || run.run(&tell));
        let thread = thread.inspect_err(|_| drop(shared.session().close().wait()))?;
        Ok(Self {
            shared,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Its counts.
    #[must_use]
    pub fn statistics(&self) -> FederationStatistics {
        let mut counts = self.shared.counts.get();
        let absences = self.shared.accounts.lock().absences();
        counts.incoming.lost = absences.lost;
        counts.incoming.unsubscribed = absences.unsubscribed;
        counts.members = self.shared.members.lock().len() as u64;
        counts
    }

    /// True if it has ended: by [`stop`](Self::stop), or because it gave up.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.shared.work.has_ended()
    }

    /// Publishes what waits, leaves the federation, disconnects from the channel and waits for that, at most as long as the step in progress,
    /// one call and the closing of links may take; with [`FederationCongestion::Block`](crate::FederationCongestion::Block) also as long as a
    /// full link is waited for. Discards what waits to be delivered. If several threads call it, each of them waits.
    pub fn stop(&self) {
        self.shared.work.stop();
        // Under the lock, so that another caller waits too.
        let mut thread = self.thread.lock();
        if let Some(thread) = thread.take() {
            // A thread that panicked has ended as well.
            let _ = thread.join();
        }
    }
}

impl Drop for Federation {
    fn drop(&mut self) {
        self.stop();
    }
}

fn refused(error: zenoh::Error) -> FederationError {
    FederationError::Zenoh(error.to_string())
}

/// What a member declares in Zenoh from its start to its end.
struct DeclaredKeys {
    /// It is never used: by it, the session learns who subscribes to this member's events, and sends only those.
    _events: Publisher<'static>,
    _reports: Subscriber<()>,
    _members: Subscriber<()>,
    _member: LivelinessToken,
}

impl DeclaredKeys {
    fn declare(shared: &Arc<Shared>) -> Result<Self, zenoh::Error> {
        let (session, keys) = (shared.session(), &shared.keys);
        let for_reports = Arc::clone(shared);
        let for_members = Arc::clone(shared);
        Ok(Self {
            _events: session
                .declare_publisher(keys.own_events())
                .allowed_destination(Locality::Remote)
                .wait()?,
            _reports: session
                .declare_subscriber(keys.all_reports())
                .allowed_origin(Locality::Remote)
                .callback(move |sample| for_reports.receive_report(&sample))
                .wait()?,
            _members: session
                .liveliness()
                .declare_subscriber(keys.all_members())
                .history(true)
                .callback(move |sample| for_members.receive_member(&sample))
                .wait()?,
            _member: session
                .liveliness()
                .declare_token(keys.own_member(VERSION, &session.zid().to_string()))
                .wait()?,
        })
    }
}

/// The member's thread.
struct FederationRun {
    orb: Orb,
    poa: Poa,
    find: Find,
    shared: Arc<Shared>,
    /// `None` while there is no session.
    declared: Option<DeclaredKeys>,
    /// The subscriptions to what the consumers of the channel want.
    subscribers: BTreeMap<KeyPattern, Subscriber<()>>,
    /// What they want; Zenoh may have refused a subscription.
    wanted: Vec<KeyPattern>,
    links: LinkWatch,
    /// When it looks at the links again.
    look_ns: u64,
}

/// Why a connection to the channel ended.
enum ConnectionEnd {
    Stopped,
    Lost(Option<rtorb::SystemException>),
}

impl FederationRun {
    fn run(mut self, tell: &dyn Fn(&FederationNews)) {
        let shared = Arc::clone(&self.shared);
        let config = &shared.config;
        let mut tries = 0;
        while !shared.work.shall_stop() {
            match ChannelConnection::open(&self.orb, &self.poa, &self.find, &shared) {
                Ok(mut connection) => {
                    shared.counts.change(|counts| counts.connections += 1);
                    tell(&FederationNews::Connected);
                    let (ended, has_served) = self.serve(&mut connection, tell);
                    connection.close();
                    self.subscribe(Vec::new(), tell);
                    self.discard_waiting();
                    tries = if has_served { 0 } else { tries + 1 };
                    match ended {
                        ConnectionEnd::Stopped => break,
                        ConnectionEnd::Lost(exception) => tell(&FederationNews::Lost { exception }),
                    }
                }
                Err(error) => {
                    tries += 1;
                    tell(&FederationNews::Failed { error, tries });
                }
            }
            if tries >= config.tries_max {
                tell(&FederationNews::GaveUp);
                break;
            }
            self.look_at_links(tell);
            self.pause(tries, tell);
        }
        self.leave();
    }

    /// Delivers events until the channel is lost or the member stops. Also returns whether the channel has answered a ping.
    fn serve(
        &mut self,
        connection: &mut ChannelConnection,
        tell: &dyn Fn(&FederationNews),
    ) -> (ConnectionEnd, bool) {
        let period_ns = self.shared.config.ping_every.as_nanos() as u64;
        let mut ping_ns = monotonic_ns() + period_ns;
        let mut has_served = false;
        loop {
            self.look_at_links(tell);
            let done = match self.shared.work.next(ping_ns.min(self.look_ns)) {
                FederationWork::Stop => return (ConnectionEnd::Stopped, has_served),
                FederationWork::Lost => return (ConnectionEnd::Lost(None), has_served),
                FederationWork::Subscribe(wanted) => {
                    self.subscribe(wanted, tell);
                    Ok(())
                }
                FederationWork::Report(news) => {
                    tell(&news);
                    Ok(())
                }
                FederationWork::Deliver(sample) => connection.deliver(&sample),
                FederationWork::Nothing => Ok(()),
            };
            let done = done.and_then(|()| {
                if monotonic_ns() < ping_ns {
                    return Ok(());
                }
                ping_ns = monotonic_ns() + period_ns;
                connection.ping()?;
                has_served = true;
                Ok(())
            });
            if let Err(exception) = done {
                return (ConnectionEnd::Lost(Some(exception)), has_served);
            }
        }
    }

    /// Subscribes to what the consumers want, and to nothing else any more.
    ///
    /// New subscriptions are declared before events are expected by them, and old ones end after that.
    fn subscribe(&mut self, wanted: Vec<KeyPattern>, tell: &dyn Fn(&FederationNews)) {
        if self.wanted == wanted && self.subscribers.len() == wanted.len() {
            return;
        }
        self.wanted = wanted;
        self.declare_wanted(tell);
        let keys = self.wanted.len();
        self.shared.accounts.lock().want(self.wanted.clone());
        // Dropping a subscriber undeclares it.
        self.subscribers
            .retain(|pattern, _| self.wanted.contains(pattern));
        tell(&FederationNews::Subscribed { keys });
    }

    /// Declares the subscriptions that are wanted and not there.
    fn declare_wanted(&mut self, tell: &dyn Fn(&FederationNews)) {
        for &pattern in &self.wanted {
            if self.subscribers.contains_key(&pattern) {
                continue;
            }
            let shared = Arc::clone(&self.shared);
            let key = shared.keys.wanted(pattern);
            let declared = (self.shared.session())
                .declare_subscriber(&key)
                .allowed_origin(Locality::Remote)
                .callback(move |sample| shared.receive(pattern, &sample))
                .wait();
            match declared {
                Ok(subscriber) => drop(self.subscribers.insert(pattern, subscriber)),
                Err(error) => {
                    let reason = error.to_string();
                    tell(&FederationNews::NotSubscribed { key, reason });
                }
            }
        }
    }

    /// Once a second, looks what the session reaches, and opens it again if it has not reached others for too long.
    fn look_at_links(&mut self, tell: &dyn Fn(&FederationNews)) {
        let now_ns = monotonic_ns();
        if now_ns < self.look_ns {
            return;
        }
        self.look_ns = now_ns + LOOK_EVERY_NS;
        let shared = Arc::clone(&self.shared);
        let reach = match self.declared {
            Some(_) => shared.reach(),
            None => Reach::Nobody,
        };
        if !self.links.look(reach, now_ns) {
            return;
        }
        tell(&FederationNews::OpensAgain);
        self.subscribers.clear();
        self.declared = None;
        let opened = shared
            .open_again()
            .and_then(|()| DeclaredKeys::declare(&shared).map_err(refused));
        match opened {
            Ok(declared) => {
                self.declared = Some(declared);
                self.declare_wanted(tell);
            }
            Err(error) => {
                let reason = error.to_string();
                tell(&FederationNews::NotOpened { reason });
            }
        }
    }

    fn discard_waiting(&self) {
        let discarded = self.shared.work.clear();
        self.shared.counts.incoming(|counts| {
            counts.waiting -= discarded;
            counts.discarded_lost += discarded;
        });
    }

    fn pause(&self, tries: u32, tell: &dyn Fn(&FederationNews)) {
        let config = &self.shared.config;
        let factor = 1u32
            .checked_shl(tries.saturating_sub(1))
            .unwrap_or(u32::MAX);
        let pause = config
            .pause_min
            .saturating_mul(factor)
            .min(config.pause_max);
        let until_ns = monotonic_ns() + pause.as_nanos() as u64;
        loop {
            self.shared.work.pause_until(until_ns);
            match self.shared.work.take_news() {
                Some(news) => tell(&news),
                None => return,
            }
        }
    }

    /// Leaves the federation. The subscriptions hold the shared state, and the session holds them.
    fn leave(self) {
        let Self {
            shared,
            declared,
            subscribers,
            ..
        } = self;
        drop(subscribers);
        drop(declared);
        // The links are gone afterwards, whatever it says.
        let _ = shared.session().close().wait();
        shared.work.end();
    }
}

const LOOK_EVERY_NS: u64 = 1_000_000_000;
