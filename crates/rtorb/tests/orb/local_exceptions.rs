//! What this ORB refuses itself: each exception says what is wrong, with the values, and what to do.

use rtorb::exception::local;
use rtorb::rt::Priority;
use rtorb::{ExceptionKind, ObjectRef, Orb, SystemException};
use rtorb_tests::ours::Ours;
use rtorb_tests::scratch::Scratch;
use rtorb_tests::stubs::Relay;

/// Checks the code of an exception and parts of its text.
fn expect(failed: &SystemException, code: &SystemException, parts: &[&str]) {
    assert_eq!(
        (failed.kind, failed.minor),
        (code.kind, code.minor),
        "{failed}"
    );
    let text = failed.to_string();
    for part in parts {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn a_wrong_narrow_names_both_types() {
    let ours = Ours::serve();
    let orb = Orb::builder().build().expect("an ORB");
    let object = orb.string_to_object(&ours.text(ours.cubit.as_object()));
    let failed = Relay::narrow(&object.expect("a reference")).map(|_| ());
    let failed = failed.expect_err("a Cubit is no Relay");
    let types = "the object is of type IDL:Cubit:1.0, not of IDL:Relay:1.0";
    expect(&failed, &local::WRONG_INTERFACE, &[types, "narrow it"]);
}

#[test]
fn a_misspelt_initial_reference_is_told_the_right_one() {
    let builder =
        Orb::builder().initial_reference("NameService", "corbaloc::127.0.0.1/NameService");
    let orb = builder.build().expect("an ORB");
    let ask = |name: &str| {
        orb.resolve_initial_references(name)
            .map(|_| ())
            .expect_err(name)
    };
    let near = "there is no initial reference \"NameServic\": did you mean \"NameService\"?";
    let remedy = "-ORBInitRef NAME=REFERENCE";
    expect(
        &ask("NameServic"),
        &local::NO_INITIAL_REFERENCE,
        &[near, remedy],
    );
    expect(
        &ask("Plant"),
        &local::NO_INITIAL_REFERENCE,
        &["the ORB has NameService", remedy],
    );
    let orb = Orb::builder().build().expect("an ORB");
    let failed = orb.string_to_object("corbaloc:rir:/Plant").map(|_| ());
    let failed = failed.expect_err("there is none");
    expect(&failed, &local::NO_INITIAL_REFERENCE, &["the ORB has none"]);
}

#[test]
fn a_wrong_priority_is_told_the_range() {
    let orb = Orb::builder().build().expect("an ORB");
    let failed = Priority::new(-1).expect_err("below 0");
    expect(&failed, &local::PRIORITY_OUT_OF_RANGE, &["0 to 32767"]);
    let current = orb.rt_current();
    let failed = current.the_priority().expect_err("nobody has set it");
    expect(&failed, &local::CURRENT_UNSET, &["set_the_priority"]);
    let failed = current.set_the_priority(Priority::new(200).expect("legal"));
    let failed = failed.expect_err("the native mapping ends at 99");
    let range = "priority 200, and the mapping has 0 to 99";
    expect(
        &failed,
        &local::UNMAPPED_PRIORITY,
        &[range, "`linear` 0 to 32767"],
    );
}

#[test]
fn a_call_after_the_end_of_the_orb_says_so() {
    let orb = Orb::builder().build().expect("an ORB");
    let object = orb.string_to_object("corbaloc::127.0.0.1:1/Valve");
    let object = object.expect("a reference");
    orb.shutdown();
    let failed = object.is_a("IDL:Valve:1.0").expect_err("it is over");
    expect(&failed, &local::SHUT_DOWN, &["the ORB is shut down"]);
    let failed = orb.root_poa().map(|_| ()).expect_err("it is over");
    expect(&failed, &local::SHUT_DOWN, &["the ORB is shut down"]);
}

#[test]
fn a_text_that_is_no_reference_is_told_what_is_wrong_with_it() {
    let scratch = Scratch::new();
    let orb = Orb::builder().build().expect("an ORB");
    let ask = |text: &str| {
        orb.string_to_object(text)
            .map(|_: ObjectRef| ())
            .expect_err(text)
    };
    let absent = scratch.join("absent");
    let failed = ask(&format!("file://{}", absent.display()));
    let name = absent.display().to_string();
    expect(
        &failed,
        &local::UNREADABLE_FILE,
        &[&name, "No such file or directory"],
    );
    let malformed = |code| SystemException::omg(ExceptionKind::BadParam, code);
    for (text, code, parts) in [
        ("plant:2809", 7, ["\"plant:2809\"", "begins with IOR:"]),
        (
            "corbaloc::h:x/k",
            8,
            ["\"corbaloc::h:x/k\"", "in an address"],
        ),
        (
            "corbaloc::h/%g",
            9,
            ["\"corbaloc::h/%g\"", "cannot be parsed"],
        ),
        ("IOR:01", 10, ["the message ends too early", "copy all"]),
    ] {
        expect(&ask(text), &malformed(code), &parts);
    }
    let nil = "IOR:00000000000000010000000000000000";
    expect(&ask(nil), &local::NIL_REFERENCE, &["nil"]);
}
