//! Calls of omniORB's and JacORB's objects in JSON, as `rtorb call` makes them: no generated code on our side.

use std::path::Path;

use rtorb::Orb;
use rtorb_dynamic::Request;
use rtorb_dynamic::search::Search;
use rtorb_tests::peers::jacorb::jacorb;
use rtorb_tests::peers::omniorb::{Endpoint, omniorb};
use rtorb_tests::scratch::Scratch;
use serde_json::{Value as Json, json};

/// A caller that knows the built-in IDL and some files.
pub(super) struct Caller {
    orb: Orb,
    search: Search,
}

impl Caller {
    fn new(files: &[&str]) -> Self {
        let idl = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/rtorb-idl/idl");
        Self {
            orb: Orb::builder().build().expect("nothing is opened"),
            search: Search {
                files: files.iter().map(|file| idl.join(file)).collect(),
                ..Search::default()
            },
        }
    }

    /// A caller that also knows the IDL in a folder, of objects of that interface, or of the one that they say.
    pub(super) fn in_folder(folder: &str, interface: Option<&str>) -> Self {
        let mut caller = Self::new(&[]);
        caller.search.folders.push(folder.into());
        caller.search.interface = interface.map(str::to_owned);
        caller
    }

    /// The JSON of the results; that of an exception is an error.
    pub(super) fn call(
        &self,
        reference: &str,
        operation: &str,
        arguments: &[Json],
    ) -> Result<Json, Json> {
        let object = self.orb.string_to_object(reference).expect("a reference");
        let found = self
            .search
            .interface_of(&object, Some(operation))
            .expect("an interface");
        let operation = found
            .interface
            .operation(operation)
            .expect("it has the operation");
        let texts: Vec<_> = arguments.iter().map(Json::to_string).collect();
        let inputs = operation.inputs_from_text(&found.types, &texts);
        let inputs = inputs.unwrap_or_else(|error| panic!("{error}"));
        let request = Request::new(&object, &operation, &found.types, inputs);
        let results = request.expect("it can be sent").invoke();
        let results = results.map_err(|it| it.to_json(&found.types).expect("JSON"))?;
        Ok(operation
            .results_to_json(&found.types, &results)
            .expect("JSON"))
    }
}

fn name(id: &str) -> Json {
    json!([{"id": id, "kind": "k"}])
}

