//! The tables of P0 and P2.

use rtorb_results::{LabelValue, Labels, PublishedPoints, PublishedRow};

use super::probe::Test;

/// A published table of context switch times.
#[derive(Debug)]
pub(in crate::experiments) struct Table {
    /// Where it stands.
    pub(in crate::experiments) source: &'static str,
    /// What it was measured on.
    pub(in crate::experiments) machine: &'static str,
    systems: &'static [System],
}

/// A row: mean and standard deviation in microseconds, as they are written there.
#[derive(Debug)]
struct System {
    name: &'static str,
    suspend_resume: Option<(&'static str, &'static str)>,
    yields: Option<(&'static str, &'static str)>,
    synchronized: Option<(&'static str, &'static str)>,
}

impl Table {
    /// What it has of a test: `Linux 0.548 (0.006), ...`; nothing where no system has it.
    pub(in crate::experiments) fn shown(&self, test: Test) -> Option<String> {
        let cells: Vec<String> = self
            .systems
            .iter()
            .filter_map(|system| {
                let (mean, deviation) = system.cell(test)?;
                Some(format!("{} {mean} ({deviation})", system.name))
            })
            .collect();
        (!cells.is_empty()).then(|| cells.join(", "))
    }

    /// Its rows as they stand there; the labels of a column are those of a test.
    pub(super) fn rows(&self, column: impl Fn(Test) -> Labels) -> Vec<PublishedRow> {
        let row = |system: &System| PublishedRow {
            source: format!("{}, {}, us", self.source, self.machine),
            name: system.name.to_owned(),
            cells: Test::ALL
                .into_iter()
                .filter_map(|test| {
                    let (mean, deviation) = system.cell(test)?;
                    Some((column(test), format!("{mean} ({deviation})")))
                })
                .collect(),
        };
        self.systems.iter().map(row).collect()
    }

    /// The means of each system, at the place on the axis that a test has.
    pub(in crate::experiments) fn points(
        &self,
        place: impl Fn(Test) -> LabelValue,
    ) -> Vec<PublishedPoints> {
        let of_system = |system: &System| PublishedPoints {
            source: self.source.to_owned(),
            name: format!("{}, {}", system.name, self.machine),
            of: Default::default(),
            points: Test::ALL
                .into_iter()
                .filter_map(|test| Some((place(test), system.cell(test)?.0.parse().ok()?)))
                .collect(),
        };
        self.systems.iter().map(of_system).collect()
    }
}

impl System {
    /// The papers do not say whether their mutexes inherit priority; they stand once.
    fn cell(&self, test: Test) -> Option<(&'static str, &'static str)> {
        match test {
            Test::SuspendResume => self.suspend_resume,
            Test::Yield => self.yields,
            Test::Synchronized => self.synchronized,
            Test::SynchronizedPlain => None,
        }
    }
}

/// P0 Table 1; the machine is that of section 3.
pub(in crate::experiments) const P0: Table = Table {
    source: "P0 Table 1",
    machine: "Pentium III 866 MHz",
    systems: &[
        System {
            name: "VxWorks",
            suspend_resume: Some(("0.586", "0.025")),
            yields: Some(("0.649", "0.013")),
            synchronized: Some(("0.821", "0.019")),
        },
        System {
            name: "QNX",
            suspend_resume: None,
            yields: Some(("0.470", "0.007")),
            synchronized: Some(("0.861", "0.003")),
        },
        System {
            name: "Linux/RT",
            suspend_resume: None,
            yields: Some(("0.645", "0.007")),
            synchronized: Some(("2.88", "0.015")),
        },
        System {
            name: "Linux",
            suspend_resume: None,
            yields: Some(("0.548", "0.006")),
            synchronized: Some(("2.559", "0.011")),
        },
        System {
            name: "Windows NT",
            suspend_resume: Some(("1.147", "0.005")),
            yields: Some(("1.056", "0.006")),
            synchronized: Some(("1.914", "0.010")),
        },
        System {
            name: "Windows 2K",
            suspend_resume: Some(("1.148", "0.004")),
            yields: Some(("1.075", "0.007")),
            synchronized: Some(("2.810", "0.016")),
        },
    ],
};

/// P2 Table 1; the machine is that of section 3.
pub(in crate::experiments) const P2: Table = Table {
    source: "P2 Table 1",
    machine: "Pentium II 450 MHz",
    systems: &[
        System {
            name: "VxWorks",
            suspend_resume: Some(("0.946", "0.041")),
            yields: None,
            synchronized: Some(("1.62", "0.023")),
        },
        System {
            name: "LynxOS",
            suspend_resume: None,
            yields: Some(("5.42", "0.008")),
            synchronized: Some(("5.96", "0.042")),
        },
        System {
            name: "Windows NT",
            suspend_resume: Some(("1.41", "0.036")),
            yields: Some(("1.78", "0.021")),
            synchronized: Some(("2.79", "0.110")),
        },
        System {
            name: "Solaris",
            suspend_resume: Some(("21.3", "0.569")),
            yields: Some(("11.2", "0.900")),
            synchronized: Some(("131.2", "0.613")),
        },
        System {
            name: "Linux",
            suspend_resume: None,
            yields: Some(("2.60", "0.023")),
            synchronized: Some(("9.72", "0.187")),
        },
    ],
};
