//! The naming service: omniORB's and JacORB's clients with ours, our client with omniNames, and the two in one tree.

use crate::our_names::{OurNames, name, object, root};
use rtorb::{ExceptionKind, ObjectRef, Orb};
use rtorb_services::naming::client::{
    Context, Existing, FailureReason, Inside, Load, Step, Walk, format_name,
};
use rtorb_services::stubs::naming::cos_naming::{BindingType, NamingContextExt};
use rtorb_tests::ours::{Ours, check_cubit};
use rtorb_tests::peers::jacorb::jacorb;
use rtorb_tests::peers::omniorb::omniorb;
use rtorb_tests::scratch::Scratch;
use rtorb_tests::stubs::Cubit;
use std::convert::Infallible;
use std::io::Cursor;
use std::time::Duration;

fn client() -> Orb {
    Orb::builder()
        .round_trip_timeout(Some(Duration::from_secs(20)))
        .build()
        .expect("the ORB can be built")
}

/// A reference to nobody; binding it calls nobody.
fn somebody(orb: &Orb, key: &str) -> ObjectRef {
    object(orb, &format!("corbaloc::1.2@127.0.0.1:9/{key}"))
}

fn bound(context: &Context, text: &str) -> String {
    let object = context.resolve(&name(text));
    let object = object.unwrap_or_else(|failure| panic!("{failure}"));
    object.expect("not the nil reference").to_string()
}

/// What `nameclt` says; panics if it fails.
macro_rules! said {
    ($omniorb:expr, $address:expr, $($word:expr),+) => {
        $omniorb
            .nameclt($address, &[$($word),+])
            .unwrap_or_else(|text| panic!("{:?}: {text}", [$($word),+]))
    };
}

/// `nameclt` fails, and says this.
macro_rules! refused {
    ($omniorb:expr, $address:expr, $words:expr, $($word:expr),+) => {
        let text = $omniorb.nameclt($address, &[$($word),+]).expect_err($words);
        assert!(text.contains($words), "{:?}: {text}", [$($word),+]);
    };
}

#[test]
fn nameclt_finds_our_service_by_host_and_port() {
    let Some(omniorb) = omniorb() else { return };
    let ours = OurNames::serve();
    let at = ours.address();
    let (host, port) = at.rsplit_once(':').expect("a host and a port");
    let made = omniorb.nameclt_at(host, port, &["bind_new_context", "plant.site"]);
    made.unwrap_or_else(|text| panic!("{text}"));
    assert_eq!(said!(omniorb, &at, "list"), "plant.site/");
}

#[test]
fn nameclt_does_each_of_its_commands_with_our_service() {
    let Some(omniorb) = omniorb() else { return };
    let ours = OurNames::serve();
    let (at, orb) = (&ours.address(), client());
    let names = root(&orb, at);
    let reference = somebody(&orb, "drive").to_string();

    assert_eq!(said!(omniorb, at, "list"), "");
    let plant = said!(omniorb, at, "bind_new_context", "plant.site");
    assert_eq!(bound(&names, "plant.site"), plant);
    assert_eq!(said!(omniorb, at, "list"), "plant.site/");
    said!(omniorb, at, "bind", "plant.site/drive.obj", &reference);
    assert_eq!(bound(&names, "plant.site/drive.obj"), reference);
    assert_eq!(said!(omniorb, at, "list", "plant.site"), "drive.obj");
    assert_eq!(
        said!(omniorb, at, "resolve", "plant.site/drive.obj"),
        reference
    );
    said!(omniorb, at, "bind", r"plant.site/a\.b.c\/d", &reference);
    assert_eq!(bound(&names, r"plant.site/a\.b.c\/d"), reference);
    said!(omniorb, at, "unbind", r"plant.site/a\.b.c\/d");

    refused!(
        omniorb,
        at,
        "AlreadyBound",
        "bind",
        "plant.site/drive.obj",
        &reference
    );
    refused!(
        omniorb,
        at,
        "AlreadyBound",
        "bind_new_context",
        "plant.site"
    );
    refused!(omniorb, at, "missing node", "resolve", "plant");
    refused!(omniorb, at, "couldn't find", "unbind", "plant.site/nobody");
    refused!(
        omniorb,
        at,
        "missing node",
        "bind",
        "nowhere/drive",
        &reference
    );
    refused!(
        omniorb,
        at,
        "not context",
        "resolve",
        "plant.site/drive.obj/x"
    );
    refused!(omniorb, at, "NotEmpty", "remove_context", "plant.site");

    said!(omniorb, at, "unbind", "plant.site/drive.obj");
    assert_eq!(said!(omniorb, at, "list", "plant.site"), "");
    said!(omniorb, at, "remove_context", "plant.site");
    assert_eq!(said!(omniorb, at, "list"), "");
}

