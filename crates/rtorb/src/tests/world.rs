//! The simulated world: servers, the watchdog and the time, which act while a driver waits.

use super::clock;
use super::network::{self, Conditions};
use super::scripted::{Act, PORT, Peers, Request};
use super::servant::{Log, Worker};
use crate::clock::monotonic_ns;
use crate::dispatch::pool::{Concurrency, Connection, Turn};
use crate::server::{
    self, Admission, EventLoop, Readiness, ServerCore, Session, TakenRequest, ThreadPriority,
    Token, Workspace,
};
use crate::{ConnectionStrategy, ObjectRef, Orb, OrbBuilder, SystemException, WaitStrategy};
use core::cell::{Cell, RefCell};
use core::mem::MaybeUninit;
use core::time::Duration;
use rtorb_os::slab::Key;
use rtorb_tests::fake::reference_at;
use std::rc::Rc;
use std::sync::{Arc, Weak};

/// Acts once, and returns when it wants to act again, if nothing happens before.
type Actor = Box<dyn FnMut() -> Option<u64>>;

thread_local! {
    /// An actor that is acting is not in its place.
    static ACTORS: RefCell<Vec<Option<Actor>>> = const { RefCell::new(Vec::new()) };
}

/// The simulation of one test, on the thread of the test. The real clock and the sockets of the host return with its end.
#[derive(Debug)]
pub(crate) struct World(());

/// More steps than any test needs.
const STEPS_MAX: u32 = 1_000_000;

impl World {
    pub(crate) fn new(seed: u64, conditions: Conditions) -> Self {
        clock::begin();
        network::begin(seed, conditions);
        Self(())
    }

    /// A network that carries everything at once and whole.
    pub(crate) fn perfect() -> Self {
        Self::new(0, Conditions::PERFECT)
    }

    /// Lets everybody act for that time.
    pub(crate) fn pass(&self, time: Duration) {
        run_until(|| false, Some(monotonic_ns() + time.as_nanos() as u64));
    }

    /// A client. Its watchdog acts too.
    pub(crate) fn client(&self, builder: OrbBuilder) -> Orb {
        let orb = builder.build().expect("the ORB can be built");
        let client = Arc::downgrade(&orb.core.client);
        add(move || client.upgrade()?.watchdog.look());
        orb
    }

    /// A server with one object.
    pub(crate) fn serve(&self, builder: OrbBuilder, sending: Sending) -> Server {
        let orb = builder.build().expect("the ORB can be built");
        let log = Log::default();
        let poa = orb.root_poa().expect("the ORB can listen");
        let worker: Worker = poa.activate(log.clone()).expect("there is room");
        Server {
            reference: worker.0.to_string(),
            orb: orb.clone(),
            log,
            is_closing: self.run(orb, sending),
        }
    }

    /// Serves the objects of an ORB that listens; returns what ends its connections.
    pub(crate) fn run(&self, orb: Orb, sending: Sending) -> Rc<Cell<bool>> {
        let is_closing = Rc::default();
        let core = Arc::clone(&orb.core.adapters.server);
        let events = match sending {
            Sending::Waiting => None,
            Sending::ByEventLoop => {
                let server = core.server().expect("it is open");
                Some(server.event_loop(&core.limits).expect("epoll"))
            }
        };
        let mut serving = Serving {
            orb,
            events,
            connections: Vec::new(),
            sessions: Vec::new(),
            accepted: 0,
            workspace: Workspace::new(ThreadPriority::keeping()),
            request: TakenRequest::with_room(),
            is_closing: Rc::clone(&is_closing),
        };
        add(move || serving.act());
        is_closing
    }

    /// A server that answers each request as `answer` says.
    pub(crate) fn script(&self, answer: impl FnMut(Request) -> Vec<Act> + 'static) -> String {
        let mut peers = Peers::new(answer);
        add(move || peers.act());
        reference_at("127.0.0.1", PORT)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        drop(ACTORS.take());
        network::end();
        clock::end();
    }
}

fn add(actor: impl FnMut() -> Option<u64> + 'static) {
    ACTORS.with_borrow_mut(|actors| actors.push(Some(Box::new(actor))));
}

/// Lets everybody act until that is true; false if the deadline passes first.
pub(crate) fn run_until(is_done: impl Fn() -> bool, deadline_ns: Option<u64>) -> bool {
    for _ in 0..STEPS_MAX {
        if is_done() {
            return true;
        }
        let now_ns = monotonic_ns();
        if deadline_ns.is_some_and(|deadline_ns| deadline_ns <= now_ns) {
            return false;
        }
        let before = network::activity();
        let wanted_ns = act_once();
        if network::activity() != before || monotonic_ns() != now_ns {
            continue;
        }
        let times = [wanted_ns, network::next_arrival_ns(), deadline_ns];
        let next_ns = times.into_iter().flatten().min();
        clock::advance_to(next_ns.expect("a thread waits, and nothing will happen"));
        if network::has_late_wakeups() {
            act_once();
        }
    }
    panic!("the run does not end");
}

