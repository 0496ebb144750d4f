//! Copies of whole calls, read from outside: which calls are copied, and what a copy has.
//!
//! It is a program of its own, with one test that uses the rings, because they are those of the whole process and have one reader.

use core::num::NonZeroU32;
use rtorb::giop::{PassedReply, PassedRequest};
use rtorb::poa::DynamicServant;
use rtorb::recorder::{CallReader, CopiedCall, ReadError};
use rtorb::skeleton::ServerCall;
use rtorb::{ExceptionKind, ObjectRef, Orb, SystemException};
use rtorb_tests::ours::Ours;
use rtorb_tests::running::until;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::process;

/// A servant that doubles numbers.
struct Doubler;

impl DynamicServant for Doubler {
    fn repository_id(&self) -> &str {
        "IDL:Doubler:1.0"
    }

    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == self.repository_id()
    }

    fn dispatch(&self, operation: &str, call: &mut ServerCall<'_>) -> Result<(), SystemException> {
        if operation != "double" {
            return Err(ExceptionKind::Transient.into());
        }
        let number: i32 = call.arguments().primitive()?;
        call.reply(|w| w.primitive(number * 2))
    }
}

fn double(object: &ObjectRef, number: i32) {
    let doubled = object.invoke("double", |w| w.primitive(number), |r| r.primitive::<i32>());
    assert_eq!(doubled.expect("it doubles"), number * 2);
}

fn attach(sample: u32) -> Result<CallReader, ReadError> {
    let sample = NonZeroU32::new(sample).expect("not 0");
    CallReader::of_process(process::id(), sample)
}

/// Waits until that number of calls is copied: a server copies a call when it has replied.
fn await_calls(reader: &mut CallReader, count: usize) -> Vec<CopiedCall> {
    let mut calls = Vec::new();
    until("the calls are copied", || {
        calls.extend(reader.read().expect("copies"));
        (calls.len() >= count).then_some(())
    });
    assert_eq!(calls.len(), count, "{calls:?}");
    calls
}

/// The object key, the argument and the result of a copied call.
fn parts(call: &CopiedCall) -> (Vec<u8>, i32, i32) {
    let message = call.request.as_deref().expect("it is whole");
    let request = PassedRequest::parse(message, call.code_sets).expect("a request");
    assert_eq!(request.request().operation, b"double");
    let key = request.request().target.object_key().expect("a key");
    let argument = <[u8; 4]>::try_from(request.body()).expect("a number");
    let reply = PassedReply::copy(&call.reply).expect("a reply");
    let (_, mut r) = reply.read().expect("it was read before");
    let result = r.primitive().expect("a number");
    (key.to_vec(), i32::from_ne_bytes(argument), result)
}

#[test]
fn the_calls_of_several_objects_are_copied_while_a_reader_asks_for_them() {
    let missing = attach(1).expect_err("no ORB has made rings");
    assert!(
        matches!(missing, ReadError::NoCallRings { .. }),
        "{missing}"
    );
    let server = Orb::builder().record_calls(4096);
    let ours = Ours::serve_as(server.listen("iiop://127.0.0.1:0"));
    let activated = [(); 2].map(|()| ours.poa.activate_dynamic(Doubler).expect("there is room"));
    let client = Orb::builder().build().expect("the ORB can be built");
    let objects = activated.clone().map(|object| {
        let text = ours.text(&object);
        client.string_to_object(&text).expect("a reference")
    });

    // Nobody asks.
    double(&objects[0], 1);
    let mut reader = attach(1).expect("the rings are there");
    let second = attach(1).expect_err("there is a reader");
    assert!(matches!(second, ReadError::OtherReader { .. }), "{second}");
    double(&objects[0], 20);
    double(&objects[1], 30);
    objects[0]
        .invoke("fail", |_| Ok(()), |_| Ok(()))
        .expect_err("it fails");
    let calls = await_calls(&mut reader, 3);
    let keys = activated.each_ref().map(|object| ours.key(object));
    assert_eq!(parts(&calls[0]), (keys[0].clone(), 20, 40));
    assert_eq!(parts(&calls[1]), (keys[1].clone(), 30, 60));
    for call in &calls {
        assert_eq!(call.repository_id, "IDL:Doubler:1.0");
        assert!(call.began_ns <= call.ended_ns && call.began_ns > 0);
    }
    assert_eq!((reader.served(), reader.lost()), (3, 0));

    // What has no room is counted: a ring has room for fewer than 50 of these calls.
    for number in 0..100 {
        double(&objects[0], number);
    }
    until("all calls have ended", || {
        (reader.served() == 103).then_some(())
    });
    let kept = reader.stop().expect("copies");
    assert!(kept.len() < 100, "{}", kept.len());
    until("the last one is counted", || {
        let late = reader.stop().expect("copies").len();
        (kept.len() + late + reader.lost() as usize == 100).then_some(())
    });
    drop(reader);

    // One of ten; what is left of the reader before is not of this one.
    let mut reader = attach(10).expect("no other reads");
    for number in 0..20 {
        double(&objects[0], number);
    }
    await_calls(&mut reader, 2);
    assert_eq!((reader.served(), reader.lost()), (20, 0));

    spoil_last_ring();
    let spoilt = reader.read().expect_err("no copy is there");
    assert!(matches!(spoilt, ReadError::SpoiltCopies { .. }), "{spoilt}");
}

/// Says in the last ring, which no thread uses, that something was written.
fn spoil_last_ring() {
    let is_of_calls = |path: &std::path::PathBuf| {
        fs::read_link(path).is_ok_and(|file| file.to_string_lossy().contains("memfd:rtorb-calls"))
    };
    let files = fs::read_dir("/proc/self/fd").expect("the files of this process");
    let mut paths = files.flatten().map(|file| file.path());
    let path = paths.find(is_of_calls).expect("the file of the rings");
    let file = OpenOptions::new()
        .write(true)
        .open(path)
        .expect("it is ours");
    let bytes = file.metadata().expect("its size").len();
    let ring_bytes = (16 + 4096 / 8) * 8;
    file.write_all_at(&9_u64.to_ne_bytes(), bytes - ring_bytes)
        .expect("it takes the number");
}