#[test]
fn nameclt_does_its_advanced_commands_with_our_service() {
    let Some(omniorb) = omniorb() else { return };
    let ours = OurNames::serve();
    let (at, orb) = (&ours.address(), client());
    let names = root(&orb, at);
    let [first, second] = ["first", "second"].map(|key| somebody(&orb, key).to_string());

    said!(omniorb, at, "-advanced", "rebind", "drive", &first);
    said!(omniorb, at, "-advanced", "rebind", "drive", &second);
    assert_eq!(bound(&names, "drive"), second);
    let made = said!(omniorb, at, "-advanced", "new_context");
    assert_eq!(said!(omniorb, at, "list"), "drive");
    said!(omniorb, at, "-advanced", "bind_context", "line", &made);
    assert_eq!(bound(&names, "line"), made);
    refused!(
        omniorb,
        at,
        "AlreadyBound",
        "-advanced",
        "bind_context",
        "line",
        &made
    );
    let other = said!(omniorb, at, "-advanced", "new_context");
    said!(omniorb, at, "-advanced", "rebind_context", "line", &other);
    assert_eq!(bound(&names, "line"), other);
    refused!(
        omniorb,
        at,
        "not context",
        "-advanced",
        "rebind_context",
        "drive",
        &made
    );
    refused!(
        omniorb,
        at,
        "not object",
        "-advanced",
        "rebind",
        "line",
        &first
    );

    said!(omniorb, at, "-ior", &made, "bind_new_context", "inner");
    refused!(
        omniorb,
        at,
        "NotEmpty",
        "-advanced",
        "-ior",
        &made,
        "destroy"
    );
    said!(omniorb, at, "-ior", &made, "remove_context", "inner");
    said!(omniorb, at, "-advanced", "-ior", &made, "destroy");
    refused!(omniorb, at, "OBJECT_NOT_EXIST", "-ior", &made, "list");
    let listed = said!(omniorb, at, "list");
    let mut lines: Vec<_> = listed.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["drive", "line/"]);
}

#[test]
fn our_client_does_every_operation_with_our_service() {
    let ours = OurNames::serve();
    every_operation(&ours.address());
}

#[test]
fn our_client_does_every_operation_with_omni_names() {
    let Some(omniorb) = omniorb() else { return };
    let scratch = Scratch::new();
    let (_names, address) = omniorb.names(&scratch);
    every_operation(&address);
}

/// Each operation of a context, with each of its answers that naming services agree on.
fn every_operation(address: &str) {
    let orb = client();
    let names = root(&orb, address);
    let [first, second] = ["first", "second"].map(|key| somebody(&orb, key));
    let why = |done: Result<(), rtorb_services::naming::client::Failure>| {
        done.expect_err("this cannot be done").reason
    };

    let plant = names
        .bind_new_context(&name("plant.site"))
        .expect("made and bound");
    names
        .bind(&name("plant.site/drive"), &first, Existing::Keep)
        .expect("bound");
    assert_eq!(bound(&plant, "drive"), first.to_string());
    let again = names.bind(&name("plant.site/drive"), &second, Existing::Keep);
    assert_eq!(why(again), FailureReason::AlreadyBound);
    names
        .bind(&name("plant.site/drive"), &second, Existing::Replace)
        .expect("bound anew");
    assert_eq!(bound(&names, "plant.site/drive"), second.to_string());

    let made = names.new_context().expect("made");
    names
        .bind_context(&name("plant.site/line"), &made, Existing::Keep)
        .expect("bound");
    let again = names.bind_context(&name("plant.site/line"), &made, Existing::Keep);
    assert_eq!(why(again), FailureReason::AlreadyBound);
    let other = names.new_context().expect("made");
    names
        .bind_context(&name("plant.site/line"), &other, Existing::Replace)
        .expect("bound anew");
    made.destroy().expect("it is empty");
    names
        .make_parents(&name("plant.site/line/a/b/drive"))
        .expect("made where they are missing");
    names
        .bind(&name("plant.site/line/a/b/drive"), &first, Existing::Keep)
        .expect("bound");
    assert_eq!(bound(&other, "a/b/drive"), first.to_string());

    let missing = why(names.resolve(&name("plant.site/x/y")).map(|_| ()));
    assert_eq!(missing, FailureReason::MissingNode(name("x/y")));
    let through = why(names.resolve(&name("plant.site/drive/y")).map(|_| ()));
    assert!(
        matches!(
            through,
            FailureReason::NotContext(_) | FailureReason::System(_)
        ),
        "{through:?}"
    );
    assert_eq!(
        why(names.unbind(&name("x"))),
        FailureReason::MissingNode(name("x"))
    );
    assert_eq!(why(names.unbind(&[])), FailureReason::InvalidName);
    assert_eq!(why(plant.destroy()), FailureReason::NotEmpty);
    assert_eq!(
        why(names.remove_context(&name("plant.site"))),
        FailureReason::NotEmpty
    );

    remove_everything(&names);
}