#[test]
fn every_operation_of_omninames_without_idl() {
    let Some(omniorb) = omniorb() else { return };
    let scratch = Scratch::new();
    let (_names, address) = omniorb.names(&scratch);
    let root = format!("corbaloc:iiop:1.2@{address}/NameService");
    let caller = Caller::new(&[]);
    let call = |operation: &str, arguments: &[Json]| caller.call(&root, operation, arguments);
    let done = Ok(Json::Null);

    let not_found = call("resolve", &[name("a")]).expect_err("nothing is bound");
    assert_eq!(
        not_found,
        json!({
            "exception": "IDL:omg.org/CosNaming/NamingContext/NotFound:1.0",
            "why": "missing_node",
            "rest_of_name": name("a"),
        })
    );
    let object = caller.orb.string_to_object(&root).expect("a reference");
    let found = caller.search.interface_of(&object, Some("nonsense"));
    let interface = found.expect("an interface without the operation").interface;
    assert_eq!(interface.name, "CosNaming::NamingContextExt");
    let object = json!("corbaloc:iiop:1.2@plant:2809/Drive");
    assert_eq!(call("bind", &[name("a"), object.clone()]), done);
    let bound = call("bind", &[name("a"), object.clone()]).expect_err("it is bound");
    let already = json!({"exception": "IDL:omg.org/CosNaming/NamingContext/AlreadyBound:1.0"});
    assert_eq!(bound, already);
    assert_eq!(call("rebind", &[name("a"), object]), done);
    let resolved = call("resolve", &[name("a")]).expect("it is bound");
    assert!(
        resolved.as_str().is_some_and(|it| it.starts_with("IOR:")),
        "{resolved}"
    );
    assert_eq!(call("resolve_str", &[json!("a.k")]), Ok(resolved));

    let context = call("new_context", &[]).expect("a context");
    assert_eq!(call("bind_context", &[name("b"), context.clone()]), done);
    assert_eq!(call("rebind_context", &[name("b"), context.clone()]), done);
    let inner = call("bind_new_context", &[name("c")]).expect("a context");
    assert_eq!(call("to_string", &[name("a/b")]), Ok(json!(r"a\/b.k")));
    assert_eq!(call("to_name", &[json!("a.k")]), Ok(name("a")));
    let url = call("to_url", &[json!(":plant:2809"), json!("a.k")]);
    assert_eq!(url, Ok(json!("corbaname::plant:2809#a.k")));

    let listed = call("list", &[json!(1)]).expect("a list");
    assert_eq!(listed["bl"].as_array().map(Vec::len), Some(1), "{listed}");
    let iterator = listed["bi"].as_str().expect("there are more").to_owned();
    let next = caller.call(&iterator, "next_one", &[]).expect("a binding");
    assert_eq!(
        (&next["return"], &next["b"]["binding_name"][0]["kind"]),
        (&json!(true), &json!("k"))
    );
    let rest = caller
        .call(&iterator, "next_n", &[json!(10)])
        .expect("bindings");
    assert_eq!(rest["bl"].as_array().map(Vec::len), Some(1), "{rest}");
    let end = caller.call(&iterator, "next_one", &[]).expect("the end");
    assert_eq!(end["return"], json!(false));
    assert_eq!(caller.call(&iterator, "destroy", &[]), done);

    assert_eq!(call("unbind", &[name("c")]), done);
    let inner = inner.as_str().expect("a reference");
    assert_eq!(caller.call(inner, "destroy", &[]), done);
    let gone = caller.call(inner, "list", &[json!(1)]);
    let not_exist = json!("IDL:omg.org/CORBA/OBJECT_NOT_EXIST:1.0");
    assert_eq!(gone.expect_err("it is gone")["exception"], not_exist);
}

/// Calls every operation of a Desk.
fn check_desk(caller: &Caller, desk: &str) {
    let call = |operation: &str, arguments: &[Json]| caller.call(desk, operation, arguments);
    let echoes = |operation: &str, value: Json| {
        assert_eq!(
            call(operation, std::slice::from_ref(&value)),
            Ok(value),
            "{operation}"
        );
    };
    echoes("echo_string", json!("caf\u{e9} \"quoted\""));
    echoes("echo_wstring", json!("\u{3b1}\u{20ac}"));
    echoes("echo_texts", json!(["", "two", "three"]));
    echoes(
        "echo_person",
        json!({
            "name": "Ada",
            "nickname": "\u{3b1}",
            "titles": ["countess"],
            "initial": "A",
            "mark": "\u{3b2}",
            "present": true,
            "height": 1.625,
            "born": "-9223372036854775808",
            "id": "18446744073709551615",
            "weight": 0.1,
            "house": 65535,
        }),
    );
    let mixed = call("mixed", &[json!(3), json!(4)]);
    assert_eq!(
        mixed,
        Ok(json!({"return": 12, "both": 7, "text": "given=3"}))
    );
    assert_eq!(call("refuse", &[json!(0), json!("")]), Ok(Json::Null));
    let refused = json!({"exception": "IDL:Exchange/Refused:1.0", "reason": "closed", "code": 5});
    assert_eq!(call("refuse", &[json!(5), json!("closed")]), Err(refused));
    let empty = json!({"exception": "IDL:Exchange/Empty:1.0"});
    assert_eq!(call("refuse", &[json!(-1), json!("")]), Err(empty));
    let failed = json!({
        "exception": "IDL:omg.org/CORBA/NO_PERMISSION:1.0",
        "minor": 77,
        "completed": "COMPLETED_MAYBE",
    });
    assert_eq!(call("fail", &[json!(77)]), Err(failed));
    for operation in ["echo_object", "echo_desk"] {
        echoes(operation, Json::Null);
        let same = call(operation, &[json!(desk)]).expect("a reference");
        let same = same.as_str().expect("it is not nil");
        assert_eq!(
            caller.call(same, "level", &[]),
            call("_get_level", &[]),
            "{operation}"
        );
    }
    assert_eq!(call("_set_level", &[json!(41)]), Ok(Json::Null));
    assert_eq!(call("_get_level", &[]), Ok(json!(41)));
    assert!(call("name", &[]).is_ok_and(|name| name.is_string()));
    assert_eq!(call("note", &[json!(1)]), Ok(Json::Null));
    assert!(call("noted", &[]).is_ok_and(|count| count.is_number()));
    assert_eq!(call("sleep", &[json!(1)]), Ok(Json::Null));
}

