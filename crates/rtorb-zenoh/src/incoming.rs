//! Samples as they come from Zenoh: they are checked, counted and queued on its threads.

use rtorb_os::clock::monotonic_ns;
use zenoh::key_expr::KeyExpr;
use zenoh::sample::{Sample, SampleKind};

use crate::accounts::NumberVerdict;
use crate::bands;
use crate::config::FederationNews;
use crate::keys::{EventKey, KeyPattern};
use crate::message::{MalformedSample, SampleHeader};
use crate::numbers::{NumberReport, REPORT_BYTES_MAX};
use crate::shared::Shared;
use crate::work_queue::ReceivedSample;

impl Shared {
    /// Takes a sample that the subscription to `pattern` got.
    pub(crate) fn receive(&self, pattern: KeyPattern, sample: &Sample) {
        let Some(key) = self.keys.read_events(sample.key_expr().as_str()) else {
            return self.refuse_other(sample.key_expr(), MalformedSample::Key);
        };
        if !self.accounts.lock().is_taken_by(pattern, key) {
            return;
        }
        self.counts.incoming(|counts| counts.arrived += 1);
        match self.check(sample, key) {
            Ok(Some(received)) => {
                let discarded = self.work.put(bands::place(sample.priority()), received);
                self.counts.incoming(|counts| {
                    counts.waiting -= discarded;
                    counts.discarded_full += discarded;
                });
            }
            Ok(None) => {}
            Err(wrong) => self.refuse(sample.key_expr(), wrong),
        }
    }

    /// Takes a report of numbers.
    pub(crate) fn receive_report(&self, sample: &Sample) {
        if !self.keys.is_report(sample.key_expr().as_str()) {
            return self.refuse_other(sample.key_expr(), MalformedSample::Key);
        }
        if sample.payload().len() > REPORT_BYTES_MAX {
            return self.refuse_other(sample.key_expr(), MalformedSample::Report);
        }
        let noted = NumberReport::read(&sample.payload().to_bytes()).and_then(|report| {
            let is_noted = self.accounts.lock().note_report(&report, monotonic_ns());
            is_noted.then_some(()).ok_or(MalformedSample::TooManyKeys)
        });
        if let Err(wrong) = noted {
            self.refuse_other(sample.key_expr(), wrong);
        }
    }

    /// Takes the coming or going of a member.
    pub(crate) fn receive_member(&self, sample: &Sample) {
        let Some(member) = self.keys.read_member(sample.key_expr().as_str()) else {
            return self.refuse_other(sample.key_expr(), MalformedSample::Key);
        };
        if self.is_own(&member.session) {
            return;
        }
        let is_there = sample.kind() == SampleKind::Put;
        let name = member.name.clone();
        if member.version != u32::from(crate::message::VERSION) {
            if is_there {
                let version = member.version;
                self.work
                    .report(FederationNews::OtherVersion { name, version });
            }
            return;
        }
        let mut members = self.members.lock();
        let has_changed = if is_there {
            let mut known = self.known_members.lock();
            if known.len() == MEMBERS_MAX {
                known.retain(|session| members.contains(session));
            }
            if known.len() < MEMBERS_MAX {
                known.insert(member.session.clone());
            }
            members.len() < MEMBERS_MAX && members.insert(member.session)
        } else {
            members.remove(&member.session)
        };
        drop(members);
        if !has_changed {
            return;
        }
        self.work.report(match (is_there, name == self.keys.name) {
            (true, true) => FederationNews::SameName { name },
            (true, false) => FederationNews::Joined { name },
            (false, _) => FederationNews::Left { name },
        });
    }

    /// Checks all of a sample but its event, which another thread decodes. `None` is an event with another fate, which is counted.
    fn check(
        &self,
        sample: &Sample,
        key: EventKey,
    ) -> Result<Option<ReceivedSample>, MalformedSample> {
        if sample.kind() == SampleKind::Delete {
            return Err(MalformedSample::Delete);
        }
        let attachment = sample.attachment().ok_or(MalformedSample::NoHeader)?;
        if attachment.len() > HEADER_BYTES_MAX {
            return Err(MalformedSample::HeaderLength(attachment.len()));
        }
        let header = SampleHeader::read(&attachment.to_bytes())?;
        let (run, index) = (header.run, header.index);
        let verdict = self.accounts.lock().note(run, key, index, monotonic_ns());
        match verdict {
            NumberVerdict::New => {}
            NumberVerdict::TooManyKeys => return Err(MalformedSample::TooManyKeys),
            NumberVerdict::Repeated => {
                self.counts.incoming(|counts| counts.repeated += 1);
                return Ok(None);
            }
            NumberVerdict::Unwanted => {
                self.counts
                    .incoming(|counts| counts.discarded_unwanted += 1);
                return Ok(None);
            }
        }
        let is_large = sample.payload().len() > self.config.event_bytes_max;
        self.counts.incoming(|counts| {
            let count = if is_large {
                &mut counts.discarded_large
            } else {
                &mut counts.waiting
            };
            *count += 1;
        });
        // A copy: the sample keeps the whole batch in which it came.
        Ok((!is_large).then(|| ReceivedSample {
            key_expr: sample.key_expr().clone(),
            key,
            header,
            payload: sample.payload().to_bytes().into_owned(),
        }))
    }

    /// Counts a sample that is no event.
    pub(crate) fn refuse(&self, key_expr: &KeyExpr<'static>, wrong: MalformedSample) {
        self.counts.incoming(|counts| match wrong {
            MalformedSample::OtherVersion(_) => counts.other_version += 1,
            _ => counts.malformed += 1,
        });
        self.complain(key_expr, wrong);
    }

    /// Counts a sample that was not counted when it arrived.
    fn refuse_other(&self, key_expr: &KeyExpr<'static>, wrong: MalformedSample) {
        self.counts.incoming(|counts| counts.arrived += 1);
        self.refuse(key_expr, wrong);
    }

    /// Reports what is wrong with a sample, once for each key.
    fn complain(&self, key_expr: &KeyExpr<'static>, wrong: MalformedSample) {
        let key: String = key_expr.as_str().chars().take(KEY_CHARACTERS_MAX).collect();
        let mut known = self.complaints.lock();
        if known.len() >= COMPLAINTS_MAX || !known.insert(key.clone()) {
            return;
        }
        drop(known);
        let reason = wrong.to_string();
        self.work.report(FederationNews::Malformed { key, reason });
    }
}

const COMPLAINTS_MAX: usize = 64;
const KEY_CHARACTERS_MAX: usize = 400;
/// More members than a federation has: a bound for who writes members' keys.
const MEMBERS_MAX: usize = 4096;
/// A later version may have a longer header, of which the first byte is read.
const HEADER_BYTES_MAX: usize = 1024;
