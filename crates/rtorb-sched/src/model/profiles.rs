//! The profile of each node of a system. The user's choice overrides the file's.

use std::path::PathBuf;

use super::system::System;
use crate::text_file::nearest;

/// A profile that the user names, as the option `--profile`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileOption {
    /// The node; `None` for every node without a profile of its own.
    pub node: Option<String>,
    /// The file.
    pub file: PathBuf,
}

impl core::str::FromStr for ProfileOption {
    type Err = core::convert::Infallible;

    /// Parses `FILE` or `NODE=FILE`. Text with a slash before its `=` is a file.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = text.split_once('=').filter(|(node, _)| !node.contains('/'));
        Ok(match named {
            Some((node, file)) => Self {
                node: Some(node.to_owned()),
                file: file.into(),
            },
            None => Self {
                node: None,
                file: text.into(),
            },
        })
    }
}

/// Returns the file of each node's profile, in the order of the nodes.
///
/// # Errors
/// A message: an unknown node, two profiles for one node, or a node without a profile.
pub fn profiles_of(system: &System, given: &[ProfileOption]) -> Result<Vec<PathBuf>, String> {
    let names = || system.nodes.iter().map(|node| node.name.as_str());
    for (place, one) in given.iter().enumerate() {
        if given[..place].iter().any(|other| other.node == one.node) {
            return Err(match &one.node {
                Some(node) => format!("the node {node} has two profiles: name one"),
                None => "two profiles for all nodes: write NODE=FILE for each node".to_owned(),
            });
        }
        let Some(node) = one.node.as_deref() else {
            continue;
        };
        if !names().any(|name| name == node) {
            let meant = nearest(node, names())
                .map_or_else(String::new, |name| format!(": did you mean {name}?"));
            return Err(format!("{} has no node {node}{meant}", system.name));
        }
    }
    let of = |node: Option<&str>| given.iter().find(|one| one.node.as_deref() == node);
    let each = system.nodes.iter().map(|node| {
        let named = of(Some(&node.name)).or_else(|| of(None));
        let file = named.map(|one| &one.file).or(node.profile.as_ref());
        file.cloned().ok_or_else(|| {
            format!(
                "the node {0} (line {1}) has no profile: name the file with --profile {0}=FILE or `profile` at the node. `rtorb lab run \
                 profile` on it writes one, and --ideal assumes a platform that costs nothing",
                node.name, node.line
            )
        })
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Node, SchedulingPolicy};
    use crate::{PriorityRange, Strategy};

    fn system(profiles: [Option<&str>; 2]) -> System {
        let node = |(name, profile): (&str, Option<&str>)| Node {
            name: name.to_owned(),
            cpus: 1,
            profile: profile.map(PathBuf::from),
            scheduling: vec![SchedulingPolicy::FixedPriority],
            levels: None,
            tick_ns: None,
            line: 3,
        };
        System {
            name: "plant".to_owned(),
            strategy: Strategy::RateMonotonic,
            priorities: PriorityRange {
                least_urgent: 1,
                most_urgent: 9,
            },
            nodes: ["left", "right"]
                .into_iter()
                .zip(profiles)
                .map(node)
                .collect(),
            links: Vec::new(),
            channels: Vec::new(),
            components: Vec::new(),
            behaviours: Vec::new(),
            resources: Vec::new(),
            chains: Vec::new(),
            cause_effect_chains: Vec::new(),
        }
    }

    fn given(texts: &[&str]) -> Vec<ProfileOption> {
        let read = |text: &&str| text.parse().expect("any text is one");
        texts.iter().map(read).collect()
    }

    #[test]
    fn options_override_the_file_and_a_nodes_option_overrides_the_general_one() {
        let of = |profiles, texts: &[&str]| profiles_of(&system(profiles), &given(texts));
        let files = |a: &str, b: &str| Ok(vec![PathBuf::from(a), PathBuf::from(b)]);
        assert_eq!(of([Some("a"), Some("b")], &[]), files("a", "b"));
        assert_eq!(of([Some("a"), Some("b")], &["c"]), files("c", "c"));
        assert_eq!(of([None, None], &["right=d", "c"]), files("c", "d"));
        assert_eq!(of([Some("a"), None], &["right=d"]), files("a", "d"));
        assert_eq!(of([None, None], &["dir/x=y"]), files("dir/x=y", "dir/x=y"));
    }

    #[test]
    fn a_missing_or_unknown_profile_is_an_error_with_advice() {
        for (texts, words) in [
            (&[][..], "rtorb lab run profile"),
            (&["left=a"], "--profile right=FILE"),
            (&["lefd=a"], "did you mean left?"),
            (&["a", "b"], "NODE=FILE"),
            (&["left=a", "left=b"], "the node left has two profiles"),
        ] {
            let said = profiles_of(&system([None, None]), &given(texts)).unwrap_err();
            assert!(said.contains(words), "{words} in {said}");
        }
    }
}
