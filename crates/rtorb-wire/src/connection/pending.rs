//! The requests of a shared connection that wait for their replies.

use super::ReplyError;
use alloc::vec::Vec;

/// The requests of one connection that wait for replies, each with a value of the driver.
///
/// Their number is bounded by the numbers of threads that call and of started calls. A reply finds its request in a step or two, however
/// many wait: the table has open addressing. It grows to twice the most requests that have ever waited at a time, and makes no heap call
/// afterwards.
#[derive(Debug)]
pub struct Pending<T> {
    /// A request that was added while no other waited: it needs no table.
    alone: Option<(u32, T)>,
    /// The table of the others. A request stands at the home of its id, or else at the next free place behind it. At least half of the places are free.
    places: Vec<Option<(u32, T)>>,
    /// The number of requests in the table.
    len: usize,
    /// The number of bits by which the hash of an id is shifted right, which gives its home.
    shift: u32,
    /// True once no more requests may be added.
    is_retired: bool,
    end: Option<ReplyError>,
}

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Self {
            alone: None,
            places: Vec::new(),
            len: 0,
            shift: u32::BITS,
            is_retired: false,
            end: None,
        }
    }
}

/// Places of the first table.
const PLACES_MIN: usize = 16;

/// 2^32 divided by the golden ratio: ids that follow each other have homes far from each other (Knuth, The Art of Computer Programming,
/// 6.4).
const SPREAD: u32 = 0x9e37_79b9;

//= GIOP 1.2 §15.5.2
//# A client may send further requests before a reply arrives. Replies may arrive in any order and are matched by their ids.
impl<T> Pending<T> {
    /// Adds a request that is about to be sent. Returns false, and adds none, if a request with this id waits: ids begin again after 2^31
    /// requests.
    #[must_use]
    #[inline]
    pub fn insert(&mut self, request_id: u32, value: T) -> bool {
        if self.is_empty() {
            self.alone = Some((request_id, value));
            return true;
        }
        let is_other = self.alone.as_ref().is_none_or(|it| it.0 != request_id);
        is_other && self.insert_into_table(request_id, value)
    }

    /// Removes a request whose reply has arrived or whose thread no longer waits.
    #[inline]
    pub fn remove(&mut self, request_id: u32) -> Option<T> {
        let alone = self.alone.take_if(|it| it.0 == request_id);
        match alone {
            Some((_, value)) => Some(value),
            None => self.remove_from_table(request_id),
        }
    }

    /// The driver's value of a request.
    #[inline]
    pub fn get(&self, request_id: u32) -> Option<&T> {
        match &self.alone {
            Some((alone, value)) if *alone == request_id => Some(value),
            _ => self.get_from_table(request_id),
        }
    }

