//! Every operation that takes a name, and every exception that CosNaming has for it.

use super::outcome::{self, Outcome};
use super::serving::{Serving, contents, name};
use rtorb_services::naming::{NamingConfig, NamingError, NamingService};
use rtorb_services::stubs::naming::cos_naming::{NameComponent, NamingContext};

/// What is there: an object, a context with an object and a context in it, an object that is a context, a name of a context
/// that is destroyed, one of another server's root, and one of a server that is not there.
fn world() -> (Serving, Serving) {
    let far = Serving::new(NamingConfig::default());
    let near = Serving::new(NamingConfig::default());
    for serving in [&far, &near] {
        let object = serving.object("bound");
        let root = &serving.root;
        root.bind(&name("object"), Some(&object)).expect("bound");
        root.bind_new_context(&name("context")).expect("made");
        root.bind(&name("context/object"), Some(&object))
            .expect("bound");
        root.bind_new_context(&name("context/inner")).expect("made");
    }
    let root = &near.root;
    root.bind(&name("as-object"), Some(root.as_object()))
        .expect("bound");
    let gone = root.bind_new_context(&name("gone")).expect("made");
    gone.expect("a context").destroy().expect("destroyed");
    let their = near.known(&far);
    root.bind_context(&name("far"), Some(&their))
        .expect("bound");
    let dead = near
        .client
        .string_to_object("corbaloc:iiop:1.2@127.0.0.1:1/x");
    let dead = NamingContext::unchecked_narrow(dead.expect("a reference"));
    root.bind_context(&name("dead"), Some(&dead))
        .expect("bound");
    (near, far)
}

/// Carries out one operation on the root, with an object that is not bound yet or a context that has no name.
fn carry_out(operation: &str, root: &Serving, name: &[NameComponent]) -> Outcome {
    let object = root.object("new");
    let context = || root.root.new_context().expect("made");
    match operation {
        "bind" => outcome::of(root.root.bind(name, Some(&object))),
        "rebind" => outcome::of(root.root.rebind(name, Some(&object))),
        "bind_context" => outcome::of(root.root.bind_context(name, context().as_ref())),
        "rebind_context" => outcome::of(root.root.rebind_context(name, context().as_ref())),
        "resolve" => outcome::of(root.root.resolve(name).map(|_| ())),
        "unbind" => outcome::of(root.root.unbind(name)),
        "bind_new_context" => outcome::of(root.root.bind_new_context(name).map(|_| ())),
        other => panic!("no operation {other}"),
    }
}

/// Name, and what becomes of bind, rebind, bind_context, rebind_context, resolve, unbind and bind_new_context, in the words of
/// `Outcome`; `=` is what the column before has.
const CASES: &[(&str, [&str; 7])] = &[
    (
        "new",
        ["done", "=", "=", "=", "missing_node new", "=", "done"],
    ),
    (
        "object",
        [
            "AlreadyBound",
            "done",
            "AlreadyBound",
            "not_context object",
            "done",
            "=",
            "AlreadyBound",
        ],
    ),
    (
        "context",
        [
            "AlreadyBound",
            "not_object context",
            "AlreadyBound",
            "done",
            "=",
            "=",
            "AlreadyBound",
        ],
    ),
    (
        "context/new",
        ["done", "=", "=", "=", "missing_node new", "=", "done"],
    ),
    (
        "context/object",
        [
            "AlreadyBound",
            "done",
            "AlreadyBound",
            "not_context object",
            "done",
            "=",
            "AlreadyBound",
        ],
    ),
    (
        "context/inner",
        [
            "AlreadyBound",
            "not_object inner",
            "AlreadyBound",
            "done",
            "=",
            "=",
            "AlreadyBound",
        ],
    ),
    (
        "none/a/b",
        ["missing_node none/a/b", "=", "=", "=", "=", "=", "="],
    ),
    (
        "context/none/b",
        ["missing_node none/b", "=", "=", "=", "=", "=", "="],
    ),
    (
        "object/a/b",
        ["not_context object/a/b", "=", "=", "=", "=", "=", "="],
    ),
    (
        "context/object/b",
        ["not_context object/b", "=", "=", "=", "=", "=", "="],
    ),
    // Bound as an object, a context is one.
    (
        "as-object/object",
        ["not_context as-object/object", "=", "=", "=", "=", "=", "="],
    ),
    ("gone/a", ["CannotProceed a", "=", "=", "=", "=", "=", "="]),
    (
        "gone",
        [
            "AlreadyBound",
            "not_object gone",
            "AlreadyBound",
            "done",
            "=",
            "=",
            "AlreadyBound",
        ],
    ),
    // The other server answers as this one does, and its rest is the client's.
    (
        "far/new",
        ["done", "=", "=", "=", "missing_node new", "=", "done"],
    ),
    (
        "far/object",
        [
            "AlreadyBound",
            "done",
            "AlreadyBound",
            "not_context object",
            "done",
            "=",
            "AlreadyBound",
        ],
    ),
    (
        "far/context/none/b",
        ["missing_node none/b", "=", "=", "=", "=", "=", "="],
    ),
    (
        "far/object/b",
        ["not_context object/b", "=", "=", "=", "=", "=", "="],
    ),
    (
        "far",
        [
            "AlreadyBound",
            "not_object far",
            "AlreadyBound",
            "done",
            "=",
            "=",
            "AlreadyBound",
        ],
    ),
    (
        "dead/a/b",
        ["CannotProceed a/b", "=", "=", "=", "=", "=", "="],
    ),
];

