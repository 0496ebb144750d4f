//! Servants that answer after they have returned.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::JoinHandle;
use std::time::Duration;

use rtorb::any::Value;
use rtorb::{CompletionStatus, ExceptionKind, ObjectRef, Orb, SystemException};
use rtorb_dynamic::{
    DeferrableReply, DeferringServant, DynamicResponder, Failure, Interface, Operation, Request,
    Results, Types, activate_deferring,
};

const IDL: &str = "exception Full { long level; }; exception Other {};
    interface Tank { long fill(in long litres, out string text) raises(Full); };";
/// Long enough for the request to arrive on a busy host.
const DEADLINE: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(60);

/// A servant that answers negative amounts at once, loses zero, and gives its other responders to the test.
struct Tank {
    responders: Mutex<Sender<DynamicResponder>>,
}

impl DeferringServant for Tank {
    fn begin(
        &self,
        _: &Arc<Operation>,
        inputs: Vec<Value>,
        reply: &mut DeferrableReply<'_, '_>,
    ) -> Option<Result<Results, Failure>> {
        match &*inputs {
            [Value::Long(litres)] if *litres < 0 => Some(Ok(filled(*litres))),
            [Value::Long(0)] => None,
            _ => {
                let responder = match reply.defer() {
                    Ok(responder) => responder,
                    Err(exception) => return Some(Err(exception.into())),
                };
                self.responders.lock().unwrap().send(responder).unwrap();
                None
            }
        }
    }
}

fn filled(level: i32) -> Results {
    Results {
        returns: Value::Long(level),
        outputs: vec![Value::String("filled".to_owned())],
    }
}

/// An ORB with a tank, and the reference of another ORB to it.
struct Plant {
    server: Orb,
    thread: Option<JoinHandle<()>>,
    tank: ObjectRef,
    interface: Arc<Interface>,
    types: Arc<Types>,
    responders: Mutex<Receiver<DynamicResponder>>,
}

impl Plant {
    fn new() -> Self {
        let mut types = Types::default();
        types.add_text("tank.idl", IDL).unwrap();
        let types = Arc::new(types);
        let interface = Arc::clone(types.interface("Tank").unwrap());
        let (sender, responders) = channel();
        let server = Orb::builder().build().unwrap();
        let root = server.root_poa().unwrap();
        let servant = Tank {
            responders: Mutex::new(sender),
        };
        let own = activate_deferring(&root, &interface, &types, servant).unwrap();
        let running = server.clone();
        let thread = Some(std::thread::spawn(move || running.run().unwrap()));
        let client = Orb::builder().build().unwrap();
        let tank = client.string_to_object(&own.to_string()).unwrap();
        Self {
            server,
            thread,
            tank,
            interface,
            types,
            responders: Mutex::new(responders),
        }
    }

    fn fill(&self, litres: i32) -> Result<Results, Failure> {
        let operation = self.interface.operation("fill").unwrap();
        Request::new(
            &self.tank,
            &operation,
            &self.types,
            vec![Value::Long(litres)],
        )
        .unwrap()
        .invoke()
    }

    fn next_responder(&self) -> DynamicResponder {
        let responders = self.responders.lock().unwrap();
        responders.recv_timeout(PATIENCE).unwrap()
    }

    /// Calls the tank while `respond` answers.
    fn answered(&self, respond: impl FnOnce(DynamicResponder)) -> Result<Results, Failure> {
        std::thread::scope(|scope| {
            let call = scope.spawn(|| self.fill(5));
            respond(self.next_responder());
            call.join().unwrap()
        })
    }

    /// The exception with these members.
    fn failure(&self, id: &str, members: Vec<Value>) -> Failure {
        Failure::User {
            type_code: self.types.by_id(id).unwrap().clone(),
            members,
        }
    }
}

impl Drop for Plant {
    fn drop(&mut self) {
        self.server.shutdown();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn kind_of(outcome: Result<Results, Failure>) -> (ExceptionKind, CompletionStatus) {
    match outcome {
        Err(Failure::System(exception)) => (exception.kind, exception.completed),
        other => panic!("{other:?} is no system exception"),
    }
}

#[test]
fn a_servant_answers_at_once_or_later() {
    let plant = Plant::new();
    assert_eq!(plant.fill(-1), Ok(filled(-1)));
    assert_eq!(
        plant.answered(|it| it.respond(Ok(filled(5)))),
        Ok(filled(5))
    );

    let full = plant.failure("IDL:Full:1.0", vec![Value::Long(9)]);
    let given = full.clone();
    assert_eq!(plant.answered(|it| it.respond(Err(given))), Err(full));

    let refused = SystemException::new(ExceptionKind::NoPermission, 7, CompletionStatus::No);
    let outcome = plant.answered(|it| it.respond(Err(refused.into())));
    assert_eq!(
        kind_of(outcome),
        (ExceptionKind::NoPermission, CompletionStatus::No)
    );
}

#[test]
fn an_answer_that_does_not_fit_or_is_missing_is_an_exception() {
    let plant = Plant::new();
    let other = plant.failure("IDL:Other:1.0", Vec::new());
    let outcome = plant.answered(|it| it.respond(Err(other)));
    assert_eq!(
        kind_of(outcome),
        (ExceptionKind::Unknown, CompletionStatus::Yes)
    );
    let short = plant.answered(|it| it.respond(Ok(Results::NONE)));
    assert!(matches!(short, Err(Failure::System(_))), "{short:?}");

    let lost = (ExceptionKind::NoResponse, CompletionStatus::Maybe);
    assert_eq!(kind_of(plant.answered(drop)), lost);
    assert_eq!(kind_of(plant.fill(0)), lost);
}

struct Woken(Mutex<Sender<()>>);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        let _ = self.0.lock().unwrap().send(());
    }
}

#[test]
fn a_responder_learns_that_the_deadline_has_passed() {
    let plant = Plant::new();
    let (sender, woken) = channel();
    let waker = Waker::from(Arc::new(Woken(Mutex::new(sender))));
    std::thread::scope(|scope| {
        let call = scope.spawn(|| rtorb::with_deadline(DEADLINE, || plant.fill(5)));
        let responder = plant.next_responder();
        assert!(responder.remaining().is_some());
        let mut context = Context::from_waker(&waker);
        while responder.poll_cancelled(&mut context) == Poll::Pending {
            woken.recv_timeout(PATIENCE).unwrap();
        }
        assert!(responder.is_cancelled());
        assert_eq!(kind_of(call.join().unwrap()).0, ExceptionKind::Timeout);
        responder.respond(Ok(filled(5)));
    });
    // If the ORB has answered with TIMEOUT, the answer reaches nobody. If the client's cancellation came first, the ORB still sends it.
    let counts = plant.server.deferred_replies();
    assert_eq!(counts.undelivered, counts.expired);
}
