//! What is wrong in Zenoh: it is counted, said once with its key, and harms nothing.

use std::sync::mpsc;

use rtorb::cdr::{ByteOrder, CharCodeSet, Encode, Writer};
use rtorb_services::events::Event;
use rtorb_services::events::client::Receiver;
use rtorb_services::events::subscribe::Interest;
use rtorb_zenoh::{FederationConfig, FederationNews};

use crate::setup::{
    Member, PATIENCE, Plant, TYPE, endpoint, event, key, listening, next, number, numbers,
};
use crate::stranger::{Stranger, WrittenHeader};

/// A channel with a member, and a stranger that is connected to it and was heard.
struct Listening {
    plant: Plant,
    member: Member,
    consumer: Receiver,
    stranger: Stranger,
}

impl Listening {
    fn start(change: impl FnOnce(&mut FederationConfig)) -> Self {
        let plant = Plant::start();
        let at = endpoint();
        let mut config = listening("to", &at);
        change(&mut config);
        let member = Member::start(&plant, config);
        let consumer = plant.consumer(Interest::event_type(TYPE));
        member.wait_for_news("it is subscribed", |news| {
            *news == FederationNews::Subscribed { keys: 1 }
        });
        let stranger = Stranger::connect(&at);
        Self {
            plant,
            member,
            consumer,
            stranger,
        }
    }

    /// Publishes the event with this index of the stranger's run.
    fn publish(&self, index: u64) {
        let payload = payload(&event(key(1), index as u32));
        let header = WrittenHeader::of(77, index).bytes();
        self.stranger.put("stranger/20/1", &payload, Some(&header));
    }

    /// Publishes a report that the run has had so many events.
    fn report(&self, next: u64) {
        let mut bytes = vec![1, 0];
        bytes.extend(1u32.to_be_bytes());
        bytes.extend(77u64.to_be_bytes());
        bytes.extend(TYPE.to_be_bytes());
        bytes.extend(1i32.to_be_bytes());
        bytes.extend(next.to_be_bytes());
        self.stranger.put("@numbers/stranger", &bytes, None);
    }
}

fn payload(event: &Event) -> Vec<u8> {
    let mut w = Writer::new(Vec::new(), 100_000)
        .with_order(ByteOrder::Big)
        .with_char_code_set(CharCodeSet::Utf8);
    event.encode(&mut w).expect("it can be encoded");
    [&[0; 4], w.to_bytes().as_slice()].concat()
}

#[test]
fn lost_and_repeated_numbers_are_counted_and_a_repeated_event_is_not_delivered() {
    let all = Listening::start(|_| {});
    for index in [3, 4, 4, 4, 8, 3] {
        all.publish(index);
    }
    let got = [0; 3].map(|_| number(&next(&all.consumer)));
    assert_eq!(got, [3, 4, 8]);
    let counts = all
        .member
        .statistics_when("all came", |counts| counts.incoming.arrived == 6);
    assert_eq!(counts.incoming.repeated, 3, "{counts:#?}");
    assert_eq!(
        (counts.incoming.lost, counts.incoming.unsubscribed),
        (3, 3),
        "{counts:#?}"
    );
    // No event follows, and yet it is known how many there were.
    all.report(12);
    let counts = all
        .member
        .statistics_when("it is reported", |counts| counts.incoming.lost == 6);
    assert_eq!(
        counts.incoming.delivered + counts.incoming.lost + counts.incoming.unsubscribed,
        12
    );
    // One that comes late is not lost any more.
    all.publish(10);
    assert_eq!(number(&next(&all.consumer)), 10);
    let counts = all.member.statistics();
    assert_eq!(counts.incoming.lost, 5, "{counts:#?}");
    assert!(numbers(&all.consumer).is_empty());
}

/// Its key, its payload, and its attachment.
type WrongSample<'s> = (&'s str, &'s [u8], Option<&'s [u8]>);