const OPERATIONS: [&str; 7] = [
    "bind",
    "rebind",
    "bind_context",
    "rebind_context",
    "resolve",
    "unbind",
    "bind_new_context",
];

#[test]
fn every_operation_has_the_outcome_of_the_standard() {
    let mut wrong = Vec::new();
    for (place, expected) in CASES {
        let mut last = "";
        for (operation, expected) in OPERATIONS.iter().zip(expected) {
            last = if *expected == "=" { last } else { expected };
            let (near, _far) = world();
            let before = contents(&near.root);
            let outcome = carry_out(operation, &near, &name(place));
            if outcome.text != last {
                wrong.push(format!("{operation} {place}: {}, not {last}", outcome.text));
            }
            if outcome.text != "done" && contents(&near.root) != before {
                wrong.push(format!(
                    "{operation} {place}: failed, and changed something"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_empty_name_and_one_too_long_are_refused_by_every_operation() {
    let config = NamingConfig {
        name_components_max: 3,
        component_bytes_max: 5,
        ..NamingConfig::default()
    };
    let serving = Serving::new(config);
    for operation in OPERATIONS {
        for (name, expected) in [
            (name("a/b/c/d"), "IMP_LIMIT"),
            (name("123456"), "IMP_LIMIT"),
            (name("a.123456"), "IMP_LIMIT"),
            (Vec::new(), "InvalidName"),
        ] {
            let outcome = carry_out(operation, &serving, &name);
            assert_eq!(outcome.text, expected, "{operation} {name:?}");
        }
    }
}

#[test]
fn the_empty_component_is_a_name_like_others() {
    let serving = Serving::new(NamingConfig::default());
    let object = serving.object("nameless");
    for text in [".", ".kind", r"a\.b", "./."] {
        if text == "./." {
            serving.root.unbind(&name(".")).expect("unbound");
            serving.root.bind_new_context(&name(".")).expect("made");
        }
        serving.root.bind(&name(text), Some(&object)).expect(text);
        let resolved = serving.root.resolve_str(text).expect(text);
        assert_eq!(resolved.as_ref(), Some(&object), "{text}");
    }
}

#[test]
fn nil_references_are_not_bound() {
    let serving = Serving::new(NamingConfig::default());
    let root = &serving.root;
    let name = &name("nil");
    assert_eq!(outcome::of(root.bind(name, None)).text, "BAD_PARAM");
    assert_eq!(outcome::of(root.rebind(name, None)).text, "BAD_PARAM");
    assert_eq!(outcome::of(root.bind_context(name, None)).text, "BAD_PARAM");
    assert_eq!(
        outcome::of(root.rebind_context(name, None)).text,
        "BAD_PARAM"
    );
    assert_eq!(contents(root), "");
}

#[test]
fn a_context_that_cannot_be_reached_is_named_so_that_the_client_can_go_on() {
    let (near, _far) = world();
    let raised = carry_out("resolve", &near, &name("dead/a/b"));
    let there = raised.context.expect("a context");
    assert_eq!(
        there
            .as_object()
            .endpoints()
            .next()
            .map(ToString::to_string),
        Some("iiop://127.0.0.1:1".to_owned())
    );
}

#[test]
fn only_empty_contexts_are_destroyed_and_the_root_never() {
    let serving = Serving::new(NamingConfig::default());
    let root = &serving.root;
    let made = root.bind_new_context(&name("a")).expect("made");
    let context = made.expect("a context");
    context.bind_new_context(&name("b")).expect("made");
    assert_eq!(outcome::of(context.destroy()).text, "NotEmpty");
    context.unbind(&name("b")).expect("unbound");
    context.destroy().expect("destroyed");
    let after = outcome::of(context.resolve(&name("b")).map(|_| ()));
    assert_eq!(after.text, "OBJECT_NOT_EXIST");
    assert_eq!(outcome::of(context.destroy()).text, "OBJECT_NOT_EXIST");
    assert_eq!(outcome::of(root.destroy()).text, "NO_PERMISSION");
    // The binding stays: it is somebody else's to take away.
    root.resolve(&name("a")).expect("bound still");
    root.unbind(&name("a")).expect("unbound");
    assert_eq!(outcome::of(root.destroy()).text, "NO_PERMISSION");
}

#[test]
fn names_become_text_and_urls_and_text_becomes_names() {
    let serving = Serving::new(NamingConfig::default());
    let root = &serving.root;
    for text in ["a", "a.b/c", r"a\.b\\.c\/d", ".", "x/./y", ".k"] {
        let read = root.to_name(text).expect(text);
        assert_eq!(root.to_string_(&read).expect(text), text);
    }
    for text in ["", "/", "a//b", "a.", "a.b.c", r"a\b"] {
        assert!(root.to_name(text).is_err(), "{text}");
        let url = root.to_url(":host", text);
        assert_eq!(url.is_err(), !text.is_empty(), "{text}");
        assert!(root.resolve_str(text).is_err(), "{text}");
    }
    assert!(root.to_string_(&[]).is_err());
    assert_eq!(
        root.to_url(":host:2809", "a b/c.d").expect("a URL"),
        "corbaname::host:2809#a%20b/c.d"
    );
    let of_context = root.to_url(":host", "").expect("a URL without a name");
    assert_eq!(of_context, "corbaname::host");
    for address in ["", "host", ":host:port", ":h#a"] {
        assert!(root.to_url(address, "a").is_err(), "{address}");
    }
}

#[test]
fn a_list_and_its_iterator_give_every_binding_once() {
    let config = NamingConfig {
        list_max: 7,
        ..NamingConfig::default()
    };
    let serving = Serving::new(config);
    let root = &serving.root;
    for number in 0..20 {
        let object = serving.object("listed");
        let at = name(&format!("n{number}"));
        root.bind(&at, Some(&object)).expect("bound");
    }
    let (mut listed, iterator) = root.list(3).expect("a list");
    assert_eq!(listed.len(), 3);
    let iterator = iterator.expect("an iterator");
    let zero = iterator.next_n(0).expect_err("nothing asked for");
    assert_eq!(zero.kind, rtorb::ExceptionKind::BadParam);
    let (more, one) = iterator.next_one().expect("one");
    assert!(more);
    listed.push(one);
    // No more than `list_max` at a time, whatever is asked for.
    let (more, some) = iterator.next_n(1000).expect("some");
    assert!(more && some.len() == 7, "{}", some.len());
    listed.extend(some);
    while let (true, some) = iterator.next_n(5).expect("some") {
        listed.extend(some);
    }
    let mut names: Vec<_> = listed
        .iter()
        .map(|b| b.binding_name[0].id.clone())
        .collect();
    names.sort();
    names.dedup();
    assert_eq!((names.len(), listed.len()), (20, 20));
    assert!(!iterator.next_one().expect("the end").0);
    iterator.destroy().expect("destroyed");
    let after = iterator.next_one().expect_err("gone");
    assert_eq!(after.kind, rtorb::ExceptionKind::ObjectNotExist);
    let (_, all) = root.list(20).expect("a list");
    assert!(all.is_some(), "list_max leaves 13");
}

#[test]
fn the_iterator_unused_longest_ends_for_one_more() {
    let config = NamingConfig {
        iterators_max: 2,
        ..NamingConfig::default()
    };
    let serving = Serving::new(config);
    for at in ["a", "b", "c"] {
        let object = serving.object(at);
        serving.root.bind(&name(at), Some(&object)).expect("bound");
    }
    let list = || {
        serving
            .root
            .list(0)
            .expect("a list")
            .1
            .expect("an iterator")
    };
    let (first, second) = (list(), list());
    first.next_one().expect("used");
    let third = list();
    let ended = second.next_one().expect_err("ended for the third");
    assert_eq!(ended.kind, rtorb::ExceptionKind::ObjectNotExist);
    assert!(first.next_one().expect("still there").0);
    assert!(third.next_one().expect("there").0);
    assert_eq!(serving.service.statistics().iterators, 2);
    assert_eq!(serving.service.statistics().iterators_ended, 1);
}

#[test]
fn bounds_are_told_and_room_comes_back() {
    let config = NamingConfig {
        bindings_max: 2,
        contexts_max: 2,
        reference_bytes_max: 200,
        bytes_max: 1024,
        ..NamingConfig::default()
    };
    let serving = Serving::new(config);
    let root = &serving.root;
    let object = serving.object("small");
    let long = serving.object(&"x".repeat(200));
    assert_eq!(
        outcome::of(root.bind(&name("a"), Some(&long))).text,
        "IMP_LIMIT"
    );
    root.bind(&name("a"), Some(&object)).expect("bound");
    let made = root.new_context().expect("made").expect("a context");
    let more = root.new_context().expect_err("one too many");
    assert_eq!(more.kind, rtorb::ExceptionKind::NoResources);
    made.bind(&name("b"), Some(&object)).expect("bound");
    assert_eq!(
        outcome::of(root.bind(&name("c"), Some(&object))).text,
        "NO_RESOURCES"
    );
    root.rebind(&name("a"), Some(&object)).expect("in place");
    made.unbind(&name("b")).expect("unbound");
    made.destroy().expect("destroyed");
    let made = root.bind_new_context(&name("c")).expect("room again");
    made.expect("a context");
}

#[test]
fn names_that_lead_in_a_circle_end() {
    let (near, far) = world();
    let back = far.known(&near);
    far.root
        .bind_context(&name("back"), Some(&back))
        .expect("bound");
    let round = name("far/back/far/back/far/object");
    let resolved = near.root.resolve(&round).expect("resolved");
    assert_eq!(resolved, Some(near.object("bound")));
    near.root
        .bind_context(&name("self"), Some(&NamingContext::from(&near.root)))
        .expect("bound");
    let resolved = near.root.resolve(&name("self/self/self/object"));
    assert_eq!(resolved.expect("resolved"), Some(near.object("bound")));
}

#[test]
fn the_root_has_the_key_that_everybody_knows() {
    let serving = Serving::new(NamingConfig::default());
    let object = serving.object("thing");
    serving.root.bind(&name("a"), Some(&object)).expect("bound");
    let port = serving.port();
    let at = |url: &str| serving.client.string_to_object(url).expect("an object");
    let root = at(&format!("corbaloc:iiop:1.2@127.0.0.1:{port}/NameService"));
    let id = "IDL:omg.org/CosNaming/NamingContextExt:1.0";
    assert!(root.is_a(id).expect("asked"));
    assert_eq!(at(&format!("corbaname::127.0.0.1:{port}#a")), object);
    // Bound under a name, it is known for one of ours, and nobody is called for what is in it.
    let root = NamingContext::unchecked_narrow(root);
    serving
        .root
        .bind_context(&name("top"), Some(&root))
        .expect("bound");
    assert_eq!(
        serving.root.resolve(&name("top/top")).expect("resolved"),
        Some(serving.root.as_object().clone())
    );
    let own = serving.orb.resolve_initial_references("NameService");
    assert!(own.expect("registered").is_a(id).expect("asked"));
}

#[test]
fn an_orb_serves_names_once_until_they_end() {
    let serving = Serving::new(NamingConfig::default());
    let serve = || NamingService::serve(&serving.orb, NamingConfig::default());
    assert!(matches!(serve(), Err(NamingError::Key(_))));
    serving.service.end();
    let gone = serving.root.as_object().non_existent();
    assert!(gone.expect("asked"));
    let second = serve().expect("a service");
    // Again, this changes nothing of the second one.
    serving.service.end();
    assert!(matches!(serve(), Err(NamingError::Key(_))));
    second.end();
}

#[test]
fn contexts_that_are_destroyed_do_not_exist() {
    let serving = Serving::new(NamingConfig::default());
    let made = serving
        .root
        .new_context()
        .expect("made")
        .expect("a context");
    assert!(!made.as_object().non_existent().expect("asked"));
    made.destroy().expect("destroyed");
    assert!(made.as_object().non_existent().expect("asked"));
}
