//! IDL with names that Rust uses itself.

use std::sync::atomic::{AtomicI32, Ordering};

use crate::common::Pair;
use rtorb::{ExceptionKind, Interface, SystemException};
use rtorb_tests::snapshots::escapes;
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
    fn into_(&self, t: Option<&idl::S>) -> Result<(), SystemException> {
        assert!(t.is_none());
        Ok(())
    }
}

impl idl::StrServant for Odd {
    fn clone_(&self) -> Result<idl::str_::S, SystemException> {
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
    derived.into_(None).unwrap();
    let other: idl::Str = pair.serve(Odd);
    assert_eq!(other.clone_().unwrap().u8, 8);
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

/// Keeps the level that each of the two ways to set it wrote last.
#[derive(Default)]
struct Levels {
    attribute: AtomicI32,
    operation: AtomicI32,
}

impl escapes::LoggerServant for Levels {
    fn log_level(&self) -> Result<i32, SystemException> {
        Ok(self.attribute.load(Ordering::Relaxed))
    }

    fn set_log_level(&self, value: i32) -> Result<(), SystemException> {
        self.attribute.store(value, Ordering::Relaxed);
        Ok(())
    }

    fn set_log_level_(&self, level: i32, level_: i32) -> Result<(i32, i32), SystemException> {
        self.operation.store(level + level_, Ordering::Relaxed);
        Ok((level, level_))
    }

    fn depth(&self) -> Result<i32, SystemException> {
        Ok(self.operation.load(Ordering::Relaxed))
    }

    fn set_depth(&self, _: i32) -> Result<(), SystemException> {
        Err(ExceptionKind::NoPermission.into())
    }

    fn clone_(&self) -> Result<Option<escapes::Logger>, SystemException> {
        Ok(None)
    }

    fn eq_(&self, other: Option<&escapes::Logger>) -> Result<bool, SystemException> {
        Ok(other.is_none())
    }

    fn into_(&self, value: i32) -> Result<i32, SystemException> {
        Ok(-value)
    }

    fn type_id_(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn to_string_(&self) -> Result<String, SystemException> {
        Ok("the operation".to_owned())
    }

    fn reset_all(&self) -> Result<(), SystemException> {
        self.set_log_level(0)
    }
}

#[test]
fn escaped_and_chosen_names_call_the_operations_of_their_idl_names() {
    let pair = Pair::new();
    let logger: escapes::Logger = pair.serve(Levels::default());
    logger.set_log_level(5).unwrap();
    assert_eq!(logger.set_log_level_(30, 4).unwrap(), (30, 4));
    assert_eq!(logger.log_level().unwrap(), 5);
    assert_eq!(logger.depth().unwrap(), 34);
    let refused = logger.set_depth(1).unwrap_err();
    assert_eq!(refused.kind, ExceptionKind::NoPermission);
    assert!(logger.clone_().unwrap().is_none() && logger.eq_(None).unwrap());
    assert_eq!(logger.into_(7).unwrap(), -7);
    logger.type_id_().unwrap();
    assert_eq!(logger.to_string_().unwrap(), "the operation");
    assert!(logger.to_string().starts_with("IOR:"));
    logger.reset_all().unwrap();
    assert_eq!(logger.log_level().unwrap(), 0);
    assert_eq!(
        logger.clone(),
        logger,
        "Rust's own methods keep their names"
    );
}
