//! Messages that omniORB and JacORB sent (`golden/`): decoded, and passed to every decoder when damaged.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::decoders;
use rtorb_wire::connection::{ReceiveError, Side};
use rtorb_wire::giop::{
    Header, LocateReplyHeader, LocateRequestHeader, MessageType, ReplyHeader, ReplyStatus,
    RequestHeader, Response, Version,
};
use rtorb_wire::ior::{Ior, ProfileBody};

#[test]
fn every_recorded_message_is_decoded() {
    for (file, messages) in conversations() {
        let mut open = BTreeMap::new();
        let mut receivers = BTreeMap::new();
        for message in messages {
            let header = Header::parse(&message.octets, decoders::BYTES_MAX)
                .unwrap()
                .unwrap();
            assert_eq!(header.message_bytes(), message.octets.len(), "{file}");
            let from_client = message.from_client;
            let side = if from_client {
                Side::Server
            } else {
                Side::Client
            };
            let receiver = receivers
                .entry((message.connection, from_client))
                .or_insert_with(|| decoders::receiver(side));
            let open = open.entry(message.connection).or_default();
            let received = decoders::receive(receiver, &message.octets, |whole| {
                if from_client {
                    note_request(whole, open);
                } else {
                    check_reply(&file, whole, open);
                }
            });
            assert!(
                matches!(
                    received,
                    Ok(())
                        | Err(ReceiveError::Closed {
                            amid_message: false
                        })
                ),
                "{file}"
            );
        }
        let left: Vec<_> = open.values().flatten().collect();
        assert!(left.is_empty(), "{file}: without a reply: {left:?}");
    }
}

#[test]
fn every_recorded_reference_comes_back_from_its_text() {
    let mut seen = 0;
    for (name, reference) in references() {
        let ior = Ior::parse(&reference).unwrap();
        let again = ior.to_string();
        assert_eq!(Ior::parse(&again).unwrap(), ior, "{name}");
        let ProfileBody::Iiop(profile) = ProfileBody::from_tagged(&ior.profiles[0]).unwrap() else {
            panic!("{name} has an IIOP profile");
        };
        assert_eq!(profile.version, Version::V1_2, "{name}");
        assert!(ior.type_id.starts_with("IDL:"), "{name}");
        seen += 1;
    }
    assert!(seen >= 9, "omniORB's, JacORB's and TAO's");
}

#[test]
fn no_truncated_message_makes_a_decoder_panic() {
    for (_, messages) in conversations() {
        for Message { octets, .. } in messages {
            for end in 0..octets.len().min(512) {
                decoders::giop(&octets[..end]);
            }
            decoders::parts(&octets);
        }
    }
}

#[test]
fn no_changed_byte_of_a_message_makes_a_decoder_panic() {
    for (_, messages) in conversations() {
        for Message { octets, .. } in messages {
            for at in 0..octets.len().min(512) {
                for value in [0, 1, 0x7f, 0x80, 0xff] {
                    let mut changed = octets.clone();
                    changed[at] = value;
                    decoders::giop(&changed);
                    decoders::stream(&changed);
                    decoders::values(&changed[at..]);
                }
            }
        }
    }
}

#[test]
fn no_changed_byte_of_a_reference_makes_a_decoder_panic() {
    for (_, reference) in references() {
        let octets = octets(reference.strip_prefix("IOR:").unwrap());
        for at in 0..octets.len() {
            decoders::reference(&octets[..at]);
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = octets.clone();
                changed[at] = value;
                decoders::reference(&changed);
                decoders::text(&changed);
            }
        }
    }
}

fn note_request(octets: &[u8], open: &mut BTreeMap<u32, String>) {
    let header = Header::parse(octets, decoders::BYTES_MAX).unwrap().unwrap();
    let mut r = header.reader(octets);
    match header.message_type {
        MessageType::Request => {
            let request = RequestHeader::decode(&mut r).unwrap();
            let operation = String::from_utf8(request.operation.to_vec()).unwrap();
            assert!(!request.target.object_key().unwrap().is_empty());
            if request.response != Response::None {
                assert_eq!(open.insert(request.request_id, operation), None);
            }
        }
        MessageType::LocateRequest => {
            let request = LocateRequestHeader::decode(&mut r).unwrap();
            assert_eq!(open.insert(request.request_id, "where".to_owned()), None);
        }
        MessageType::CloseConnection => {}
        other => panic!("a client sent {other:?}"),
    }
}

fn check_reply(file: &str, octets: &[u8], open: &mut BTreeMap<u32, String>) {
    let header = Header::parse(octets, decoders::BYTES_MAX).unwrap().unwrap();
    let mut r = header.reader(octets);
    match header.message_type {
        MessageType::Reply => {
            let reply = ReplyHeader::decode(&mut r).unwrap();
            let operation = open.remove(&reply.request_id).unwrap();
            let expected = match operation.as_str() {
                "fail" => ReplyStatus::SystemException,
                // Called three times: it returns once.
                "refuse" if reply.status != ReplyStatus::NoException => ReplyStatus::UserException,
                _ => ReplyStatus::NoException,
            };
            assert_eq!(reply.status, expected, "{file}: {operation}");
        }
        MessageType::LocateReply => {
            let reply = LocateReplyHeader::decode(&mut r).unwrap();
            assert_eq!(open.remove(&reply.request_id).as_deref(), Some("where"));
        }
        MessageType::CloseConnection => {}
        other => panic!("a server sent {other:?}"),
    }
}

struct Message {
    connection: usize,
    from_client: bool,
    octets: Vec<u8>,
}

/// The files of conversations and what is in them.
/// Names and references: recorded ones, and those of TAO with what RT-CORBA has in them.
fn references() -> Vec<(String, String)> {
    let files = ["references.txt", "references-of-tao.txt"];
    let texts = files.map(|file| fs::read_to_string(golden().join(file)).unwrap());
    let lines = texts.iter().flat_map(|text| text.lines());
    let named = lines.filter(|line| !line.starts_with('#')).map(|line| {
        let (name, reference) = line.split_once(' ').unwrap();
        (name.to_owned(), reference.to_owned())
    });
    named.collect()
}

/// Different messages of all conversations.
pub(crate) fn messages() -> BTreeSet<Vec<u8>> {
    let messages = conversations().into_iter().flat_map(|(_, all)| all);
    messages.map(|message| message.octets).collect()
}

fn conversations() -> Vec<(String, Vec<Message>)> {
    let mut files: Vec<_> = fs::read_dir(golden())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let found: Vec<_> = files.iter().filter_map(|file| conversation(file)).collect();
    assert!(found.len() >= 8, "{files:?}");
    found
}

fn conversation(file: &Path) -> Option<(String, Vec<Message>)> {
    let name = file.file_name()?.to_str()?.to_owned();
    let orb = name.starts_with("omniorb-") || name.starts_with("jacorb-");
    let text = fs::read_to_string(file).ok().filter(|_| orb)?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    Some((name, lines.map(message).collect()))
}

fn message(line: &str) -> Message {
    let mut words = line.split(' ');
    Message {
        connection: words.next().unwrap().parse().unwrap(),
        from_client: words.next().unwrap() == "client",
        octets: octets(words.next().unwrap()),
    }
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn octets(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    digits
        .map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap())
        .collect()
}
