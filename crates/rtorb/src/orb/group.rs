//! A group of the host, by number or by name.

use core::fmt;
use core::str::FromStr;
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// The number of a group. As text, it may be a name in `/etc/group`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group(pub(super) u32);

impl FromStr for Group {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(number) = text.parse() {
            return Ok(Self(number));
        }
        let groups = std::fs::read_to_string(GROUPS).unwrap_or_default();
        number_of(text, &groups).map(Self).ok_or_else(|| {
            format!(
                "`{text}` is neither a number nor a group in {GROUPS}; `getent group NAME` prints the number of other groups"
            )
        })
    }
}

impl<'de> Deserialize<'de> for Group {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        value.deserialize_any(NumberOrName)
    }
}

struct NumberOrName;

impl Visitor<'_> for NumberOrName {
    type Value = Group;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the number or the name of a group")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Group, E> {
        let number = u32::try_from(number);
        number
            .map(Group)
            .map_err(|_| E::custom("a group has a number from 0 to 4294967295"))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Group, E> {
        text.parse().map_err(E::custom)
    }
}

const GROUPS: &str = "/etc/group";

/// The number of a group in the text of a group file: `NAME:PASSWORD:NUMBER:MEMBERS` (group(5)).
fn number_of(name: &str, groups: &str) -> Option<u32> {
    groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        let is_it = fields.next() == Some(name);
        is_it.then(|| fields.nth(1)?.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_found_by_its_whole_name() {
        let groups = "root:x:0:\n# plant2:x:1:\nplant2:x:7:a,b\nplant:x:8:\nbroken:x\nempty:x::\n";
        for (name, number) in [
            ("root", Some(0)),
            ("plant", Some(8)),
            ("plant2", Some(7)),
            ("pla", None),
            ("broken", None),
            ("empty", None),
        ] {
            assert_eq!(number_of(name, groups), number, "{name}");
        }
    }

    #[test]
    fn a_group_is_a_number_or_a_name_of_this_host() {
        assert_eq!("1000".parse(), Ok(Group(1000)));
        assert_eq!("root".parse(), Ok(Group(0)));
        let refused = "no such group".parse::<Group>().expect_err("no name");
        assert!(refused.contains("getent"), "{refused}");
    }
}