#[test]
fn every_operation_of_omniorbs_desk() {
    let Some(omniorb) = omniorb() else { return };
    let scratch = Scratch::new();
    let (_desks, desk) = omniorb.serve("desk_server", &scratch, Endpoint::Tcp, &[]);
    check_desk(&Caller::new(&["exchange.idl"]), &desk);
}

/// Calls every operation of a Cubit but `shutdown`.
fn check_cubit(caller: &Caller, cubit: &str) {
    let many = |l: i32, s: i16, o: u8| json!({"l": l, "s": s, "o": o});
    let output = |value: Json| json!({"return": null, "output": value});
    for (operation, argument, expected) in [
        ("cube_octet", json!(3), json!(27)),
        ("cube_short", json!(-3), json!(-27)),
        ("cube_long", json!(4), json!(64)),
        ("cube_struct", many(2, 3, 4), many(8, 27, 64)),
        (
            "cube_union",
            json!({"d": "e_1st", "v": 2}),
            json!({"d": "e_1st", "v": 8}),
        ),
        (
            "cube_any",
            json!({"type": "short", "value": 2}),
            json!({"type": "short", "value": 8}),
        ),
        ("cube_long_sequence", json!([1, -2]), output(json!([1, -8]))),
        (
            "cube_octet_sequence",
            json!("hex:0203"),
            output(json!("hex:081b")),
        ),
        (
            "cube_many_sequence",
            json!([many(1, 2, 3)]),
            output(json!([many(1, 8, 27)])),
        ),
    ] {
        assert_eq!(
            caller.call(cubit, operation, &[argument]),
            Ok(expected),
            "{operation}"
        );
    }
    for operation in ["cube_void", "cube_oneway"] {
        assert_eq!(
            caller.call(cubit, operation, &[]),
            Ok(Json::Null),
            "{operation}"
        );
    }
}

#[test]
fn every_operation_of_omniorbs_cubit() {
    let Some(omniorb) = omniorb() else { return };
    let scratch = Scratch::new();
    let (_cubits, cubit) = omniorb.serve("cubit_server", &scratch, Endpoint::Tcp, &[]);
    check_cubit(&Caller::new(&[]), &cubit);
}

#[test]
fn every_operation_of_jacorbs_objects() {
    let Some(jacorb) = jacorb() else { return };
    let scratch = Scratch::new();
    let (_desks, desk) = jacorb.serve("DeskServer", &scratch);
    check_desk(&Caller::new(&["exchange.idl"]), &desk);
    let (_cubits, cubit) = jacorb.serve("CubitServer", &scratch);
    check_cubit(&Caller::new(&[]), &cubit);
}

