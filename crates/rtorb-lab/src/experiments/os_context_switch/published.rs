//! The tables of P0 and P2.

use rtorb_results::{PublishedPoints, PublishedRow, labels};

use super::probe::Test;

/// A published table of context switch times.
#[derive(Debug)]
pub(super) struct Table {
    /// Where it stands.
    source: &'static str,
    /// What it was measured on.
    machine: &'static str,
    /// The name of a system, and in the order of [`Test::ALL`] mean and standard deviation in microseconds, as they are written
    /// there. The papers do not say whether their mutexes inherit priority; they stand once.
    rows: &'static [&'static str],
}

impl Table {
    /// Its rows as they stand there.
    pub(super) fn rows(&self) -> Vec<PublishedRow> {
        let row = |(name, cells): (&str, Vec<(Test, &str)>)| PublishedRow {
            source: format!("{}, {}, us", self.source, self.machine),
            name: name.to_owned(),
            cells: cells
                .into_iter()
                .map(|(test, cell)| (labels([("test", test.label().into())]), cell.to_owned()))
                .collect(),
        };
        self.systems().map(row).collect()
    }

    /// The means of each system.
    pub(super) fn points(&self) -> Vec<PublishedPoints> {
        let of_system = |(name, cells): (&str, Vec<(Test, &str)>)| PublishedPoints {
            source: self.source.to_owned(),
            name: format!("{name}, {}", self.machine),
            points: cells
                .into_iter()
                .filter_map(|(test, cell)| {
                    let (mean, _) = cell.split_once(' ')?;
                    Some((test.label().into(), mean.parse().ok()?))
                })
                .collect(),
            ..PublishedPoints::default()
        };
        self.systems().map(of_system).collect()
    }

    /// Its rows divided by their yields, under the label `operation`.
    pub(super) fn in_yields(&self) -> Vec<PublishedRow> {
        let mean = |cell: &str| cell.split(' ').next()?.parse::<f64>().ok();
        let row = |(name, cells): (&str, Vec<(Test, &str)>)| {
            let (_, of_yield) = cells.iter().find(|(test, _)| *test == Test::Yield)?;
            let of_yield = mean(of_yield)?;
            let ratio = |(test, cell): &(Test, &str)| {
                let of = labels([("operation", test.label().into())]);
                Some((of, format!("{:.2}", mean(cell)? / of_yield)))
            };
            Some(PublishedRow {
                source: format!("{}, {}", self.source, self.machine),
                name: name.to_owned(),
                cells: cells.iter().filter_map(ratio).collect(),
            })
        };
        self.systems().filter_map(row).collect()
    }

    /// Each system with what it has of tests.
    fn systems(&self) -> impl Iterator<Item = (&'static str, Vec<(Test, &'static str)>)> {
        self.rows.iter().map(|row| {
            let mut words = row.split(" | ");
            let name = words.next().unwrap_or_default();
            let cells = Test::ALL.into_iter().zip(words);
            (name, cells.filter(|(_, cell)| *cell != "N/A").collect())
        })
    }
}

/// P0 Table 1; the machine is that of section 3.
pub(super) const P0: Table = Table {
    source: "P0 Table 1",
    machine: "Pentium III 866 MHz",
    rows: &[
        "VxWorks | 0.586 (0.025) | 0.649 (0.013) | 0.821 (0.019)",
        "QNX | N/A | 0.470 (0.007) | 0.861 (0.003)",
        "Linux/RT | N/A | 0.645 (0.007) | 2.88 (0.015)",
        "Linux | N/A | 0.548 (0.006) | 2.559 (0.011)",
        "Windows NT | 1.147 (0.005) | 1.056 (0.006) | 1.914 (0.010)",
        "Windows 2K | 1.148 (0.004) | 1.075 (0.007) | 2.810 (0.016)",
    ],
};

/// P2 Table 1; the machine is that of section 3.
pub(super) const P2: Table = Table {
    source: "P2 Table 1",
    machine: "Pentium II 450 MHz",
    rows: &[
        "VxWorks | 0.946 (0.041) | N/A | 1.62 (0.023)",
        "LynxOS | N/A | 5.42 (0.008) | 5.96 (0.042)",
        "Windows NT | 1.41 (0.036) | 1.78 (0.021) | 2.79 (0.110)",
        "Solaris | 21.3 (0.569) | 11.2 (0.900) | 131.2 (0.613)",
        "Linux | N/A | 2.60 (0.023) | 9.72 (0.187)",
    ],
};
