//! Key expressions: where the events of a channel are, what a member subscribes to, and where it says that it is there.

use std::fmt;

use zenoh::key_expr::keyexpr;

/// The type and the source of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventKey {
    /// The type.
    pub event_type: i32,
    /// The source.
    pub source: i32,
}

impl EventKey {
    /// The patterns that match it, sorted.
    pub(crate) fn patterns(self) -> [KeyPattern; 4] {
        let (event_type, source) = (Some(self.event_type), Some(self.source));
        [
            (None, None),
            (None, source),
            (event_type, None),
            (event_type, source),
        ]
        .map(|(event_type, source)| KeyPattern { event_type, source })
    }
}

/// Types and sources that consumers want; `None` is any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyPattern {
    pub(crate) event_type: Option<i32>,
    pub(crate) source: Option<i32>,
}

impl KeyPattern {
    /// All events.
    pub(crate) const ANY: Self = Self {
        event_type: None,
        source: None,
    };

    /// True if this pattern matches all events that the other matches.
    fn covers(self, other: Self) -> bool {
        (self.event_type.is_none() || self.event_type == other.event_type)
            && (self.source.is_none() || self.source == other.source)
    }
}

/// Leaves out the patterns that others cover, and puts them in order. More than `patterns_max` become one pattern of all events.
pub(crate) fn reduced(mut patterns: Vec<KeyPattern>, patterns_max: usize) -> Vec<KeyPattern> {
    patterns.sort_unstable();
    patterns.dedup();
    let broad: Vec<KeyPattern> = (patterns.iter().copied())
        .filter(|pattern| pattern.event_type.is_none() || pattern.source.is_none())
        .collect();
    let is_covered = |&pattern: &KeyPattern| {
        let mut others = broad.iter().filter(|&&other| other != pattern);
        others.any(|other| other.covers(pattern))
    };
    patterns.retain(|pattern| !is_covered(pattern));
    if patterns.len() > patterns_max {
        return vec![KeyPattern::ANY];
    }
    patterns
}

/// The key expressions of one member of a federation.
#[derive(Clone, Debug)]
pub(crate) struct FederationKeys {
    pub(crate) prefix: String,
    pub(crate) name: String,
}

/// A member, as its key says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberKey {
    pub(crate) version: u32,
    pub(crate) name: String,
    pub(crate) session: String,
}

impl FederationKeys {
    /// Where this member's events with a type and a source are.
    pub(crate) fn events(&self, key: EventKey) -> String {
        let Self { prefix, name } = self;
        format!("{prefix}/{name}/{}/{}", key.event_type, key.source)
    }

    /// Where all events of this member are.
    pub(crate) fn own_events(&self) -> String {
        let Self { prefix, name } = self;
        format!("{prefix}/{name}/*/*")
    }

    /// Where the events are that all members publish and a pattern matches.
    pub(crate) fn wanted(&self, pattern: KeyPattern) -> String {
        let part = |number: Option<i32>| number.map_or("*".to_owned(), |number| number.to_string());
        let (event_type, source) = (part(pattern.event_type), part(pattern.source));
        format!("{}/*/{event_type}/{source}", self.prefix)
    }

    /// Where this member says up to which numbers it has published.
    pub(crate) fn own_reports(&self) -> String {
        format!("{}/{REPORTS}/{}", self.prefix, self.name)
    }

    pub(crate) fn all_reports(&self) -> String {
        format!("{}/{REPORTS}/*", self.prefix)
    }

    /// Where this member says that it is there, and which version it speaks.
    pub(crate) fn own_member(&self, version: u8, session: &str) -> String {
        format!(
            "{}/{MEMBERS}/{version}/{}/{session}",
            self.prefix, self.name
        )
    }

    pub(crate) fn all_members(&self) -> String {
        format!("{}/{MEMBERS}/*/*/*", self.prefix)
    }

