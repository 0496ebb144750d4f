//! Requests and servants without generated code, through real connections.

use std::pin::pin;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rtorb::any::Value;
use rtorb::type_code::TypeCode;
use rtorb::{ConnectionStrategy, ExceptionKind, Limits, ObjectRef, Orb, WaitStrategy};
use rtorb_dynamic::search::{Search, SearchError};
use rtorb_dynamic::walk::Part;
use rtorb_dynamic::{
    Deferred, Failure, Operation, Request, Results, Servant, Types, activate, repository,
};
use rtorb_tests::scratch::Scratch;
use serde_json::{Value as Json, json};

const IDL: &str = r#"
module Yard {
  exception Refused { string reason; long code; };
  exception Undeclared { long code; };
  enum Colour { red, green };
  struct Point { long x; double y; };
  typedef sequence<Point> Route;
  typedef octet Key[3];
  union Shape switch (Colour) { case red: long side; default: Route corners; };
  valuetype Base { public long number; public Base next; };
  valuetype Derived : truncatable Base { public string label; };
  valuetype Text string;
  struct Everything {
    Route route; Key key; Shape shape; Base base; Text text; fixed<7, 2> price; wstring wide; any extra; Object whom;
    unsigned long long big; wchar mark; boolean is_open; CORBA::TypeCode kind;
  };
  interface Party { readonly attribute string name; attribute long level; };
  interface Crane : Party {
    Everything echo(in Everything given);
    long mixed(in long given, inout long both, out string text) raises(Refused);
    void refuse(in long code) raises(Refused);
    oneway void note(in long number);
    long noted();
  };
};
"#;

static TYPES: LazyLock<Arc<Types>> = LazyLock::new(|| {
    let mut types = Types::default();
    types.add_text("yard.idl", IDL).unwrap();
    Arc::new(types)
});

#[derive(Default)]
struct Crane {
    level: AtomicI32,
    noted: AtomicI32,
    definition: Option<ObjectRef>,
}

impl Servant for Crane {
    fn call(&self, operation: &Operation, inputs: Vec<Value>) -> Result<Results, Failure> {
        let long = |place: usize| match inputs.get(place) {
            Some(Value::Long(number)) => *number,
            other => panic!("{other:?} is no long"),
        };
        let result = |returns| {
            Ok(Results {
                returns,
                outputs: Vec::new(),
            })
        };
        match operation.name.as_str() {
            "echo" => result(inputs.into_iter().next().unwrap()),
            "mixed" => Ok(Results {
                returns: Value::Long(long(0) * long(1)),
                outputs: vec![
                    Value::Long(long(0) + long(1)),
                    Value::String(format!("given={}", long(0))),
                ],
            }),
            "refuse" => {
                let id = match long(0) {
                    1 => "IDL:Yard/Refused:1.0",
                    _ => "IDL:Yard/Undeclared:1.0",
                };
                let mut members = vec![Value::Long(long(0))];
                if long(0) == 1 {
                    members.insert(0, Value::String("full".to_owned()));
                }
                Err(Failure::User {
                    type_code: TYPES.by_id(id).unwrap().clone(),
                    members,
                })
            }
            "note" => {
                self.noted.store(long(0), Ordering::SeqCst);
                Ok(Results::NONE)
            }
            "noted" => result(Value::Long(self.noted.load(Ordering::SeqCst))),
            "_get_name" => result(Value::String("crane".to_owned())),
            "_get_level" => result(Value::Long(self.level.load(Ordering::SeqCst))),
            "_set_level" => {
                self.level.store(long(0), Ordering::SeqCst);
                Ok(Results::NONE)
            }
            other => panic!("{other} is not declared"),
        }
    }

    fn interface_definition(&self) -> Option<ObjectRef> {
        self.definition.clone()
    }
}

/// The most requests that are deferred at a time.
const STARTED_MAX: usize = 50;

/// An ORB with a crane, and the reference of another ORB to it.
struct Yard {
    server: Orb,
    thread: Option<JoinHandle<()>>,
    client: Orb,
    crane: ObjectRef,
}