/// Lets everybody act once; returns when the first wants to act again.
fn act_once() -> Option<u64> {
    let mut next_ns: Option<u64> = None;
    let count = ACTORS.with_borrow(Vec::len);
    for place in 0..count {
        let actor = ACTORS.with_borrow_mut(|actors| actors[place].take());
        let Some(mut actor) = actor else { continue };
        let wanted_ns = actor().map(|at| at.max(monotonic_ns() + 1));
        ACTORS.with_borrow_mut(|actors| actors[place] = Some(actor));
        next_ns = next_ns.into_iter().chain(wanted_ns).min();
    }
    next_ns
}

/// How a server sends what a client does not take at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    /// The thread that serves this client alone waits for it.
    Waiting,
    /// The event loop sends it.
    ByEventLoop,
}

/// A server with one object.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) orb: Orb,
    pub(crate) reference: String,
    pub(crate) log: Log,
    is_closing: Rc<Cell<bool>>,
}

impl Server {
    /// Ends all connections with CloseConnection when the server acts next.
    pub(crate) fn close_connections(&self) {
        self.is_closing.set(true);
    }
}

/// What the threads of a server do.
struct Serving {
    orb: Orb,
    events: Option<Arc<EventLoop>>,
    connections: Vec<Connection>,
    /// Those of the connections, and those that are closed when all replies are sent.
    sessions: Vec<Weak<Session>>,
    accepted: u32,
    workspace: Workspace,
    request: TakenRequest,
    is_closing: Rc<Cell<bool>>,
}

impl Serving {
    fn act(&mut self) -> Option<u64> {
        let core = Arc::clone(&self.orb.core.adapters.server);
        let server = core.server()?;
        if network::has_clients() {
            self.accept(&core, server);
        }
        if self.has_unsent() {
            self.send_unsent(server);
        }
        if core.is_stopping() {
            server.close_all();
            self.connections.clear();
            return None;
        }
        self.serve();
        // The deadline of unsent bytes is one that only a timer of the host would tell.
        let timeout_ns = core.limits.send_timeout.as_nanos() as u64;
        let looks_again = self.events.is_some() && self.has_unsent();
        looks_again.then(|| monotonic_ns() + timeout_ns / 16)
    }

    fn accept(&mut self, core: &Arc<ServerCore>, server: &server::Server) {
        for listener in &server.listeners {
            while let Admission::Accepted(connection) = server.accept(core, listener) {
                if let Some(events) = &self.events {
                    self.accepted += 1;
                    let token = Token::of(Key {
                        index: 0,
                        generation: self.accepted,
                    });
                    let attached = connection.session.attach(events, token);
                    attached.expect("the host can watch it");
                }
                self.sessions.push(Arc::downgrade(&connection.session));
                self.connections
                    .push(Connection::new(connection, Concurrency::Never));
            }
        }
    }

    /// Has the event loop send what is unsent. Connections are read later, whatever it reports of them.
    fn send_unsent(&self, server: &server::Server) {
        let Some(events) = &self.events else { return };
        // The host does not know when a simulated stream takes bytes again.
        for session in self.sessions.iter().filter_map(Weak::upgrade) {
            if let Some(token) = session.token().filter(|_| session.state.has_unsent()) {
                events.request(token, &session.stream);
            }
        }
        let mut room = [MaybeUninit::uninit(); 64];
        for event in events.poller.wait(&mut room, Some(0)) {
            events.event(event, &server.listeners);
        }
    }

    /// Serves what has come. A connection with unsent bytes is not read.
    fn serve(&mut self) {
        let is_closing = self.is_closing.take();
        let (workspace, request) = (&mut self.workspace, &mut self.request);
        self.connections.retain_mut(|connection| {
            if is_closing {
                connection.session.say_closing();
            }
            let is_unsent = connection.session.state.has_unsent();
            let mut serve = || connection.serve(Readiness::Readable, workspace, request);
            let is_open = !is_closing && (is_unsent || serve() != Turn::Over);
            if !is_open {
                connection.session.end_reading();
            }
            is_open
        });
    }

    fn has_unsent(&mut self) -> bool {
        self.sessions.retain(|session| session.strong_count() > 0);
        let mut sessions = self.sessions.iter();
        sessions.any(|session| session.upgrade().is_some_and(|it| it.state.has_unsent()))
    }
}

/// Makes the builder of a client.
pub(crate) type Builder = fn() -> OrbBuilder;

/// The client's strategies that one thread can run, with their names: a connection of its own, one that all threads use in
/// turn, and one that they use at once.
pub(crate) fn client_strategies() -> [(&'static str, Builder); 3] {
    [
        ("exclusive", Orb::builder),
        ("read", || shared(WaitStrategy::Read)),
        ("leader_followers", || shared(WaitStrategy::LeaderFollowers)),
    ]
}

fn shared(wait: WaitStrategy) -> OrbBuilder {
    Orb::builder().connection(ConnectionStrategy::Multiplexed { wait })
}

/// A reference of a new client.
pub(crate) fn object(world: &World, builder: OrbBuilder, reference: &str) -> ObjectRef {
    let orb = world.client(builder);
    orb.string_to_object(reference).expect("a reference")
}

/// Calls an object of a scripted server, which replies with [`rtorb_tests::fake::yes`].
pub(crate) fn call(object: &ObjectRef) -> Result<bool, SystemException> {
    object.is_a("IDL:Any:1.0")
}