    /// The driver's values, in any order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let all = self.alone.iter().chain(self.places.iter().flatten());
        all.map(|(_, value)| value)
    }

    /// True if no request waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0 && self.alone.is_none()
    }

    /// True while requests may be sent.
    pub fn is_open(&self) -> bool {
        self.end.is_none() && !self.is_retired
    }

    /// Closes the connection to further requests. Those that wait stay.
    pub fn retire(&mut self) {
        self.is_retired = true;
    }

    /// Ends the connection with `why`, unless it has ended already. Returns the driver's values of the requests that wait.
    pub fn end(&mut self, why: ReplyError) -> impl Iterator<Item = T> {
        let waiting = match self.end {
            Some(_) => Self::default(),
            None => core::mem::take(self),
        };
        self.is_retired |= waiting.is_retired;
        self.end.get_or_insert(why);
        let all = waiting.places.into_iter().flatten();
        all.chain(waiting.alone).map(|(_, value)| value)
    }

    /// The first place for an id. There are places.
    fn home(&self, request_id: u32) -> usize {
        (request_id.wrapping_mul(SPREAD) >> self.shift) as usize
    }

    fn behind(&self, place: usize) -> usize {
        (place + 1) & (self.places.len() - 1)
    }

    /// The place of a request in the table, or the free one that ends the search for it. There are places.
    fn place_for(&self, request_id: u32) -> usize {
        let mut place = self.home(request_id);
        while let Some((other, _)) = &self.places[place] {
            if *other == request_id {
                break;
            }
            place = self.behind(place);
        }
        place
    }

    #[inline(never)]
    fn insert_into_table(&mut self, request_id: u32, value: T) -> bool {
        if 2 * self.len >= self.places.len() {
            self.grow();
        }
        let place = self.place_for(request_id);
        let is_free = self.places[place].is_none();
        if is_free {
            self.places[place] = Some((request_id, value));
            self.len += 1;
        }
        is_free
    }

    #[inline(never)]
    fn remove_from_table(&mut self, request_id: u32) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        let place = self.place_for(request_id);
        let (_, value) = self.places[place].take()?;
        self.len -= 1;
        self.move_up(place);
        Some(value)
    }

    #[inline(never)]
    fn get_from_table(&self, request_id: u32) -> Option<&T> {
        if self.len == 0 {
            return None;
        }
        let found = self.places[self.place_for(request_id)].as_ref();
        found.map(|(_, value)| value)
    }

    /// Moves requests up that stand behind their homes, so that the free place is between none of them and its home.
    fn move_up(&mut self, mut free: usize) {
        let mask = self.places.len() - 1;
        let mut next = self.behind(free);
        while let Some((other, _)) = &self.places[next] {
            let from_home = next.wrapping_sub(self.home(*other)) & mask;
            if from_home >= next.wrapping_sub(free) & mask {
                self.places.swap(free, next);
                free = next;
            }
            next = self.behind(next);
        }
    }

    /// Doubles the table.
    #[cold]
    fn grow(&mut self) {
        let len = (2 * self.places.len()).max(PLACES_MIN);
        let larger = (0..len).map(|_| None).collect();
        let earlier = core::mem::replace(&mut self.places, larger);
        self.shift = u32::BITS - len.trailing_zeros();
        self.len = 0;
        for (request_id, value) in earlier.into_iter().flatten() {
            // No id is there twice.
            let _ = self.insert_into_table(request_id, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;

    #[test]
    fn a_retired_connection_keeps_those_that_wait() {
        let mut pending = Pending::default();
        assert!(pending.insert(2, 'a') && pending.insert(4, 'b'));
        pending.retire();
        assert!(!pending.is_open());
        assert_eq!(pending.remove(2), Some('a'));
        assert_eq!(pending.remove(2), None);
        assert_eq!(pending.get(4), Some(&'b'));
        assert_eq!(pending.iter().collect::<Vec<_>>(), [&'b']);
        assert_eq!(pending.end(ReplyError::Ended).collect::<Vec<_>>(), ['b']);
        assert!(pending.is_empty() && !pending.is_open());
    }

    #[test]
    //= GIOP 1.2 §15.4.2.2
    //% test
    fn an_id_that_waits_is_not_given_to_another_request() {
        let mut pending = Pending::default();
        assert!(pending.insert(0, 'a') && pending.insert(2, 'b'));
        assert!(!pending.insert(0, 'c') && !pending.insert(2, 'd'));
        assert_eq!(pending.remove(0), Some('a'));
        assert!(!pending.insert(2, 'e'));
        assert!(pending.insert(0, 'f'));
        assert_eq!(
            (pending.remove(0), pending.remove(2)),
            (Some('f'), Some('b'))
        );
    }

    /// The table does what a map does, with ids that follow each other and wrap, removed in any order, and some that wait for long.
    #[test]
    fn each_request_is_found_whichever_others_wait() {
        let mut random = 1_u32;
        let mut draw = |below: u32| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 16) % below
        };
        let mut pending = Pending::default();
        let mut expected = BTreeMap::new();
        let mut next_id = 0_u32.wrapping_sub(4_000);
        for turn in 0..20_000_u32 {
            let most = if turn % 4_000 < 2_000 { 3 } else { 300 };
            if expected.len() < most {
                assert!(pending.insert(next_id, turn));
                expected.insert(next_id, turn);
                next_id = next_id.wrapping_add(2);
            }
            if draw(2) == 0 || expected.len() >= most {
                let place = draw(expected.len() as u32) as usize;
                let id = *expected.keys().nth(place).expect("there are so many");
                assert_eq!(pending.get(id), expected.get(&id));
                assert_eq!(pending.remove(id), expected.remove(&id));
                assert_eq!(pending.remove(id), None);
            }
            assert_eq!(pending.is_empty(), expected.is_empty());
        }
        let mut left: Vec<_> = pending.end(ReplyError::Ended).collect();
        left.sort_unstable();
        let mut waited: Vec<_> = expected.into_values().collect();
        waited.sort_unstable();
        assert_eq!(left, waited);
    }

    /// A hundred requests in flight, whose replies come in order: each stands at most a few places from its home.
    #[test]
    fn requests_in_flight_stand_near_their_homes() {
        let mut pending = Pending::default();
        let far = |pending: &Pending<()>| {
            let mask = pending.places.len().wrapping_sub(1);
            let taken = pending.places.iter().enumerate();
            let taken = taken.filter_map(|(place, it)| Some((place, it.as_ref()?.0)));
            let distances = taken.map(|(place, id)| place.wrapping_sub(pending.home(id)) & mask);
            distances.max().unwrap_or(0)
        };
        for number in 0..10_000_u32 {
            assert!(pending.insert(2 * number, ()));
            if let Some(oldest) = number.checked_sub(100) {
                assert_eq!(pending.remove(2 * oldest), Some(()));
            }
            assert!(far(&pending) <= 4, "{number}: {}", far(&pending));
        }
        assert_eq!(pending.places.len(), 256);
    }
}
