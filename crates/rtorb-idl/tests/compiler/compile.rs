//! The compiler as a `build.rs` uses it.

use std::path::Path;

use rtorb_idl::Compiler;

fn out_dir(name: &str) -> std::path::PathBuf {
    let dir = std::env::temp_dir().join(format!("rtorb-idl-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("the temporary directory can be written");
    dir
}

#[test]
fn writes_rust_under_the_name_of_the_idl_file() {
    let dir = out_dir("right");
    let file = dir.join("two.parts.idl");
    std::fs::write(
        &file,
        "#include \"shared.idl\"\ninterface Counter { Shared add(in long n); };\n",
    )
    .expect("it can be written");
    let compiler = Compiler::new()
        .include_dir("tests/right/include")
        .out_dir(&dir);
    let compiled = compiler
        .try_compile(&file)
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(compiled.output, dir.join("two.parts.rs"));
    let text = std::fs::read_to_string(&compiled.output).expect("it was written");
    assert!(
        text.contains("trait CounterServant") && text.contains("struct Shared"),
        "{text}"
    );
    let read: Vec<&Path> = compiled
        .sources
        .files()
        .iter()
        .filter_map(|file| file.path())
        .collect();
    assert_eq!(
        read,
        [file.as_path(), Path::new("tests/right/include/shared.idl")]
    );
    std::fs::remove_dir_all(dir).expect("it is ours");
}

#[test]
fn returns_the_messages_of_a_wrong_file() {
    let dir = out_dir("wrong");
    let error = Compiler::new()
        .out_dir(&dir)
        .try_compile(Path::new("tests/wrong/oneway_wrong.idl"));
    let message = error.expect_err("it is wrong").to_string();
    assert!(
        message.contains("oneway_wrong.idl:3:10") && message.contains("must be `void`"),
        "{message}"
    );
    assert_eq!(
        std::fs::read_dir(&dir).expect("it exists").count(),
        0,
        "nothing is written"
    );
    let error = Compiler::new()
        .out_dir(&dir)
        .try_compile(Path::new("tests/nowhere.idl"));
    assert!(
        error
            .expect_err("it does not exist")
            .to_string()
            .contains("cannot read `tests/nowhere.idl`")
    );
    std::fs::remove_dir_all(dir).expect("it is ours");
}

#[test]
fn names_the_chosen_runtime_and_no_standard_library() {
    let dir = out_dir("runtime");
    let file = dir.join("log.idl");
    std::fs::write(
        &file,
        "valuetype Line { public string text; };\ninterface Log { void add(in sequence<Line> lines, in map<long, string> names); };\n",
    )
    .expect("it can be written");
    let compiler = |runtime: &str| Compiler::new().out_dir(&dir).runtime(runtime);
    let compiled = compiler("sdk::orb").try_compile(&file);
    let compiled = compiled.unwrap_or_else(|error| panic!("{error}"));
    let text = std::fs::read_to_string(&compiled.output).expect("it was written");
    assert!(
        text.contains("\n::sdk::orb::codegen::generated! {"),
        "{text}"
    );
    assert!(
        !text.contains("::rtorb") && !text.contains("::std"),
        "{text}"
    );

    let refused = compiler("rtorb-embedded").try_compile(&file);
    let message = refused.expect_err("it is no path").to_string();
    assert!(
        message.contains("`rtorb-embedded` is not the path"),
        "{message}"
    );
    std::fs::remove_dir_all(dir).expect("it is ours");
}

#[test]
fn calls_can_be_started_only_where_the_build_script_asks_for_it() {
    let dir = out_dir("started");
    let idl = "interface Motor { long turn(in long degrees); oneway void nudge(); void start(); };";
    std::fs::write(dir.join("motor.idl"), idl).expect("there is a disk");
    let text = |compiler: Compiler| {
        let compiled = compiler.out_dir(&dir).try_compile(&dir.join("motor.idl"));
        compiled.map(|it| std::fs::read_to_string(it.output).expect("it is written"))
    };
    let plain = text(Compiler::new()).expect("the text is right");
    assert!(plain.contains("fn start(&self)") && !plain.contains("Starter"));
    let off = text(Compiler::new().start_calls(false)).expect("the text is right");
    assert_eq!(off, plain);
    let started = text(Compiler::new().start_calls(true)).expect("the text is right");
    assert!(started.contains("struct MotorCalls<'o>(::rtorb::codegen::Starter<'o>)"));
    assert!(started.contains("fn start_(&self)"), "an operation yields");
    let turns = started.matches("fn turn(").count() - plain.matches("fn turn(").count();
    let nudges = started.matches("fn nudge(").count() - plain.matches("fn nudge(").count();
    assert_eq!((turns, nudges), (1, 0), "a oneway has no reply");
    let embedded = Compiler::new().start_calls(true).runtime("rtorb_embedded");
    let refused = text(embedded).expect_err("that ORB has no started calls");
    assert!(refused.to_string().contains("start_calls"), "{refused}");
    std::fs::remove_dir_all(dir).expect("it is there");
}

#[test]
fn replies_can_be_deferred_only_where_the_build_script_asks_for_it() {
    let dir = out_dir("deferred");
    let idl = "interface Base { readonly attribute string name; }; \
               interface Motor : Base { \
                 long turn(in string responder, in long degrees, out double speed); \
                 oneway void nudge(in string why); \
               }; \
               struct MotorDeferredServant { long it; };";
    std::fs::write(dir.join("motor.idl"), idl).expect("there is a disk");
    let text = |compiler: Compiler| {
        let compiled = compiler.out_dir(&dir).try_compile(&dir.join("motor.idl"));
        compiled.map(|it| std::fs::read_to_string(it.output).expect("it is written"))
    };
    let plain = text(Compiler::new()).expect("the text is right");
    assert!(!plain.contains("Responder") && plain.contains("pub struct MotorDeferredServant {"));
    let off = text(Compiler::new().defer_replies(false)).expect("the text is right");
    assert_eq!(off, plain);
    let deferred = text(Compiler::new().defer_replies(true)).expect("the text is right");
    let one_line = deferred.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "pub trait MotorDeferredServant: BaseDeferredServant {",
        "pub struct MotorDeferredServant_ {",
        "fn name( &self, responder: ::rtorb::codegen::Responder< ::rtorb::codegen::String, \
         ::rtorb::codegen::SystemException, >, );",
        "responder_: ::rtorb::codegen::Responder< (i32, f64), ::rtorb::codegen::SystemException, >, \
         responder: ::rtorb::codegen::String, degrees: i32, );",
        "ServedBy<::rtorb::codegen::Deferring<S>> for Motor",
    ] {
        assert!(one_line.contains(expected), "{expected} in {one_line}");
    }
    let nudges = deferred.matches("fn nudge(").count() - plain.matches("fn nudge(").count();
    assert_eq!(nudges, 2, "of a servant and of its Arc");
    assert!(
        !one_line.contains("fn nudge( &self, responder"),
        "a oneway has no reply to defer"
    );
    let tasks = text(Compiler::new().async_servants(true)).expect("the text is right");
    assert!(tasks.contains("pub trait MotorDeferredServant: BaseDeferredServant {"));
    let one_line = tasks.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "pub trait MotorAsyncServant: BaseAsyncServant {",
        "fn turn( &self, responder: ::rtorb::codegen::String, degrees: i32, ) -> impl ::core::future::Future<",
        "MotorDeferredServant for ::rtorb::codegen::TaskServant<S, X>",
    ] {
        assert!(one_line.contains(expected), "{expected} in {one_line}");
    }
    let embedded = Compiler::new()
        .defer_replies(true)
        .runtime("rtorb_embedded");
    let refused = text(embedded).expect_err("that ORB has no deferred replies");
    assert!(refused.to_string().contains("defer_replies"), "{refused}");
    std::fs::remove_dir_all(dir).expect("it is there");
}