impl Yard {
    fn new(servant: impl FnOnce(&Orb) -> Crane) -> Self {
        let server = Orb::builder().build().unwrap();
        let poa = server.root_poa().unwrap();
        let interface = TYPES.interface("Yard::Crane").unwrap();
        let crane = activate(&poa, interface, &TYPES, servant(&server)).unwrap();
        let running = server.clone();
        let thread = Some(std::thread::spawn(move || running.run().unwrap()));
        let shared = ConnectionStrategy::Multiplexed {
            wait: WaitStrategy::LeaderFollowers,
        };
        let limits = Limits::with(|limits| limits.started_calls_max = STARTED_MAX);
        let client = Orb::builder().connection(shared).limits(limits);
        let client = client.build().unwrap();
        let crane = client
            .string_to_object(&server.object_to_string(&crane))
            .unwrap();
        Self {
            server,
            thread,
            client,
            crane,
        }
    }

    fn request(&self, name: &str, arguments: &[Json]) -> (Arc<Operation>, Request) {
        let interface = TYPES.interface_by_id(self.crane.type_id()).unwrap();
        let operation = interface.operation(name).unwrap();
        let inputs = operation.inputs_from_json(&TYPES, arguments).unwrap();
        let request = Request::new(&self.crane, &operation, &TYPES, inputs).unwrap();
        (operation, request)
    }

    fn call(&self, name: &str, arguments: &[Json]) -> Result<Json, Json> {
        let (operation, request) = self.request(name, arguments);
        let results = request.invoke().map_err(|it| it.to_json(&TYPES).unwrap())?;
        Ok(operation.results_to_json(&TYPES, &results).unwrap())
    }
}

