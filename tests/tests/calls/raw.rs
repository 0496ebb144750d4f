//! Raw messages are what they say.

use rtorb_tests::raw::{FRAGMENT, Request, fragments};

#[test]
fn a_request_is_the_golden_one() {
    let request = Request {
        minor: 2,
        big: false,
        id: 4,
        reply: true,
        key: b"abcdef",
        operation: "shutdown",
    };
    let golden = "47494f50010201002c00000004000000030000000000000006000000616263646566000009000000\
                  73687574646f776e0000000000000000";
    let hex: String = request
        .empty()
        .iter()
        .map(|octet| format!("{octet:02x}"))
        .collect();
    assert_eq!(hex, golden);
}

#[test]
fn fragments_say_that_more_follow_but_for_the_last() {
    let request = Request {
        minor: 2,
        big: true,
        id: 1,
        reply: true,
        key: b"k",
        operation: "cube_octet_sequence",
    };
    let mut stream = request.head();
    stream.align(8).octets(&[7; 100]);
    let parts = fragments(&stream.message(), 64, 48);
    assert!(
        parts
            .iter()
            .rev()
            .skip(1)
            .all(|part| part[6] & 2 == 2 && part.len().is_multiple_of(8))
    );
    assert_eq!(parts.last().map(|part| part[6] & 2), Some(0));
    assert!(
        parts[1..]
            .iter()
            .all(|part| part[7] == FRAGMENT && part[12..16] == [0, 0, 0, 1])
    );
}