/// Removes what `every_operation` has bound, from the leaves to the root.
fn remove_everything(names: &Context) {
    names
        .unbind(&name("plant.site/drive"))
        .expect("it is bound");
    names
        .unbind(&name("plant.site/line/a/b/drive"))
        .expect("it is bound");
    for context in [
        "plant.site/line/a/b",
        "plant.site/line/a",
        "plant.site/line",
        "plant.site",
    ] {
        names.remove_context(&name(context)).expect("it is empty");
    }
    assert_eq!(names.bindings(10).expect("it can be listed").count(), 0);
}

#[test]
fn names_as_text_are_the_same_to_our_service_and_to_omni_names() {
    let Some(omniorb) = omniorb() else { return };
    let scratch = Scratch::new();
    let (_names, theirs) = omniorb.names(&scratch);
    let ours = OurNames::serve();
    let orb = client();
    let [ours, theirs] = [ours.address(), theirs].map(|address| {
        NamingContextExt::narrow(root(&orb, &address).as_object()).expect("it knows text")
    });
    for text in [
        "a",
        "a/b.k/c",
        ".",
        "a/./b",
        r"a\.b.c\/d\\",
        "",
        "/",
        "a//b",
        "a.",
        "a.b.c",
        r"a\b",
        "Zürich/Straße",
    ] {
        let (name, expected) = (ours.to_name(text), theirs.to_name(text));
        assert_eq!(name, expected, "{text:?} as a name");
        let Ok(name) = name else { continue };
        assert_eq!(ours.to_string_(&name), theirs.to_string_(&name), "{text:?}");
    }
    assert_eq!(ours.to_string_(&[]), theirs.to_string_(&[]));
    // Letters beyond ASCII are left out: in a URL, omniNames writes them as ISO 8859-1, its native code set, and we as UTF-8.
    for (address, text) in [
        (":localhost", "a/b.k"),
        (":localhost:2809,:1.2@elsewhere:1/Names", "a b/100%"),
        ("iiop:1.1@host/NameService", r"a\.b/c\\d\/e"),
        (":host", ""),
        (":host", "a//b"),
        ("", "a"),
    ] {
        let (url, expected) = (ours.to_url(address, text), theirs.to_url(address, text));
        assert_eq!(url, expected, "{address:?} {text:?}");
    }
    let somebody = somebody(&orb, "k");
    for context in [&ours, &theirs] {
        context
            .bind(&name("a.k"), Some(&somebody))
            .expect("it is free");
        assert_eq!(context.resolve_str("a.k"), Ok(Some(somebody.clone())));
    }
}