//= CORBA 3 §22.6.1
//% test
//= CORBA 3 §22.8
//% test
#[test]
fn messaging_has_the_names_of_implied_idl() {
    let dir = out_dir("ami");
    let compiler = Compiler::new().out_dir(&dir);
    let text = |compiler: Compiler| {
        let compiled = compiler.try_compile(Path::new("tests/ami/stocks.idl"));
        compiled.map(|it| std::fs::read_to_string(it.output).expect("it is written"))
    };
    let plain = text(compiler.clone()).expect("the text is right");
    assert!(!plain.contains("sendc_get") && !plain.contains("Poller"));
    let off = text(compiler.clone().ami(false)).expect("the text is right");
    assert_eq!(off, plain);
    let ami = text(compiler.clone().ami(true)).expect("the text is right");
    // What is asked for beside it changes nothing.
    let both = compiler.clone().ami(true).start_calls(true);
    assert_eq!(text(both).expect("the text is right"), ami);
    insta::assert_snapshot!("ami_stocks", ami);
    let embedded = compiler.ami(true).runtime("rtorb_embedded");
    let refused = text(embedded).expect_err("that ORB has no started calls");
    assert!(refused.to_string().contains("`ami`"), "{refused}");
    std::fs::remove_dir_all(dir).expect("it is there");
}
