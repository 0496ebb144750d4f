//! CORBA priorities, and the priorities of Zenoh that their events have.

use zenoh::qos::Priority;

/// The CORBA priorities at which the bands of Zenoh begin.
///
/// Zenoh has seven priorities. Each has queues of its own on each link, and a link sends the most urgent message first.
///
/// | Zenoh | native mapping | linear mapping |
/// |---|---|---|
/// | `RealTime` | from 85 | from 28,087 |
/// | `InteractiveHigh` | 71 to 84 | 23,406 to 28,086 |
/// | `InteractiveLow` | 57 to 70 | 18,725 to 23,405 |
/// | `DataHigh` | 43 to 56 | 14,044 to 18,724 |
/// | `Data` | 29 to 42, and without a priority | 9,363 to 14,043, and without a priority |
/// | `DataLow` | 15 to 28 | 4,682 to 9,362 |
/// | `Background` | 0 to 14 | 0 to 4,681 |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorityBands {
    /// The least urgent CORBA priority of each band but `Background`, the most urgent band first.
    pub floors: [i16; 6],
}

impl PriorityBands {
    /// For ORBs whose CORBA priorities are native ones, 0 to 99, or 0 to 98 with the continuous mapping.
    pub const NATIVE: Self = Self {
        floors: [85, 71, 57, 43, 29, 15],
    };

    /// For ORBs that spread all CORBA priorities over the native ones, as TAO does.
    pub const LINEAR: Self = Self {
        floors: [28_087, 23_406, 18_725, 14_044, 9_363, 4_682],
    };

    /// The bands for the mapping of an ORB: [`LINEAR`](Self::LINEAR) if CORBA priorities have native ones beyond 99, else
    /// [`NATIVE`](Self::NATIVE).
    #[must_use]
    pub fn of_orb(orb: &rtorb::Orb) -> Self {
        let most_urgent = rtorb::rt::Priority::new(Self::LINEAR.floors[0]).ok();
        let native = most_urgent.and_then(|it| orb.priority_mapping().to_native(it));
        if native.is_some() {
            Self::LINEAR
        } else {
            Self::NATIVE
        }
    }

    /// The band of a CORBA priority. Events without a priority have Zenoh's usual one.
    pub(crate) fn zenoh(&self, priority: Option<i16>) -> Priority {
        let Some(priority) = priority else {
            return Priority::Data;
        };
        let band = self.floors.iter().position(|&floor| priority >= floor);
        band.map_or(Priority::Background, |band| BANDS[band])
    }

    /// True if each band begins below the one that is more urgent.
    pub(crate) fn is_ordered(&self) -> bool {
        self.floors.is_sorted_by(|urgent, less| urgent > less) && self.floors[5] > 0
    }
}

impl Default for PriorityBands {
    fn default() -> Self {
        Self::NATIVE
    }
}

/// The place of a band among the queues of received events: 0 is the most urgent.
pub(crate) fn place(priority: Priority) -> usize {
    priority as usize - Priority::RealTime as usize
}

/// The number of bands.
pub(crate) const COUNT: usize = 7;

const BANDS: [Priority; 6] = [
    Priority::RealTime,
    Priority::InteractiveHigh,
    Priority::InteractiveLow,
    Priority::DataHigh,
    Priority::Data,
    Priority::DataLow,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_band_begins_where_the_table_says() {
        let native = PriorityBands::NATIVE;
        for (priority, expected) in [
            (99, Priority::RealTime),
            (85, Priority::RealTime),
            (84, Priority::InteractiveHigh),
            (70, Priority::InteractiveLow),
            (56, Priority::DataHigh),
            (42, Priority::Data),
            (28, Priority::DataLow),
            (14, Priority::Background),
            (0, Priority::Background),
        ] {
            assert_eq!(native.zenoh(Some(priority)), expected, "{priority}");
        }
        assert_eq!(native.zenoh(None), Priority::Data);
        assert_eq!(
            PriorityBands::LINEAR.zenoh(Some(i16::MAX)),
            Priority::RealTime
        );
        assert_eq!(
            PriorityBands::LINEAR.zenoh(Some(4_681)),
            Priority::Background
        );
    }

    #[test]
    fn bands_out_of_order_are_found() {
        assert!(PriorityBands::NATIVE.is_ordered());
        assert!(PriorityBands::LINEAR.is_ordered());
        let mut floors = PriorityBands::NATIVE.floors;
        floors.swap(0, 1);
        assert!(!PriorityBands { floors }.is_ordered());
        floors = [6, 5, 4, 3, 2, 0];
        assert!(!PriorityBands { floors }.is_ordered());
    }

    #[test]
    fn places_count_from_the_most_urgent() {
        assert_eq!(place(Priority::RealTime), 0);
        assert_eq!(place(Priority::Background), COUNT - 1);
    }
}