#[test]
fn long_lists_come_in_parts_of_any_size() {
    let Some(omniorb) = omniorb() else { return };
    let scratch = Scratch::new();
    let (_names, theirs) = omniorb.names(&scratch);
    let ours = OurNames::serve();
    for address in [ours.address(), theirs] {
        let orb = client();
        let names = root(&orb, &address);
        let plant = names.bind_new_context(&name("plant")).expect("made");
        load(
            &plant,
            &(0..COUNT)
                .map(|n| format!("drive{n}.k corbaloc::h/k{n}\n"))
                .collect::<String>(),
        );
        for chunk in [0, 1, 7, 1000, u32::MAX] {
            let bindings = plant.bindings(chunk).expect("it can be listed");
            let mut listed: Vec<_> = bindings
                .map(|binding| {
                    let (name, kind) = binding.expect("it goes on");
                    assert_eq!(kind, BindingType::Nobject);
                    format_name(&name)
                })
                .collect();
            listed.sort_unstable();
            listed.dedup();
            assert_eq!(listed.len(), COUNT, "{address}, {chunk} at a time");
        }
        let said = said!(omniorb, &address, "list", "plant");
        assert_eq!(said.lines().count(), COUNT, "{address}");
        // One that is given up tells the server so.
        let mut given_up = plant.bindings(1).expect("it can be listed");
        assert!(given_up.next().is_some());
    }
}

const COUNT: usize = 1500;

/// Binds what these lines say, all of them.
fn load(context: &Context, lines: &str) {
    let orb = context.as_object().orb();
    let how = Load {
        connections: 4,
        existing: Existing::Keep,
        makes_parents: true,
        report_every: Duration::from_secs(1),
    };
    let reference = move |text: &str| {
        orb.string_to_object(text)
            .map_err(|exception| exception.to_string())
    };
    let loaded = how
        .run(
            context,
            Cursor::new(lines.to_owned()),
            reference,
            &mut |_| {},
        )
        .expect("threads");
    assert_eq!(loaded.not_bound, [], "{loaded:?}");
    assert_eq!(loaded.stopped, None);
    assert_eq!(loaded.progress.bound, lines.lines().count() as u64);
}

#[test]
fn omniorb_programs_find_objects_by_their_names_in_our_service() {
    let Some(omniorb) = omniorb() else { return };
    let (names, cubits) = (OurNames::serve(), Ours::serve());
    let (at, orb) = (names.address(), client());
    let cubit = object(&orb, &cubits.text(cubits.cubit.as_object()));
    let context = root(&orb, &at);
    context
        .make_parents(&name("interop/cubit.obj"))
        .and_then(|()| context.bind(&name("interop/cubit.obj"), &cubit, Existing::Keep))
        .expect("bound");
    for version in ["1.0", "1.1", "1.2"] {
        let url = format!("corbaname::{version}@{at}#interop/cubit.obj");
        omniorb.call("cubit_client", &url, &["--lengths", "1"]);
        let place = format!("NameService=corbaloc::{version}@{at}/NameService");
        let options = ["--lengths", "1", "-ORBInitRef", &place];
        omniorb.call("cubit_client", "corbaname:rir:#interop/cubit.obj", &options);
    }
}

#[test]
fn jacorb_finds_objects_by_their_names_in_our_service() {
    let Some(jacorb) = jacorb() else { return };
    let (names, cubits) = (OurNames::serve(), Ours::serve());
    let (at, orb) = (names.address(), client());
    let cubit = object(&orb, &cubits.text(cubits.cubit.as_object()));
    root(&orb, &at)
        .bind(&name("cubit.obj"), &cubit, Existing::Keep)
        .expect("bound");
    let url = format!("corbaname::1.2@{at}#cubit.obj");
    jacorb.call("CubitClient", &url, &["1"]);
}

#[test]
fn our_orb_finds_objects_by_their_names_in_omni_names() {
    let Some(omniorb) = omniorb() else { return };
    let scratch = Scratch::new();
    let (_names, at) = omniorb.names(&scratch);
    let cubits = Ours::serve();
    let reference = cubits.text(cubits.cubit.as_object());
    said!(omniorb, &at, "bind_new_context", "interop");
    said!(
        omniorb,
        &at,
        "bind",
        r"interop/the cubit\.1.obj",
        &reference
    );
    let named = [
        "-ORBInitRef",
        &format!("NameService=corbaloc::{at}/NameService"),
    ];
    let orb = Orb::builder().args(named.map(str::to_owned));
    let orb = orb.build().expect("right options");
    for url in [
        format!(r"corbaname::{at}#interop/the%20cubit\.1.obj"),
        r"corbaname:rir:#interop/the%20cubit\.1.obj".to_owned(),
        r"corbaname:rir:/NameService#interop/the%20cubit\.1.obj".to_owned(),
    ] {
        let cubit = Cubit::narrow(&object(&orb, &url)).expect("it is a Cubit");
        check_cubit(&cubit, &[1]);
    }
    let names = Context::root(&orb).expect("the one that was given");
    let others = object(&orb, "corbaloc:rir:/NameService");
    assert_eq!(names.as_object(), &others);
    let nobody = orb.string_to_object("corbaname:rir:#interop/nobody");
    let nobody = nobody.expect_err("it is not bound");
    assert_eq!(nobody.kind, ExceptionKind::BadParam);
    assert!(nobody.to_string().contains("not bound"), "{nobody}");
}