    /// Reads the key of an event: its type and its source.
    pub(crate) fn read_events(&self, key: &str) -> Option<EventKey> {
        let mut parts = self.parts(key)?;
        let name = parts.next()?;
        let event_type = number(parts.next()?)?;
        let source = number(parts.next()?)?;
        let is_whole = parts.next().is_none() && is_name(name);
        is_whole.then_some(EventKey { event_type, source })
    }

    /// True if this is the key of a report.
    pub(crate) fn is_report(&self, key: &str) -> bool {
        let Some(mut parts) = self.parts(key) else {
            return false;
        };
        parts.next() == Some(REPORTS) && parts.next().is_some_and(is_name) && parts.next().is_none()
    }

    /// Reads the key of a member.
    pub(crate) fn read_member(&self, key: &str) -> Option<MemberKey> {
        let mut parts = self.parts(key)?;
        if parts.next()? != MEMBERS {
            return None;
        }
        let member = MemberKey {
            version: number(parts.next()?)?.try_into().ok()?,
            name: parts.next().filter(|name| is_name(name))?.to_owned(),
            session: parts.next().filter(|id| is_session(id))?.to_owned(),
        };
        parts.next().is_none().then_some(member)
    }

    /// The mark of events that this federation brought to a channel: never 0. FNV-1a of the prefix, in 32 bits.
    pub(crate) fn mark(&self) -> i32 {
        let mix = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        let hash = self.prefix.bytes().fold(0x811c_9dc5, mix);
        hash.max(1).cast_signed()
    }

    fn parts<'k>(&self, key: &'k str) -> Option<std::str::Split<'k, char>> {
        let rest = key.strip_prefix(&self.prefix)?.strip_prefix('/')?;
        Some(rest.split('/'))
    }
}

/// Why a text is no prefix or name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WrongKey {
    Prefix,
    Name,
}

impl fmt::Display for WrongKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Prefix => {
                "names joined by `/`, without `*`, `$`, `?` and `#`, of 1 to 200 bytes, none of which begins with `@`"
            }
            Self::Name => "a name of 1 to 64 letters, digits, `-`, `_` and `.`",
        })
    }
}

/// Checks the prefix of a federation.
pub(crate) fn check_prefix(prefix: &str) -> Result<(), WrongKey> {
    let is_key = keyexpr::new(prefix).is_ok_and(|key| !key.is_wild());
    let is_plain = !prefix.split('/').any(|part| part.starts_with('@'));
    let is_right = is_key && is_plain && prefix.len() <= PREFIX_BYTES_MAX && !prefix.contains('$');
    is_right.then_some(()).ok_or(WrongKey::Prefix)
}

/// Checks the name of a channel.
pub(crate) fn check_name(name: &str) -> Result<(), WrongKey> {
    is_name(name).then_some(()).ok_or(WrongKey::Name)
}

fn is_name(name: &str) -> bool {
    let is_right = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_right)
}