#[test]
fn valuetypes_of_omniorb_null_shared_boxed_and_truncated() {
    let Some(omniorb) = omniorb() else { return };
    let scratch = Scratch::new();
    let (_guides, guide) = omniorb.serve("atlas_server", &scratch, Endpoint::Tcp, &[]);
    let caller = Caller::new(&["atlas.idl"]);
    let call = |operation: &str, arguments: &[Json]| caller.call(&guide, operation, arguments);
    let point = json!({"x": 1, "y": 0.25});
    let pin = json!({
        "type": "Atlas::Pin", "x": 2, "y": 0.5, "label": "here", "beside": {"x": 3, "y": 1.5}, "after": 9,
    });
    let route = json!({"target": point, "stops": [point, null, pin]});
    assert_eq!(call("echo_route", std::slice::from_ref(&route)), Ok(route));
    let list = json!({"number": 1, "next": {"number": 2, "next": null}});
    let echoed = call("echo_link", &[list.clone(), json!("label")]);
    assert_eq!(echoed, Ok(json!({"return": list, "back": "label"})));
    let echoed = call("echo_link", &[Json::Null, Json::Null]);
    assert_eq!(echoed, Ok(json!({"return": null, "back": null})));
    let mut given = pin;
    given.as_object_mut().map(|it| it.remove("type"));
    assert_eq!(call("echo_pin", std::slice::from_ref(&given)), Ok(given));
    let found = call("find", &[]).expect("a place");
    assert_eq!(found["type"], "Atlas::Pin", "{found}");
    assert_eq!(
        (&found["x"], &found["label"]),
        (&json!(5), &json!("a pin in truth"))
    );

    // A caller that does not know pins gets the place that it may be truncated to.
    let mut caller = Caller::new(&[]);
    let idl = scratch.join("points.idl");
    let text = "module Atlas { valuetype Point { public long x; public double y; }; \
                interface Guide { Point find(); }; };";
    std::fs::write(&idl, text).expect("the scratch folder can be written");
    caller.search.files.push(idl);
    assert_eq!(
        caller.call(&guide, "find", &[]),
        Ok(json!({"x": 5, "y": 0.5}))
    );
}

#[test]
fn types_read_at_run_time_are_those_of_generated_code() {
    use rtorb::any::Any;
    use rtorb::any::Typed;
    use rtorb_services::stubs::naming::cos_naming::{Binding, BindingIterator};
    use rtorb_tests::stubs::atlas::{Link, Pin, Route, Text};
    use rtorb_tests::stubs::exchange::{Desk, Person, Refused};
    use rtorb_tests::stubs::{Discrim, Many, Oneof};

    let caller = Caller::new(&["exchange.idl", "atlas.idl"]);
    let types = caller.search.types().expect("the IDL is right");
    for generated in [
        Link::type_code(),
        Pin::type_code(),
        Route::type_code(),
        Text::type_code(),
        <Option<Desk>>::type_code(),
        Person::type_code(),
        Refused::type_code(),
        Discrim::type_code(),
        Many::type_code(),
        Oneof::type_code(),
        Binding::type_code(),
        <Option<BindingIterator>>::type_code(),
    ] {
        let id = generated.repository_id().expect("it is named");
        assert_eq!(types.by_id(id), Some(&generated), "{id}");
    }
    // An any of a generated type has the JSON of its type, and comes back as that type.
    let many = Many { o: 1, l: 2, s: 3 };
    let any = rtorb::any::Value::Any(Any::from_value(&many).expect("it can be sent"));
    let any_type = rtorb::type_code::TypeCode::ANY;
    let json = rtorb_dynamic::json::to_json(&types, &any, &any_type).expect("JSON");
    assert_eq!(
        json,
        json!({"type": "Many", "value": {"o": 1, "l": 2, "s": 3}})
    );
    let again = rtorb_dynamic::json::from_json(&types, &json, &any_type).expect("an any");
    let rtorb::any::Value::Any(again) = again else {
        panic!("{again:?} is no any")
    };
    assert_eq!(again.extract::<Many>(), Ok(many));
}
