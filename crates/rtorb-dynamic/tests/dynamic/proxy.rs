//! Calls that pass as bytes: nothing about their types is known where they pass.
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread::JoinHandle;

use rtorb::any::Value;
use rtorb::cdr::ByteOrder;
use rtorb::{ExceptionKind, ObjectRef, Orb};
use rtorb_dynamic::recording::Record;
use rtorb_dynamic::{Failure, Operation, Proxy, Request, Results, Servant, Types, activate};
use serde_json::{Value as Json, json};

const IDL: &str = r#"
module Yard {
  exception Refused { octet level; double why; };
  valuetype Base { public long number; public Base next; };
  struct Everything { octet first; double second; string text; Base base; any extra; Object whom; sequence<octet> key; };
  interface Party { };
  interface Crane : Party {
    Everything echo(in octet before, in Everything given);
    void refuse(in octet level) raises(Refused);
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
    noted: AtomicI32,
}

impl Servant for Crane {
    fn call(&self, operation: &Operation, mut inputs: Vec<Value>) -> Result<Results, Failure> {
        let returns = match &*operation.name {
            "echo" => inputs.remove(1),
            "refuse" => {
                let type_code = operation.exception("IDL:Yard/Refused:1.0").unwrap().clone();
                let members = vec![inputs.remove(0), Value::Double(0.5)];
                return Err(Failure::User { type_code, members });
            }
            "note" => {
                if let Value::Long(number) = inputs[0] {
                    self.noted.store(number, Ordering::SeqCst);
                }
                Value::Nothing
            }
            _ => Value::Long(self.noted.load(Ordering::SeqCst)),
        };
        let outputs = Vec::new();
        Ok(Results { returns, outputs })
    }
}

/// An ORB with a crane, one that passes its calls on as bytes, and a client of that.
struct Yard {
    servers: [(Orb, Option<JoinHandle<()>>); 2],
    client: Orb,
    crane: ObjectRef,
    records: Arc<Mutex<Vec<Record>>>,
}

/// The byte orders of the three.
struct Orders {
    target: ByteOrder,
    client: ByteOrder,
}

impl Yard {
    fn new(orders: &Orders) -> Self {
        let target = Orb::builder().byte_order(orders.target).build().unwrap();
        let interface = TYPES.interface("Yard::Crane").unwrap();
        let poa = target.root_poa().unwrap();
        let crane = activate(&poa, interface, &TYPES, Crane::default()).unwrap();
        let proxy = Orb::builder().build().unwrap();
        let text = target.object_to_string(&crane);
        let object = proxy.string_to_object(&text).unwrap();
        let records = Arc::new(Mutex::new(Vec::new()));
        let own = Arc::clone(&records);
        let sink = move |record: &Record| own.lock().unwrap().push(record.clone());
        let servant = Proxy::new(object, &proxy, sink);
        let passed = proxy.root_poa().unwrap().activate_dynamic(servant).unwrap();
        let client = Orb::builder().byte_order(orders.client).build().unwrap();
        let text = proxy.object_to_string(&passed);
        let crane = client.string_to_object(&text).unwrap();
        let servers = [target, proxy].map(|orb| {
            let running = orb.clone();
            let thread = std::thread::spawn(move || running.run().unwrap());
            (orb, Some(thread))
        });
        Self {
            servers,
            client,
            crane,
            records,
        }
    }

    fn call(&self, name: &str, arguments: &[Json]) -> Result<Json, Json> {
        let interface = TYPES.interface("Yard::Crane").unwrap();
        let operation = interface.operation(name).unwrap();
        let inputs = operation.inputs_from_json(&TYPES, arguments).unwrap();
        let request = Request::new(&self.crane, &operation, &TYPES, inputs).unwrap();
        let results = request.invoke().map_err(|it| it.to_json(&TYPES).unwrap())?;
        Ok(operation.results_to_json(&TYPES, &results).unwrap())
    }

    fn last(&self) -> Record {
        self.records.lock().unwrap().last().unwrap().clone()
    }
}

impl Drop for Yard {
    fn drop(&mut self) {
        for (orb, thread) in &mut self.servers {
            orb.shutdown();
            let _ = thread.take().map(JoinHandle::join);
        }
    }
}

const NATIVE: Orders = Orders {
    target: ByteOrder::NATIVE,
    client: ByteOrder::NATIVE,
};
const FOREIGN: ByteOrder = match ByteOrder::NATIVE {
    ByteOrder::Little => ByteOrder::Big,
    ByteOrder::Big => ByteOrder::Little,
};

fn given(yard: &Yard) -> Json {
    json!({
        "first": 1,
        "second": 0.5,
        "text": "gr\u{fc}n",
        "base": {"number": 1, "next": {"number": 2, "next": null}},
        "extra": {"type": "Yard::Base", "value": {"number": 3, "next": null}},
        "whom": yard.client.object_to_string(&yard.crane),
        "key": format!("hex:{}", "0a".repeat(100_000)),
    })
}

#[test]
fn every_value_passes_unchanged() {
    let yard = Yard::new(&NATIVE);
    let given = given(&yard);
    let back = yard.call("echo", &[json!(7), given.clone()]);
    assert_eq!(back, Ok(given));
    let record = yard.last();
    let argument = record.arguments["octets"].as_str().unwrap();
    assert!(argument.starts_with("hex:0701"), "{argument}");
    assert!(record.answer.unwrap()["octets"].is_string());
    assert!(record.missing.is_some(), "it cannot be replayed");
}

#[test]
fn exceptions_and_oneways_pass() {
    let yard = Yard::new(&NATIVE);
    let refused = json!({"exception": "IDL:Yard/Refused:1.0", "level": 9, "why": 0.5});
    assert_eq!(yard.call("refuse", &[json!(9)]), Err(refused));
    let raised = yard.last().raises.unwrap();
    assert_eq!(raised["exception"], "IDL:Yard/Refused:1.0");
    assert!(raised["octets"].as_str().unwrap().starts_with("hex:09"));
    assert_eq!(yard.call("note", &[json!(5)]), Ok(Json::Null));
    assert_eq!(yard.call("noted", &[]), Ok(json!(5)));
    let shown = yard.last().to_string();
    assert!(
        shown.contains(r#"noted() = {"octets":"hex:05000000"}"#),
        "{shown}"
    );
    let unknown = yard.crane.invoke("no_such", |_| Ok(()), |_| Ok(()));
    assert_eq!(unknown.unwrap_err().kind, ExceptionKind::BadOperation);
    assert_eq!(
        yard.last().raises.unwrap()["exception"],
        "IDL:omg.org/CORBA/BAD_OPERATION:1.0"
    );
    assert_eq!(yard.crane.is_a("IDL:Yard/Party:1.0"), Ok(true));
    assert_eq!(yard.crane.is_a("IDL:Yard/Base:1.0"), Ok(false));
}

#[test]
fn bytes_of_another_order_pass() {
    for orders in [
        Orders {
            client: FOREIGN,
            ..NATIVE
        },
        Orders {
            target: FOREIGN,
            ..NATIVE
        },
    ] {
        let yard = Yard::new(&orders);
        let given = given(&yard);
        assert_eq!(yard.call("echo", &[json!(7), given.clone()]), Ok(given));
        let refused = yard.call("refuse", &[json!(9)]).unwrap_err();
        assert_eq!(refused["why"], json!(0.5));
        assert_eq!(yard.call("note", &[json!(5)]), Ok(Json::Null));
        assert_eq!(yard.call("noted", &[]), Ok(json!(5)));
    }
}
