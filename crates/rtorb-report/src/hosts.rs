//! The hosts that results were measured on: one in a run, several in a folder that holds many.

use rtorb_host::Host;
use rtorb_host::preflight::{self, Finding, Severity};
use rtorb_results::Results;

use crate::host_rows;

/// One host on the page.
pub(crate) struct HostPart<'a> {
    /// `host 2`, where there are several; otherwise empty.
    pub(crate) name: String,
    pub(crate) line: String,
    pub(crate) rows: Vec<(&'static str, String)>,
    pub(crate) fit: bool,
    /// What may be changed, the gravest first.
    pub(crate) grave: Vec<&'a Finding>,
    pub(crate) unfit: Vec<&'a Finding>,
    pub(crate) unknown: Vec<&'a Finding>,
    pub(crate) good: Vec<&'a Finding>,
    host: &'a Host,
}

impl HostPart<'_> {
    /// Whether results were measured here, for all that a description can tell.
    pub(crate) fn is_of(&self, results: &Results) -> bool {
        is_same(self.host, &results.host)
    }
}

/// Every host once, in the order of the results, as the latest results of it found it.
pub(crate) fn of<'a>(all: &[&'a Results]) -> Vec<HostPart<'a>> {
    let mut latest: Vec<&Results> = Vec::new();
    for results in all {
        match latest
            .iter_mut()
            .find(|known| is_same(&known.host, &results.host))
        {
            Some(known) if known.started < results.started => *known = results,
            Some(_) => {}
            None => latest.push(results),
        }
    }
    let several = latest.len() > 1;
    let part = |(at, results): (usize, &&'a Results)| HostPart {
        name: if several {
            format!("host {}", at + 1)
        } else {
            String::new()
        },
        line: host_rows::line(&results.host),
        rows: host_rows::rows(&results.host),
        fit: preflight::is_fit(&results.findings),
        grave: with(results, |severity| {
            severity != Severity::Good && severity != Severity::Unknown
        }),
        unfit: with(results, |severity| severity == Severity::Unfit),
        unknown: with(results, |severity| severity == Severity::Unknown),
        good: with(results, |severity| severity == Severity::Good),
        host: &results.host,
    };
    latest.iter().enumerate().map(part).collect()
}

/// What may change from one minute to the next does not make another host.
fn is_same(one: &Host, other: &Host) -> bool {
    let lasting = |host: &Host| {
        (
            host.name.clone(),
            host.kernel_release.clone(),
            host.kernel_version.clone(),
            host.machine.clone(),
            host.cpu_model.clone(),
            host.cpus_online,
            host.memory_bytes,
            host.virtualisation.clone(),
        )
    };
    lasting(one) == lasting(other)
}

fn with(results: &Results, wanted: impl Fn(Severity) -> bool) -> Vec<&Finding> {
    let mut found: Vec<&Finding> = results
        .findings
        .iter()
        .filter(|finding| wanted(finding.severity))
        .collect();
    found.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_name_or_kernel_is_another_host_and_another_load_is_not() {
        let host = Host::describe();
        let mut busy = host.clone();
        busy.load_average = Some("9.00 9.00 9.00".to_owned());
        assert!(is_same(&host, &busy));
        let mut board = host.clone();
        board.name = Some("board".to_owned());
        assert!(!is_same(&host, &board));
        let mut kernel = host.clone();
        kernel.kernel_version.push_str(" PREEMPT_RT");
        assert!(!is_same(&host, &kernel));
    }
}
