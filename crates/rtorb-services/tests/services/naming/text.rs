//! Lists of names that the code set of a connection lacks.

use super::serving::{Serving, name};
use rtorb::cdr::Encode;
use rtorb::skeleton::{OperationTable, ServedBy, ServerCall, unknown_operation};
use rtorb::{ExceptionKind, Orb, Poa, SystemException};
use rtorb_services::naming::NamingConfig;
use rtorb_services::naming::client::{Context, format_name};
use rtorb_services::stubs::naming::cos_naming::{
    Binding, BindingIterator, BindingIteratorServant, BindingList, BindingType, NamingContext,
};
use rtorb_tests::raw::{Connection, Request};
use std::net::SocketAddr;
use std::sync::Mutex;

#[test]
fn a_client_without_code_sets_gets_every_name() {
    let serving = Serving::new(NamingConfig::default());
    for bound in ["a", "\u{6e29}\u{5ea6}", "z"] {
        let bound = serving.root.bind(&name(bound), Some(&serving.object("x")));
        bound.expect("it is bound");
    }
    let mut connection = Connection::to(SocketAddr::from(([127, 0, 0, 1], serving.port())));
    let mut list = Request::two_way(b"NameService", "list").head();
    list.align(8).ulong(10);
    let answer = connection.ask(&list.message()).expect("an answer");
    assert_eq!(answer.status, 0, "{answer:?}");
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    assert!(text.contains("%E6%B8%A9%E5%BA%A6\0"), "{text:?}");

    // By its iterator too.
    let url = format!("corbaloc::1.2@127.0.0.1:{}/NameService", serving.port());
    let object = serving.client.string_to_object(&url).expect("a reference");
    let root = Context::narrow(&object).expect("a context");
    for chunk in [1, 2, 10] {
        let bindings = root.bindings(chunk).expect("a list");
        let names: Vec<_> = bindings.collect::<Result<_, _>>().expect("names");
        assert_eq!(names.len(), 3, "{names:?}");
    }
}

/// A context of a server that cannot send one of its five names, and raises DATA_CONVERSION for each list with it.
struct Untold {
    poa: Poa,
}

const NAMES: [&str; 5] = ["a", "b", "untold", "d", "e"];

/// The names from `place` on, at most `count`, and the place behind them.
fn listed(place: usize, count: u32) -> (usize, Result<BindingList, SystemException>) {
    let end = NAMES.len().min(place + count as usize);
    let names = &NAMES[place..end];
    let listed = names.iter().map(|text| Binding {
        binding_name: name(text),
        binding_type: BindingType::Nobject,
    });
    let listed = if names.contains(&"untold") {
        Err(ExceptionKind::DataConversion.into())
    } else {
        Ok(listed.collect())
    };
    (end, listed)
}

impl ServedBy<Untold> for NamingContext {
    fn find_operation(name: &[u8]) -> Option<usize> {
        static TABLE: OperationTable<1, 1, 4> = OperationTable::new(["list"]);
        TABLE.find(name)
    }

    fn dispatch(
        servant: &Untold,
        operation: usize,
        call: &mut ServerCall<'_>,
    ) -> Result<(), SystemException> {
        if operation != 0 {
            return Err(unknown_operation());
        }
        let (place, listed) = listed(0, call.argument()?);
        let listed = listed?;
        let others = servant.poa.activate(Others(Mutex::new(place)));
        let others: Option<BindingIterator> = Some(others.expect("room"));
        call.reply(|w| {
            listed.encode(w)?;
            others.encode(w)
        })
    }
}

/// The rest of its names.
struct Others(Mutex<usize>);

impl BindingIteratorServant for Others {
    fn next_one(&self) -> Result<(bool, Binding), SystemException> {
        let (there_was, mut listed) = self.next_n(1)?;
        let nothing = Binding::default();
        Ok((there_was, listed.pop().unwrap_or(nothing)))
    }

    fn next_n(&self, how_many: u32) -> Result<(bool, BindingList), SystemException> {
        let mut place = self.0.lock().expect("no panic");
        let (end, listed) = listed(*place, how_many);
        *place = end;
        listed.map(|listed| (!listed.is_empty(), listed))
    }

    fn destroy(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn a_name_that_cannot_be_sent_hides_no_other() {
    let orb = Orb::builder().build().expect("an ORB");
    let poa = orb.root_poa().expect("its adapter");
    poa.manager().activate();
    let context: NamingContext = poa.activate(Untold { poa: poa.clone() }).expect("room");
    let context = Context::narrow(context.as_object()).expect("a context");
    for chunk in [1, 2, 3, 10] {
        let bindings = context.bindings(chunk).expect("a list");
        let listed: Vec<_> = bindings
            .map(|binding| match binding {
                Ok((name, _)) => format_name(&name),
                Err(exception) => exception.kind.to_string(),
            })
            .collect();
        assert_eq!(listed, ["a", "b", "DATA_CONVERSION", "d", "e"], "{chunk}");
    }
}
