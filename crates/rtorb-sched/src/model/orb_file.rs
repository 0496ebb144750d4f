//! The configuration file of a component's ORB (`-ORBConfigFile`).

use core::fmt::Write as _;

use super::report::{ComponentLoading, LaneLoading, LaneOrder};
use crate::times::text_of_ns;

impl ComponentLoading {
    /// Returns the text of the component's configuration file: its lanes, and the bands of its connections. Options that the file
    /// omits keep the program's values.
    #[must_use]
    pub fn to_orb_config(&self, system: &str) -> String {
        let mut text = format!(
            "# The ORB of the component {} of {system}, as `rtorb model check --out` computed it:\n\
             # start the component with -ORBConfigFile and this file.\n",
            one_line(&self.component),
            system = one_line(system)
        );
        if let Some(reason) = &self.lacks_lane {
            let _ = write!(text, "\n# It has no lane: {}.\n", one_line(reason));
        }
        let by_deadline = |lane: &LaneLoading| lane.order == LaneOrder::EarliestDeadline;
        if self.lanes.iter().any(by_deadline) {
            text.push_str(
                "\n# One lane for all jobs of its CPU, the earliest deadline first: each static thread is a level. Every call brings the deadline \
                 of its\n# behaviour, counted from the arrival of the root (with_end_time). Make no thread pool in the program.\n",
            );
            if !self.process_with.is_empty() {
                let _ = writeln!(
                    text,
                    "# One process has this component and {}, because this lane orders the jobs of all: their files have the same lanes.",
                    one_line(&self.process_with.join(", "))
                );
            }
            if self.lanes.len() > 1 {
                text.push_str(
                    "# What brings no deadline (events), and oneways of this process, go to an object in the other lane. It passes them on at \
                     once,\n# as a oneway call with the deadline.\n",
                );
            }
            for (behaviour, deadline_ns) in &self.deadlines {
                let deadline = text_of_ns(*deadline_ns);
                let _ = writeln!(text, "#   {}: {deadline}", one_line(behaviour));
            }
            text.push_str("dispatch = \"lanes\"\n");
        } else if !self.lanes.is_empty() {
            text.push_str(
                "\n# A lane for each priority at which it is called. Adapters with a PriorityModel policy use them: make no thread pool\n\
                 # in the program, or the lanes exist twice.\ndispatch = \"lanes\"\n",
            );
        }
        for lane in &self.lanes {
            let _ = write!(
                text,
                "\n[[lanes]]\npriority = {}\nstatic_threads = {}\n",
                lane.priority, lane.threads
            );
            if by_deadline(lane) {
                text.push_str("order = \"earliest_deadline\"\n");
            }
        }
        if !self.bands.is_empty() {
            text.push_str(
                "\n# Connections of its own for each priority at which it calls. A thread that has set no priority, as at the start,\n\
                 # takes another connection, to the lane of the server's priority.\n",
            );
        }
        for (low, high) in &self.bands {
            let _ = write!(text, "[[bands]]\nlow = {low}\nhigh = {high}\n\n");
        }
        format!("{}\n", text.trim_end())
    }
}

/// Removes line ends, which would end the comment.
fn one_line(name: &str) -> String {
    name.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_without_calls_has_neither_lanes_nor_bands() {
        let alone = ComponentLoading {
            component: "a\nlone = 1".to_owned(),
            ..ComponentLoading::default()
        };
        let text = alone.to_orb_config("plant");
        assert!(text.lines().all(|line| line.starts_with('#')), "{text}");
    }

    #[test]
    fn lanes_and_bands_are_tables_of_toml() {
        let loading = ComponentLoading {
            component: "drive".to_owned(),
            lanes: vec![
                LaneLoading {
                    priority: 60,
                    threads: 2,
                    order: LaneOrder::Fifo,
                },
                LaneLoading {
                    priority: 59,
                    threads: 1,
                    order: LaneOrder::EarliestDeadline,
                },
            ],
            bands: vec![(60, 60), (59, 59)],
            priorities: vec![("drive.step".to_owned(), 60)],
            ..ComponentLoading::default()
        };
        let read: toml::Table = loading.to_orb_config("plant").parse().expect("it is TOML");
        assert_eq!(read["dispatch"].as_str(), Some("lanes"));
        let of = |list: &str, at: usize, key: &str| read[list][at][key].as_integer();
        assert_eq!(of("lanes", 0, "static_threads"), Some(2));
        let order = |at: usize| read["lanes"][at].get("order").and_then(toml::Value::as_str);
        assert_eq!([order(0), order(1)], [None, Some("earliest_deadline")]);
        assert_eq!(
            (of("lanes", 1, "priority"), of("bands", 1, "low")),
            (Some(59), Some(59))
        );
    }
}