#[test]
fn names_go_on_from_one_service_into_the_other() {
    let Some(omniorb) = omniorb() else { return };
    let scratch = Scratch::new();
    let (_names, theirs) = omniorb.names(&scratch);
    let server = OurNames::serve();
    let ours = server.address();
    let orb = client();
    let drive = somebody(&orb, "drive");
    for (here, there) in [(&ours, &theirs), (&theirs, &ours)] {
        let (near, far) = (root(&orb, here), root(&orb, there));
        // By the reference that the other service gives of its own root or context, as an administrator would.
        let context = far.bind_new_context(&name("plant")).expect("made");
        near.bind_context(&name("other"), &context, Existing::Keep)
            .expect("bound");
        near.bind(&name("other/drive.k"), &drive, Existing::Keep)
            .expect("bound there by way of here");
        assert_eq!(bound(&far, "plant/drive.k"), drive.to_string());
        assert_eq!(
            said!(omniorb, here, "resolve", "other/drive.k"),
            drive.to_string()
        );
        assert_eq!(said!(omniorb, here, "list", "other"), "drive.k");
        near.bind_new_context(&name("other/line"))
            .expect("made there");
        let missing = near
            .resolve(&name("other/line/x/y"))
            .expect_err("not bound");
        assert_eq!(
            missing.reason,
            FailureReason::MissingNode(name("x/y")),
            "{missing}"
        );
        assert!(missing.to_string().contains("`other/line/x` is not bound"));
        near.remove_context(&name("other/line"))
            .expect("it is empty");
        near.unbind(&name("other/drive.k")).expect("it is bound");
        assert_eq!(
            far.resolve(&name("plant/drive.k")).map_err(|f| f.reason),
            Err(FailureReason::MissingNode(name("drive.k")))
        );
        near.unbind(&name("other")).expect("it is bound");
        far.remove_context(&name("plant")).expect("it is empty");
    }
}

#[test]
fn a_tree_with_circles_through_both_services_is_listed_once() {
    let Some(omniorb) = omniorb() else { return };
    let scratch = Scratch::new();
    let (_names, theirs) = omniorb.names(&scratch);
    let server = OurNames::serve();
    let orb = client();
    let (ours, theirs) = (root(&orb, &server.address()), root(&orb, &theirs));
    let plant = ours.bind_new_context(&name("plant")).expect("made");
    plant
        .bind_context(&name("theirs"), &theirs, Existing::Keep)
        .expect("bound");
    theirs
        .bind_context(&name("back"), &plant, Existing::Keep)
        .expect("bound");
    theirs
        .bind(&name("drive"), &somebody(&orb, "k"), Existing::Keep)
        .expect("bound");
    assert_eq!(
        listed(
            &ours,
            Walk {
                depth_max: 64,
                chunk: 1
            }
        ),
        [
            "plant/",
            "plant/theirs/",
            "plant/theirs/drive",
            "plant/theirs/back/ is plant"
        ]
    );
    assert_eq!(
        listed(
            &ours,
            Walk {
                depth_max: 2,
                chunk: 100
            }
        ),
        ["plant/", "plant/theirs/ is too deep"]
    );
}

fn listed(context: &Context, walk: Walk) -> Vec<String> {
    let mut lines = Vec::new();
    let Ok(()) = walk.walk(context, &mut |step| {
        lines.push(match step {
            Step::Object(name) => format_name(name),
            Step::Context(name, Inside::Follows) => format!("{}/", format_name(name)),
            Step::Context(name, Inside::TooDeep) => format!("{}/ is too deep", format_name(name)),
            Step::Context(name, Inside::Listed(other)) => {
                format!("{}/ is {}", format_name(name), format_name(other))
            }
            Step::Failed(failure) => failure.to_string(),
        });
        Ok::<(), Infallible>(())
    });
    lines
}