#[test]
fn each_kind_of_wrong_sample_is_counted_and_said_once_for_its_key() {
    let all = Listening::start(|config| config.event_bytes_max = 500);
    let good = payload(&event(key(1), 0));
    let header = |index| WrittenHeader::of(5, index).bytes();
    let mut newer = header(0);
    newer[0] = 2;
    let mut negative = header(0);
    negative[2] = 0x80;
    let wrong: [WrongSample<'_>; 8] = [
        ("a/20/1", &good, None),
        ("b/20/1", &good, Some(&header(0)[..35])),
        ("c/20/1", &good, Some(&negative)),
        ("d/20/2", &good, Some(&header(0))),
        ("e/20/1", &good[..good.len() - 1], Some(&header(1))),
        ("f/20/1", b"no event at all", Some(&header(2))),
        ("g/20/1", &[], Some(&header(3))),
        ("h/20/01", &good, Some(&header(4))),
    ];
    for (key, payload, attachment) in wrong {
        for _ in 0..2 {
            all.stranger.put(key, payload, attachment);
        }
    }
    let counts = all
        .member
        .statistics_when("all came", |counts| counts.incoming.arrived == 16);
    // The second of each of d to g has a number that came.
    assert_eq!(counts.incoming.repeated, 4, "{counts:#?}");
    let counts = all
        .member
        .statistics_when("all were looked at", |counts| counts.incoming.waiting == 0);
    assert_eq!(counts.incoming.malformed, 12, "{counts:#?}");
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        let at = format!("test/events/{name}/20/");
        let is_said = |news: &FederationNews| matches!(news, FederationNews::Malformed { key, reason } if key.starts_with(&at) && !reason.is_empty());
        all.member.wait_for_news(name, is_said);
        assert_eq!(all.member.count_news(is_said), 1, "{name}");
    }
    all.stranger.put("i/20/1", &good, Some(&newer));
    let counts = all.member.statistics_when("another version", |counts| {
        counts.incoming.other_version == 1
    });
    all.member.wait_for_news("it is refused", |news| {
        matches!(news, FederationNews::Malformed { reason, .. } if reason.contains("version 2"))
    });
    let large = payload(&{
        let mut large = event(key(1), 0);
        large.data.payload = vec![0; 1000];
        large
    });
    all.stranger.put("j/20/1", &large, Some(&header(9)));
    all.member.statistics_when("it is too large", |now| {
        now.incoming.discarded_large == 1 && now.incoming.arrived == counts.incoming.arrived + 1
    });
    let mut late = WrittenHeader::of(5, 10);
    late.deadline_ns = 1;
    all.stranger.put("k/20/1", &good, Some(&late.bytes()));
    all.member
        .statistics_when("it is late", |counts| counts.incoming.discarded_late == 1);
    // All that time nothing was delivered, and what is right still is.
    assert!(numbers(&all.consumer).is_empty());
    all.publish(0);
    assert_eq!(number(&next(&all.consumer)), 0);
    let counts = all.member.statistics();
    assert!(counts.incoming.is_balanced(), "{counts:#?}");
}

#[test]
fn wrong_reports_and_members_of_other_versions_are_refused() {
    let all = Listening::start(|_| {});
    all.stranger
        .put("@numbers/stranger", b"\x01\x00 no list", None);
    all.member.wait_for_news("it is refused", |news| {
        matches!(news, FederationNews::Malformed { reason, .. } if reason.contains("list of numbers"))
    });
    let token = |key: &str| {
        let key = format!("test/events/@members/{key}");
        let token = all.stranger.session.liveliness().declare_token(key);
        zenoh::Wait::wait(token).expect("it is declared")
    };
    let _newer = token("2/newer/00");
    all.member.wait_for_news(
        "a newer member is refused",
        |news| matches!(news, FederationNews::OtherVersion { name, version: 2 } if name == "newer"),
    );
    let _same = token("1/to/00");
    all.member.wait_for_news(
        "another has its name",
        |news| matches!(news, FederationNews::SameName { name } if name == "to"),
    );
    let counts = all.member.statistics();
    assert_eq!(
        (counts.members, counts.incoming.malformed),
        (1, 1),
        "{counts:#?}"
    );
    assert_eq!(all.plant.consumers(), 2);
}

#[test]
fn a_full_queue_discards_the_oldest_events_and_counts_them() {
    let plant = Plant::start();
    let at = endpoint();
    let mut config = listening("to", &at);
    config.queue_events = 10;
    let (pass, may_pass) = mpsc::channel::<()>();
    // The member's thread waits while it reports its subscription, and delivers nothing.
    let member = Member::start_with(&plant, config, move |news| {
        if matches!(news, FederationNews::Subscribed { keys: 1 }) {
            let _ = may_pass.recv_timeout(PATIENCE);
        }
    });
    let consumer = plant.consumer(Interest::event_type(TYPE));
    member.wait_for_news("it is subscribed", |news| {
        *news == FederationNews::Subscribed { keys: 1 }
    });
    let stranger = Stranger::connect(&at);
    for index in 0..50 {
        let payload = payload(&event(key(1), index as u32));
        let header = WrittenHeader::of(77, index).bytes();
        stranger.put("stranger/20/1", &payload, Some(&header));
    }
    let counts = member.statistics_when("all came", |counts| counts.incoming.arrived == 50);
    assert_eq!(
        (counts.incoming.waiting, counts.incoming.discarded_full),
        (10, 40)
    );
    drop(pass);
    let got = [0; 10].map(|_| number(&next(&consumer)));
    assert_eq!(got.to_vec(), (40..50).collect::<Vec<u32>>());
    let counts = member.statistics_when("all was delivered", |counts| counts.incoming.waiting == 0);
    assert_eq!(counts.incoming.delivered, 10);
    assert!(counts.incoming.is_balanced(), "{counts:#?}");
}