/// Reads a number in its only form: decimal, without a sign that says nothing and without leading zeros.
fn number(text: &str) -> Option<i32> {
    let number: i32 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// True if this is an identity in Zenoh: up to 16 bytes in hexadecimal digits.
fn is_session(id: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (1..=32).contains(&id.len()) && id.bytes().all(is_digit)
}

/// The greatest number of types and sources of a lane.
pub(crate) const KEYS_MAX: usize = 4096;

/// Zenoh's wildcards do not match names that begin with `@`.
const REPORTS: &str = "@numbers";
const MEMBERS: &str = "@members";
const PREFIX_BYTES_MAX: usize = 200;
const NAME_BYTES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> FederationKeys {
        FederationKeys {
            prefix: "plant/events".to_owned(),
            name: "press-1".to_owned(),
        }
    }

    fn key(event_type: i32, source: i32) -> EventKey {
        EventKey { event_type, source }
    }

    fn pattern(event_type: Option<i32>, source: Option<i32>) -> KeyPattern {
        KeyPattern { event_type, source }
    }

    #[test]
    fn keys_are_read_as_they_were_written() {
        let keys = keys();
        let text = keys.events(key(20, 1));
        assert_eq!(text, "plant/events/press-1/20/1");
        assert_eq!(keys.read_events(&text), Some(key(20, 1)));
        let extreme = key(i32::MAX, i32::MIN);
        let text = keys.events(extreme);
        assert_eq!(keys.read_events(&text), Some(extreme));
        assert!(keys.is_report(&keys.own_reports()));
        let member = keys
            .read_member(&keys.own_member(1, "a0"))
            .expect("a member");
        assert_eq!((member.version, member.name.as_str()), (1, "press-1"));
        assert_eq!(member.session, "a0");
    }

    #[test]
    fn other_keys_are_none_of_the_federation() {
        let keys = keys();
        for wrong in [
            "plant/events",
            "plant/events/press-1/20",
            "plant/events/press-1/20/1/2",
            "plant/events/press-1/020/1",
            "plant/events/press-1/+20/1",
            "plant/events/press-1/20/x",
            "plant/events/pre$s/20/1",
            "plant/eventsX/press-1/20/1",
            "other/press-1/20/1",
            "plant/events/@numbers/press-1",
        ] {
            assert_eq!(keys.read_events(wrong), None, "{wrong}");
        }
        assert!(!keys.is_report("plant/events/@members/press-1"));
        assert_eq!(keys.read_member("plant/events/@members/x/press-1/0"), None);
    }

    #[test]
    fn wildcards_of_zenoh_match_events_alone() {
        let keys = keys();
        let intersects = |one: &str, other: &str| {
            let one = keyexpr::new(one).expect("a key expression");
            one.intersects(keyexpr::new(other).expect("a key expression"))
        };
        let wanted = keys.wanted(pattern(Some(20), None));
        assert_eq!(wanted, "plant/events/*/20/*");
        assert!(intersects(&wanted, &keys.events(key(20, 7))));
        assert!(!intersects(&wanted, &keys.events(key(21, 7))));
        let any = keys.wanted(KeyPattern::ANY);
        assert!(!intersects(&any, &keys.own_reports()));
        assert!(!intersects(&any, &keys.own_member(1, "0")));
    }

    #[test]
    fn a_pattern_that_another_covers_is_left_out() {
        let (all, exact) = (pattern(None, None), pattern(Some(20), Some(1)));
        let (of_type, of_source) = (pattern(Some(20), None), pattern(None, Some(1)));
        assert_eq!(reduced(vec![exact, of_type, exact], 9), [of_type]);
        assert_eq!(reduced(vec![exact, of_source], 9), [of_source]);
        assert_eq!(reduced(vec![of_type, of_source], 9), [of_source, of_type]);
        assert_eq!(reduced(vec![of_type, all, exact], 9), [all]);
        let many = (16..30).map(|event_type| pattern(Some(event_type), Some(1)));
        assert_eq!(reduced(many.collect(), 9), [all], "more than the bound");
        assert_eq!(reduced(Vec::new(), 9), []);
    }

    #[test]
    fn a_wrong_prefix_or_name_is_refused() {
        for wrong in [
            "", "/a", "a/", "a//b", "a/*", "a/**", "a/$*b", "a/@b", "a?b", "a#b",
        ] {
            assert_eq!(check_prefix(wrong), Err(WrongKey::Prefix), "{wrong}");
        }
        assert_eq!(check_prefix(&"a".repeat(201)), Err(WrongKey::Prefix));
        assert_eq!(check_prefix("plant/line 3/events"), Ok(()));
        for wrong in ["", "a/b", "@a", "a*", "a b", &"a".repeat(65)] {
            assert_eq!(check_name(wrong), Err(WrongKey::Name), "{wrong}");
        }
        assert_eq!(check_name("host-1.plant_2"), Ok(()));
    }

    #[test]
    fn the_mark_tells_federations_apart() {
        let other = FederationKeys {
            prefix: "plant/other".to_owned(),
            ..keys()
        };
        assert_ne!(keys().mark(), 0);
        assert_ne!(keys().mark(), other.mark());
    }
}
