//! The sections of the page, by what they measure: `os/wakeup` stands under the operating system.

use crate::section::Section;

/// Experiments whose names begin alike.
pub(crate) struct Group<'a> {
    pub(crate) anchor: String,
    pub(crate) title: String,
    pub(crate) sections: Vec<Section<'a>>,
}

/// The groups that readers know first, then the others as they come.
pub(crate) fn of(sections: Vec<Section<'_>>) -> Vec<Group<'_>> {
    let mut groups: Vec<Group> = Vec::new();
    for section in sections {
        let name = section
            .results
            .experiment
            .split('/')
            .next()
            .unwrap_or_default();
        match groups.iter_mut().find(|group| group.anchor == anchor(name)) {
            Some(group) => group.sections.push(section),
            None => groups.push(Group {
                anchor: anchor(name),
                title: title(name),
                sections: vec![section],
            }),
        }
    }
    let place = |group: &Group| {
        TITLES
            .iter()
            .position(|(name, _)| anchor(name) == group.anchor)
    };
    groups.sort_by_key(|group| place(group).unwrap_or(TITLES.len()));
    groups
}

fn anchor(name: &str) -> String {
    format!("group-{name}")
}

fn title(name: &str) -> String {
    let known = TITLES.iter().find(|(known, _)| *known == name);
    known.map_or_else(|| name.to_owned(), |(_, title)| (*title).to_owned())
}

const TITLES: [(&str, &str); 4] = [
    ("model", "Systems, as analysed and as run"),
    ("os", "Operating system"),
    ("orb", "ORB"),
    ("kernel", "Kernels"),
];
