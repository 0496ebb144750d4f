//! Where a store is: members of etcd, and a prefix of keys.

use std::str::FromStr;

/// The members of etcd and the keys of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    /// `HOST:PORT` of each member, one at least.
    pub(crate) members: Vec<String>,
    pub(crate) keys: Keys,
}

/// The keys of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Keys {
    /// It ends in `/`.
    pub(crate) prefix: String,
}

impl Keys {
    /// The key with the mark of the last commit.
    pub(crate) fn version(&self) -> String {
        self.full(VERSION)
    }

    /// A key of the store as etcd has it.
    pub(crate) fn full(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    /// A key of etcd as the store has it; `None` if it is none of the store: it may be one of a store whose prefix begins with this one.
    pub(crate) fn own<'k>(&self, key: &'k [u8]) -> Option<&'k str> {
        let key = core::str::from_utf8(key).ok()?.strip_prefix(&self.prefix)?;
        let is_own = matches!(key, VERSION | "about")
            || key.starts_with("contexts/")
            || key.starts_with("bindings/");
        is_own.then_some(key)
    }

    /// The first key behind those of the store.
    pub(crate) fn end(&self) -> String {
        format!("{}0", &self.prefix[..self.prefix.len() - 1])
    }
}

/// The key with the mark of the last commit, without the prefix.
pub(crate) const VERSION: &str = "version";

/// A text that is not the URL of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocationError {
    text: String,
    why: &'static str,
}

impl core::fmt::Display for LocationError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { text, why } = self;
        write!(
            f,
            "`{text}` is not a store in etcd: {why}; write etcd://HOST:PORT/PREFIX, with more members of etcd as HOST:PORT,HOST:PORT"
        )
    }
}

impl core::error::Error for LocationError {}

impl FromStr for Location {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, LocationError> {
        let wrong = |why| LocationError {
            text: text.to_owned(),
            why,
        };
        let rest = text
            .strip_prefix("etcd://")
            .ok_or_else(|| wrong("it does not begin with etcd://"))?;
        let (members, prefix) = rest
            .split_once('/')
            .ok_or_else(|| wrong("it has no prefix for its keys"))?;
        let prefix = prefix.trim_end_matches('/');
        if prefix.is_empty() {
            return Err(wrong("it has no prefix for its keys"));
        }
        if members.contains('@') {
            return Err(wrong("it has a user, and passwords are not supported"));
        }
        let members: Vec<_> = members.split(',').map(str::to_owned).collect();
        for member in &members {
            let is_member = member.rsplit_once(':').is_some_and(|(host, port)| {
                !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port != 0)
            });
            if !is_member {
                return Err(wrong("a member has no host or no port"));
            }
        }
        Ok(Self {
            members,
            keys: Keys {
                prefix: format!("{prefix}/"),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_prefix_are_read() {
        let location: Location = "etcd://a:1,[::1]:2379/plant/names/"
            .parse()
            .expect("a location");
        assert_eq!(location.members, ["a:1", "[::1]:2379"]);
        let keys = location.keys;
        assert_eq!(keys.version(), "plant/names/version");
        assert_eq!(keys.own(b"plant/names/about"), Some("about"));
        assert_eq!(keys.own(b"plant/names/bindings/0/a"), Some("bindings/0/a"));
        assert_eq!(keys.own(b"plant/names0"), None);
        assert_eq!(keys.own(b"plant/names/inner/version"), None);
        assert_eq!(keys.end(), "plant/names0");
    }

    #[test]
    fn a_wrong_url_says_what_is_wrong() {
        for (text, part) in [
            ("names.redb", "does not begin with etcd://"),
            ("etcd://a:1", "no prefix"),
            ("etcd://a:1//", "no prefix"),
            ("etcd://a/p", "no port"),
            ("etcd://a:0/p", "no port"),
            ("etcd://a:1,/p", "no host"),
            ("etcd://me:secret@a:1/p", "passwords are not supported"),
        ] {
            let error = text.parse::<Location>().expect_err(text).to_string();
            assert!(error.contains(part), "{error}");
            assert!(error.contains("etcd://HOST:PORT/PREFIX"), "{error}");
        }
    }
}