impl Drop for Yard {
    fn drop(&mut self) {
        self.server.shutdown();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

#[test]
fn every_type_goes_there_and_back() {
    let yard = Yard::new(|_| Crane::default());
    let derived = json!({"type": "Yard::Derived", "number": 1, "next": {"number": 2, "next": null}, "label": "l"});
    let given = json!({
        "route": [{"x": 1, "y": 0.5}],
        "key": "hex:0a0b0c",
        "shape": {"d": "green", "v": [{"x": -1, "y": 1e300}]},
        "base": derived,
        "text": "boxed",
        "price": "-12345.67",
        "wide": "\u{3b1}",
        "extra": {"type": "Yard::Point", "value": {"x": 7, "y": 1.5}},
        "whom": yard.crane.to_string(),
        "big": "18446744073709551615",
        "mark": "\u{3b2}",
        "is_open": true,
        "kind": "sequence<Yard::Shape, 4>",
    });
    assert_eq!(yard.call("echo", std::slice::from_ref(&given)), Ok(given));
}

#[test]
fn parameters_go_in_every_direction() {
    let yard = Yard::new(|_| Crane::default());
    let results = yard.call("mixed", &[json!(3), json!(4)]);
    assert_eq!(
        results,
        Ok(json!({"return": 12, "both": 7, "text": "given=3"}))
    );
}

#[test]
fn exceptions_have_their_members() {
    let yard = Yard::new(|_| Crane::default());
    let refused = json!({"exception": "IDL:Yard/Refused:1.0", "reason": "full", "code": 1});
    assert_eq!(yard.call("refuse", &[json!(1)]), Err(refused));
    let unknown = yard.call("refuse", &[json!(2)]).unwrap_err();
    assert_eq!(unknown["exception"], "IDL:omg.org/CORBA/UNKNOWN:1.0");
    assert_eq!(unknown["completed"], "COMPLETED_YES");
}

#[test]
fn exceptions_come_back_from_json() {
    let crane = TYPES.interface("Yard::Crane").unwrap();
    let refuse = crane.operation("refuse").unwrap();
    for json in [
        json!({"exception": "IDL:Yard/Refused:1.0", "reason": "full", "code": 1}),
        json!({"exception": "IDL:omg.org/CORBA/TRANSIENT:1.0", "minor": 7, "completed": "COMPLETED_NO"}),
    ] {
        let failure = refuse.failure_from_json(&TYPES, &json).unwrap();
        assert_eq!(failure.to_json(&TYPES), Ok(json));
    }
    let told = |json: &Json| {
        refuse
            .failure_from_json(&TYPES, json)
            .unwrap_err()
            .to_string()
    };
    let undeclared = told(&json!({"exception": "IDL:Yard/Undeclared:1.0", "code": 1}));
    assert!(
        undeclared.contains("or one that refuse raises"),
        "{undeclared}"
    );
    let incomplete = told(&json!({"exception": "IDL:Yard/Refused:1.0", "code": 1}));
    assert!(incomplete.contains("`reason` is missing"), "{incomplete}");
}

#[test]
fn attributes_oneways_and_deferred_requests_are_calls() {
    let yard = Yard::new(|_| Crane::default());
    assert_eq!(yard.call("name", &[]), Ok(json!("crane")));
    assert_eq!(yard.call("_set_level", &[json!(5)]), Ok(Json::Null));
    assert_eq!(yard.call("_get_level", &[]), Ok(json!(5)));
    assert_eq!(yard.call("note", &[json!(9)]), Ok(Json::Null));
    let (_, noted) = yard.request("noted", &[]);
    // The oneway and the request use one connection, so they arrive in this order.
    assert_eq!(noted.invoke().unwrap().returns, Value::Long(9));
    assert_eq!(noted.defer().wait().unwrap().returns, Value::Long(9));
    let (_, note) = yard.request("note", &[json!(10)]);
    let mut note = note.defer();
    assert!(note.is_ready());
    assert_eq!(note.wait_until(Instant::now()), Some(Ok(Results::NONE)));
    assert_eq!(note.wait(), Ok(Results::NONE));
    let mut waiting = noted.defer();
    let outcome = waiting.wait_until(Instant::now() + Duration::from_secs(30));
    assert_eq!(outcome.unwrap().unwrap().returns, Value::Long(10));
    let Some(Err(Failure::System(taken))) = waiting.wait_until(Instant::now()) else {
        panic!("its reply was taken");
    };
    assert_eq!(taken.kind, ExceptionKind::BadInvOrder);
    assert_eq!(yard.crane.is_a("IDL:Yard/Party:1.0"), Ok(true));
    assert_eq!(yard.crane.is_a("IDL:Yard/Point:1.0"), Ok(false));
    let unknown = yard
        .crane
        .invoke("no_such", |_| Ok(()), |_| Ok(()))
        .unwrap_err();
    assert_eq!(unknown.kind, ExceptionKind::BadOperation);
}

/// Polls a deferred request until it has ended; `read` receives its reply.
fn polled(deferred: Deferred, read: impl Fn()) -> Result<Results, Failure> {
    let mut deferred = pin!(deferred);
    loop {
        match deferred
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(ended) => return ended,
            Poll::Pending => read(),
        }
    }
}

#[test]
fn deferred_requests_are_started_calls_whose_replies_anyone_receives() {
    let yard = Yard::new(|_| Crane::default());
    let (mixed, request) = yard.request("mixed", &[json!(3), json!(4)]);
    let ended =
        |results: Result<Results, Failure>| mixed.results_to_json(&TYPES, &results.unwrap());
    let expected = json!({"return": 12, "both": 7, "text": "given=3"});
    let deferred: Vec<_> = (0..STARTED_MAX).map(|_| request.defer()).collect();
    // They are started calls.
    let Err(Failure::System(refused)) = request.defer().wait() else {
        panic!("there is one too many");
    };
    assert_eq!(refused.kind, ExceptionKind::NoResources);
    for one in deferred {
        assert_eq!(ended(one.wait()), Ok(expected.clone()));
    }
    let replies = yard.client.reply_driver().unwrap();
    let read = || assert!(replies.run_once(None));
    assert_eq!(ended(polled(request.defer(), read)), Ok(expected.clone()));
    // Nobody else receives its reply.
    let mut one = request.defer();
    while !one.is_ready() {}
    assert_eq!(ended(one.wait()), Ok(expected));
}

#[test]
fn a_deferred_request_ends_with_the_exception_of_its_call() {
    let yard = Yard::new(|_| Crane::default());
    let (refuse, request) = yard.request("refuse", &[json!(1)]);
    let refused = request.defer().wait().unwrap_err();
    let expected = json!({"exception": "IDL:Yard/Refused:1.0", "reason": "full", "code": 1});
    assert_eq!(refused.to_json(&TYPES), Ok(expected));
    let exclusive = Orb::builder().build().unwrap();
    let crane = exclusive.string_to_object(&yard.crane.to_string()).unwrap();
    let inputs = refuse.inputs_from_json(&TYPES, &[json!(1)]).unwrap();
    let request = Request::new(&crane, &refuse, &TYPES, inputs).unwrap();
    let mut deferred = request.defer();
    assert!(deferred.is_ready());
    let Err(Failure::System(refused)) = deferred.wait() else {
        panic!("calls are started on shared connections");
    };
    assert_eq!(refused.kind, ExceptionKind::InvPolicy);
}

#[test]
fn a_value_is_walked_part_by_part() {
    let base = TYPES.parse("Yard::Base").unwrap();
    let json = json!({"type": "Yard::Derived", "number": 1, "next": {"number": 2, "next": null}, "label": "l"});
    let value = rtorb_dynamic::json::from_json(&TYPES, &json, &base).unwrap();
    let whole = Part::whole(&TYPES, &value, &base);
    let names: Vec<_> = whole
        .parts()
        .iter()
        .map(|part| part.name().to_owned())
        .collect();
    assert_eq!(names, ["number", "next", "label"]);
    assert_eq!(whole.at("next.number").unwrap().value(), &Value::Long(2));
    assert!(whole.at("next.next.number").is_none());
    let routes = TYPES.parse("sequence<Yard::Route>").unwrap();
    let value = rtorb_dynamic::json::from_json(&TYPES, &json!([[{"x": 1, "y": 2}]]), &routes);
    let value = value.unwrap();
    let y = Part::whole(&TYPES, &value, &routes).at("[0][0].y").unwrap();
    assert_eq!(
        (y.value(), y.type_code()),
        (&Value::Double(2.0), &TypeCode::DOUBLE)
    );
}

#[test]
fn a_caller_may_state_the_operation() {
    let yard = Yard::new(|_| Crane::default());
    let stated = Operation {
        name: "noted".to_owned(),
        parameters: Vec::new(),
        is_oneway: false,
        returns: TypeCode::LONG,
        raises: Vec::new(),
        has_context: false,
    };
    let types = Arc::new(Types::default());
    let request = Request::new(&yard.crane, &Arc::new(stated), &types, Vec::new()).unwrap();
    assert_eq!(request.invoke().unwrap().returns, Value::Long(0));
}

/// An interface repository with one interface.
struct Definition;

impl Servant for Definition {
    fn call(&self, _: &Operation, _: Vec<Value>) -> Result<Results, Failure> {
        let text = |text: &str| Value::String(text.to_owned());
        let head = |name: &str| {
            let id = format!("IDL:Yard/Crane/{name}:1.0");
            [
                text(name),
                text(&id),
                text("IDL:Yard/Crane:1.0"),
                text("1.0"),
            ]
        };
        let refused = TYPES.by_id("IDL:Yard/Refused:1.0").unwrap().clone();
        let mut exception = head("Refused").to_vec();
        exception.push(Value::TypeCode(refused));
        let parameter = vec![
            text("code"),
            Value::TypeCode(TypeCode::LONG),
            Value::Reference(rtorb::ior::Ior::NIL),
            Value::Enum(0),
        ];
        let mut refuse = head("refuse").to_vec();
        refuse.extend([
            Value::TypeCode(TypeCode::VOID),
            Value::Enum(0),
            Value::Elements(Vec::new()),
            Value::Elements(vec![Value::Members(parameter)]),
            Value::Elements(vec![Value::Members(exception)]),
        ]);
        let mut level = head("level").to_vec();
        level.extend([Value::TypeCode(TypeCode::LONG), Value::Enum(0)]);
        let returns = Value::Members(vec![
            text("Crane"),
            text("IDL:Yard/Crane:1.0"),
            text("IDL:Yard:1.0"),
            text("1.0"),
            Value::Elements(vec![Value::Members(refuse)]),
            Value::Elements(vec![Value::Members(level)]),
            Value::Elements(vec![text("IDL:Yard/Party:1.0")]),
            Value::TypeCode(TypeCode::object_reference("IDL:Yard/Crane:1.0", "Crane")),
        ]);
        Ok(Results {
            returns,
            outputs: Vec::new(),
        })
    }
}

#[test]
fn an_interface_repository_describes_an_object() {
    let yard = Yard::new(|server| {
        let types = Arc::new(repository::repository_types());
        let interface = types.interface("Repository::InterfaceDef").unwrap();
        let poa = server.root_poa().unwrap();
        let definition = activate(&poa, interface, &types, Definition).unwrap();
        Crane {
            definition: Some(definition),
            ..Crane::default()
        }
    });
    let found = Search::default().interface_of(&yard.crane, Some("refuse"));
    assert_eq!(found.unwrap().interface.name, "Yard::Crane");
    let mut types = Types::default();
    let interface = repository::interface_of(&yard.crane, &mut types).unwrap();
    let types = Arc::new(types);
    assert_eq!(interface.name, "Yard::Crane");
    assert!(interface.is_a("IDL:Yard/Party:1.0"));
    let refuse = interface.operation("refuse").unwrap();
    assert_eq!(
        refuse.signature(&types),
        "void refuse(in long code) raises(Yard::Refused)"
    );
    let inputs = refuse.inputs_from_json(&types, &[json!(1)]).unwrap();
    let request = Request::new(&yard.crane, &refuse, &types, inputs).unwrap();
    let failure = request.invoke().unwrap_err().to_json(&types).unwrap();
    let expected = json!({"exception": "IDL:Yard/Refused:1.0", "reason": "full", "code": 1});
    assert_eq!(failure, expected);
    let set = interface.operation("_set_level").unwrap();
    let inputs = set.inputs_from_json(&types, &[json!(3)]).unwrap();
    Request::new(&yard.crane, &set, &types, inputs)
        .unwrap()
        .invoke()
        .unwrap();
    assert_eq!(yard.call("level", &[]), Ok(json!(3)));
}

#[test]
fn an_object_without_a_repository_says_so() {
    let yard = Yard::new(|_| Crane::default());
    let refused = repository::interface_of(&yard.crane, &mut Types::default()).unwrap_err();
    assert_eq!(refused.kind, ExceptionKind::IntfRepos);
    let error = Search::default()
        .interface_of(&yard.crane, Some("refuse"))
        .unwrap_err();
    assert!(matches!(&error, SearchError::NotFound { type_id } if type_id == "IDL:Yard/Crane:1.0"));
}

#[test]
fn an_object_whose_reference_has_an_unknown_type_is_asked_for_its_interface() {
    let yard = Yard::new(|_| Crane::default());
    let mut ior = yard.crane.ior().clone();
    ior.type_id = "IDL:Elsewhere/Crane:1.0".into();
    let crane = yard.client.string_to_object(&ior.to_string()).unwrap();
    let folder = Scratch::new();
    std::fs::write(folder.join("yard.idl"), IDL).unwrap();
    let search = Search {
        folders: vec![folder.join("")],
        ..Search::default()
    };
    let found = search.interface_of(&crane, None).unwrap();
    assert_eq!(found.interface.name, "Yard::Crane");
}

#[test]
fn the_place_of_a_character_that_cannot_be_sent_is_named() {
    let yard = Yard::new(|_| Crane::default());
    let mut types = Types::default();
    let idl = "struct Line { string text; char mark; }; typedef sequence<Line> Lines; \
        interface Board { void write(in long place, in Lines lines, in wchar end); };";
    types.add_text("board.idl", idl).unwrap();
    let types = Arc::new(types);
    let operation = types.interface_by_id("IDL:Board:1.0").unwrap();
    let operation = operation.operation("write").unwrap();
    for (mark, end, place) in [
        ("\u{e9}", "x", Some("argument 2 (lines)[1].mark")),
        ("x", "\u{1f600}", Some("argument 3 (end)")),
        ("x", "x", None),
    ] {
        let lines = json!([{"text": "\u{e9}", "mark": "x"}, {"text": "", "mark": mark}]);
        let arguments = [json!(1), lines, json!(end)];
        let inputs = operation.inputs_from_json(&types, &arguments).unwrap();
        let request = Request::new(&yard.crane, &operation, &types, inputs).unwrap();
        let Err(Failure::System(exception)) = request.invoke() else {
            panic!("a crane is no board");
        };
        assert_eq!(request.unsent_place(&exception).as_deref(), place);
    }
}
