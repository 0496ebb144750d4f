//! epoll(7): sets of files, those of them that may be ready, and the threads that wait for one.

use super::Core;
use super::files::{ERR, FileId, Files, HUP, Object};
use super::tasks::{Ticket, Woken};
use std::collections::{BTreeMap, VecDeque};

#[derive(Debug, Default)]
pub(crate) struct Epoll {
    items: BTreeMap<FileId, Item>,
    /// Each at most once.
    ready: VecDeque<FileId>,
    waiters: Vec<Ticket>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub(crate) interest: u32,
    pub(crate) data: u64,
}

impl Item {
    /// The events of a file that the set reports, if these are its events. A file whose event was reported once has none.
    fn reported(&self, events: u32) -> u32 {
        if self.interest & ONCE != 0 && self.interest & !(EDGE | ONCE) == 0 {
            return 0;
        }
        events & (self.interest | ERR | HUP)
    }
}

const EDGE: u32 = libc::EPOLLET as u32;
const ONCE: u32 = libc::EPOLLONESHOT as u32;

impl Epoll {
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    pub(crate) fn remove(&mut self, file: FileId) {
        self.items.remove(&file);
        self.ready.retain(|it| *it != file);
    }

    pub(crate) fn wait(&mut self, ticket: Ticket) {
        self.waiters.push(ticket);
    }

    /// An event of a file: wakes one of the threads that wait. True if the file was not known to be ready.
    pub(crate) fn note(&mut self, core: &mut Core, file: FileId, events: u32) -> bool {
        let Some(item) = self.items.get(&file) else {
            return false;
        };
        if item.reported(events) == 0 {
            return false;
        }
        let is_new = !self.ready.contains(&file);
        if is_new {
            self.ready.push_back(file);
        }
        self.wake_one(core);
        is_new
    }

    /// The kernel's order is no promise, so the seed chooses.
    fn wake_one(&mut self, core: &mut Core) {
        self.waiters.retain(|it| core.tasks.is_waiting(*it));
        if !self.waiters.is_empty() {
            let chosen = core.random.below(self.waiters.len() as u64) as usize;
            let ticket = self.waiters.swap_remove(chosen);
            core.tasks.wake(ticket, Woken::ByEvent);
        }
    }
}

impl Files {
    pub(crate) fn epoll(&mut self, id: FileId) -> Option<&mut Epoll> {
        match &mut self.open.get_mut(&id)?.object {
            Object::Epoll(epoll) => Some(epoll),
            _ => None,
        }
    }

    /// epoll_ctl(2).
    pub(crate) fn control(
        &mut self,
        core: &mut Core,
        set: FileId,
        operation: i32,
        file: FileId,
        item: Item,
    ) -> Result<(), i32> {
        let epoll = self.epoll(set).ok_or(libc::EINVAL)?;
        let is_known = epoll.items.contains_key(&file);
        match operation {
            libc::EPOLL_CTL_ADD if is_known => return Err(libc::EEXIST),
            libc::EPOLL_CTL_MOD | libc::EPOLL_CTL_DEL if !is_known => return Err(libc::ENOENT),
            libc::EPOLL_CTL_DEL => {
                epoll.remove(file);
                self.file(file)?.watchers.retain(|it| *it != set);
                return Ok(());
            }
            _ => {}
        }
        epoll.items.insert(file, item);
        if operation == libc::EPOLL_CTL_ADD {
            self.file(file)?.watchers.push(set);
        }
        let now = self.readiness(core, file);
        if item.reported(now) != 0
            && self
                .epoll(set)
                .is_some_and(|epoll| epoll.note(core, file, now))
        {
            self.notify(core, set, super::files::IN);
        }
        Ok(())
    }

    /// epoll_wait(2) without a wait.
    pub(crate) fn take_events(
        &mut self,
        core: &mut Core,
        set: FileId,
        max: usize,
    ) -> Result<Vec<(u32, u64)>, i32> {
        let mut taken = Vec::new();
        let known = self.epoll(set).ok_or(libc::EINVAL)?.ready.len();
        for _ in 0..known {
            if taken.len() == max {
                break;
            }
            let Some(file) = self.epoll(set).and_then(|epoll| epoll.ready.pop_front()) else {
                break;
            };
            let now = self.readiness(core, file);
            let Some(epoll) = self.epoll(set) else { break };
            let Some(item) = epoll.items.get_mut(&file) else {
                continue;
            };
            let events = item.reported(now);
            if events == 0 {
                continue;
            }
            core.trace(|| format!("gets {events:x} of {file} (epoll {set})"));
            taken.push((events, item.data));
            if item.interest & ONCE != 0 {
                item.interest = ONCE;
            } else if item.interest & EDGE == 0 {
                epoll.ready.push_back(file);
            }
        }
        let epoll = self.epoll(set).ok_or(libc::EINVAL)?;
        if epoll.has_ready() && !taken.is_empty() {
            epoll.wake_one(core);
        }
        // A set within another one is that of an event loop's strangers.
        if let Some(event_loop) = self.file(set)?.watchers.first() {
            core.count_turns(*event_loop, taken.len());
        }
        Ok(taken)
    }
}
