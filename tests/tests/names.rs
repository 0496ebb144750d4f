//! IDL with names that Rust uses itself.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::Pair;
use rtorb::{Interface, SystemException};
use rtorb_tests::snapshots::std as idl;

struct Odd;

impl idl::SomeServant for Odd {
    fn r#loop(
        &self,
        w: &[idl::String],
        _r: &idl::Option,
        self_: &idl::String,
        answer: idl::Result,
        call: &idl::Box,
        servant: &[Option<idl::Some>],
        codegen: &str,
        operation: bool,
        exception_code: i32,
    ) -> Result<Vec<idl::String>, idl::SomeLoopError> {
        match answer {
            idl::Result::Ok => {}
            idl::Result::Err => {
                return Err(idl::Error {
                    text: self_.clone(),
                }
                .into());
            }
            idl::Result::Union => return Err(idl::System.into()),
        }
        assert_eq!(call, &idl::Box::Dyn(idl::Result::Union));
        assert_eq!(
            (servant.len(), codegen, operation, exception_code),
            (1, "codegen", true, -1)
        );
        Ok(w.to_vec())
    }

    fn ask(&self, result: i32) -> Result<idl::Result, idl::SomeAskError> {
        Ok(if result == 0 {
            idl::Result::Ok
        } else {
            idl::Result::Err
        })
    }

    fn keep(
        &self,
        given: &idl::Locals,
        call: i32,
    ) -> Result<(idl::Locals, i32, i32), SystemException> {
        Ok((*given, call + 1, call - 1))
    }

    fn r#fn(&self) -> Result<String, SystemException> {
        Ok("fn".to_owned())
    }

    fn set_fn(&self, value: &str) -> Result<(), SystemException> {
        assert_eq!(value, "new");
        Ok(())
    }
}

impl idl::SServant for Odd {
    fn into(&self, t: Option<&idl::S>) -> Result<(), SystemException> {
        assert!(t.is_none());
        Ok(())
    }
}

impl idl::StrServant for Odd {
    fn clone(&self) -> Result<idl::str_::S, SystemException> {
        Ok(idl::str_::S { u8: 8 })
    }
}

fn text(nested: i32) -> idl::String {
    let nested = idl::Option {
        r#type: nested,
        r#match: "match".to_owned(),
        self_: true,
    };
    idl::String { nested }
}

fn ask(some: &idl::Some, answer: idl::Result) -> Result<Vec<idl::String>, idl::SomeLoopError> {
    let nested = text(1).nested;
    let union = idl::Box::Dyn(idl::Result::Union);
    some.r#loop(
        &[text(2)],
        &nested,
        &text(3),
        answer,
        &union,
        &[None],
        "codegen",
        true,
        -1,
    )
}

#[test]
fn keywords_and_prelude_names_work() {
    let pair = Pair::new();
    let derived: idl::S = pair.serve(Odd);
    let some = idl::Some::from(&derived);
    assert_eq!(ask(&some, idl::Result::Ok).unwrap(), [text(2)]);
    assert_eq!(
        ask(&some, idl::Result::Err).unwrap_err(),
        idl::SomeLoopError::Error(idl::Error { text: text(3) })
    );
    assert_eq!(
        ask(&some, idl::Result::Union).unwrap_err(),
        idl::SomeLoopError::StdSystem(idl::System)
    );
    assert_eq!(some.ask(0).unwrap(), idl::Result::Ok);
    assert_eq!(some.r#fn().unwrap(), "fn");
    some.set_fn("new").unwrap();
    // `derived.into(...)` would call `Into::into`, which takes its receiver by value.
    idl::S::into(&derived, None).unwrap();
    let other: idl::Str = pair.serve(Odd);
    assert_eq!(idl::Str::clone(&other).unwrap().u8, 8);
}

#[test]
fn members_may_have_names_of_local_variables() {
    let pair = Pair::new();
    let some: idl::Some = pair.serve(Odd);
    let locals = idl::Locals {
        at: 1,
        form: 2,
        from: 3,
        out: 4,
        largest: true,
        w: 5,
        r: 6,
        value: 7.5,
    };
    assert_eq!(some.keep(&locals, 10).unwrap(), (locals, 11, 9));
}

#[test]
fn messages_contain_the_idl_name() {
    assert_eq!(idl::Some::REPOSITORY_ID, "IDL:std/Some:1.0");
    assert_eq!(idl::core::Clone::REPOSITORY_ID, "IDL:std/core/Clone:1.0");
    assert_eq!(idl::core::MAX, 1);
}
