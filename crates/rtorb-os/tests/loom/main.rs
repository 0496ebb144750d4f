//! The slab, the ring with its admission, the recheck lock, the waiting word and the state of loans under loom, which tries the
//! interleavings of a few threads and what each may read.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p rtorb-os --release loom`. Loom reports a read beside a write, a value dropped twice or
//! never, and a sleep that nobody ends.
#![cfg(loom)]

mod loans;

use loom::model::Builder;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;
use rtorb_os::admission::Admission;
use rtorb_os::recheck_lock::RecheckLock;
use rtorb_os::ring::{PopError, PushError, Ring};
use rtorb_os::slab::{Key, Slab};
use rtorb_os::waiting_word::{Place, WaitingWord};

/// All interleavings in which threads are stopped at most this often against their will.
fn model(preemptions_max: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions_max);
    builder.check(run);
}

#[test]
fn loom_ring_values_of_two_producers_are_popped_once() {
    model(3, || {
        let ring = Arc::new(Ring::new(2));
        let producers: Vec<_> = [1, 2]
            .into_iter()
            .map(|value| {
                let ring = ring.clone();
                thread::spawn(move || ring.push(Box::new(value)).expect("room for two"))
            })
            .collect();
        let early = ring.pop();
        for producer in producers {
            producer.join().unwrap();
        }
        let mut all: Vec<_> = early.into_iter().collect();
        all.extend(core::iter::from_fn(|| ring.pop()));
        all.sort_unstable();
        assert_eq!(all, [Box::new(1), Box::new(2)]);
    });
}

#[test]
fn loom_ring_two_consumers_pop_different_values() {
    model(3, || {
        let ring = Arc::new(Ring::new(2));
        ring.push(1).expect("room");
        ring.push(2).expect("room");
        let other = {
            let ring = ring.clone();
            thread::spawn(move || ring.pop().expect("one for each"))
        };
        let ours = ring.pop().expect("one for each");
        assert_eq!(ours + other.join().unwrap(), 3);
        assert!(ring.is_empty());
    });
}

#[test]
fn loom_ring_a_slot_is_reused_only_after_its_value_was_read() {
    model(3, || {
        let ring = Arc::new(Ring::new(1));
        ring.push(Box::new(1)).expect("room");
        let other = {
            let ring = ring.clone();
            thread::spawn(move || match ring.push(Box::new(2)) {
                Ok(()) => 2,
                Err(PushError::Full(value)) => {
                    assert_eq!(*value, 2);
                    0
                }
                Err(PushError::Closed(_)) => unreachable!("nobody closes it"),
            })
        };
        assert_eq!(*ring.pop().expect("it is there"), 1);
        let pushed = other.join().unwrap();
        assert_eq!(ring.pop().map_or(0, |value| *value), pushed);
    });
}

#[test]
fn loom_ring_no_consumer_sleeps_while_there_is_a_value() {
    model(3, || {
        let ring = Arc::new(Ring::new(2));
        let producer = {
            let ring = ring.clone();
            thread::spawn(move || {
                ring.push(1).expect("room");
                ring.push(2).expect("room");
            })
        };
        assert_eq!(ring.pop_until(None), Ok(1));
        assert_eq!(ring.pop_until(None), Ok(2));
        producer.join().unwrap();
    });
}

#[test]
fn loom_ring_two_sleepers_are_both_woken() {
    model(2, || {
        let ring = Arc::new(Ring::new(2));
        let sleepers: Vec<_> = (0..2)
            .map(|_| {
                let ring = ring.clone();
                thread::spawn(move || ring.pop_until(None).expect("one for each"))
            })
            .collect();
        ring.push(1).expect("room");
        ring.push(2).expect("room");
        let sum: u32 = sleepers.into_iter().map(|s| s.join().unwrap()).sum();
        assert_eq!(sum, 3);
    });
}

#[test]
fn loom_ring_close_wakes_sleepers() {
    model(3, || {
        let ring = Arc::new(Ring::<u32>::new(1));
        let sleeper = {
            let ring = ring.clone();
            thread::spawn(move || ring.pop_until(None))
        };
        ring.close();
        assert_eq!(sleeper.join().unwrap(), Err(PopError::Closed));
    });
}

/// Two requests for a ring with so many slots, one thread that serves them, and room for one that waits. Returns how many the
/// ring did not take.
fn admit_two(slots: usize) -> u32 {
    let queue = Arc::new((Ring::new(slots), Admission::new(1, 100)));
    let server = {
        let queue = queue.clone();
        thread::spawn(move || {
            let (ring, admission) = &*queue;
            while let Ok(bytes) = ring.pop_until(None) {
                admission.note_taken(bytes);
                admission.note_served();
            }
        })
    };
    let (ring, admission) = &*queue;
    let mut refused = 0;
    for bytes in [40, 50] {
        assert!(admission.admit(bytes, 1), "one is served, one waits");
        if ring.push(bytes).is_err() {
            admission.withdraw(bytes);
            refused += 1;
        }
    }
    ring.close();
    server.join().unwrap();
    assert_eq!(admission.accepted(), 0, "each was served or withdrawn");
    assert!(admission.admit(100, 0), "no bytes are left");
    refused
}

#[test]
fn loom_admission_a_ring_with_a_slot_for_each_takes_all_that_is_admitted() {
    model(2, || assert_eq!(admit_two(2), 0));
}

#[test]
fn loom_admission_what_the_ring_does_not_take_is_counted_off() {
    model(2, || {
        admit_two(1);
    });
}

#[test]
fn loom_slab_an_entry_stays_while_a_thread_uses_it() {
    model(3, || {
        let slab = Arc::new(Slab::new(2));
        let key = slab.insert(Box::new(7)).expect("room");
        let reader = {
            let slab = slab.clone();
            thread::spawn(move || {
                if let Some(value) = slab.get(key) {
                    assert_eq!(**value, 7);
                }
            })
        };
        assert!(slab.remove(key));
        assert!(slab.get(key).is_none());
        reader.join().unwrap();
        assert!(slab.is_empty());
    });
}

#[test]
fn loom_slab_a_handle_finds_its_entry_or_nothing_while_its_place_is_reused() {
    model(3, || {
        let slab = std::sync::Arc::new(Slab::new(1));
        let old = slab.insert(Box::new(7)).expect("room");
        let handle = slab.handle(old).expect("the place exists");
        let caller = thread::spawn(move || {
            if let Some(value) = handle.get() {
                assert_eq!(**value, 7);
            }
        });
        assert!(slab.remove(old));
        let next = slab.insert(Box::new(8));
        caller.join().unwrap();
        assert!(next.is_none_or(|next| **slab.get(next).expect("there") == 8));
    });
}

#[test]
fn loom_slab_one_of_two_removals_succeeds_and_the_place_is_reused() {
    model(3, || {
        let slab = Arc::new(Slab::new(1));
        let key = slab.insert(Box::new(7)).expect("room");
        let other = {
            let slab = slab.clone();
            thread::spawn(move || slab.remove(key))
        };
        let ours = slab.remove(key);
        if let Some(next) = slab.insert(Box::new(8)) {
            assert_ne!(next, key);
            assert_eq!(**slab.get(next).expect("there"), 8);
        }
        assert_ne!(ours, other.join().unwrap());
        assert!(slab.get(key).is_none());
    });
}

#[test]
fn loom_slab_an_old_key_finds_nothing_while_its_place_is_reused() {
    model(3, || {
        let slab = Arc::new(Slab::new(1));
        let old = slab.insert(Box::new(7)).expect("room");
        let reader = {
            let slab = slab.clone();
            thread::spawn(move || {
                if let Some(value) = slab.get(old) {
                    assert_eq!(**value, 7);
                }
            })
        };
        assert!(slab.remove(old));
        let next = slab.insert(Box::new(8));
        reader.join().unwrap();
        if let Some(next) = next {
            assert_eq!(**slab.get(next).expect("there"), 8);
            assert_eq!(slab.len(), 1);
        }
    });
}

#[test]
fn loom_slab_entering_sees_the_whole_entry() {
    model(3, || {
        let slab = Arc::new(Slab::new(1));
        let first = slab.insert(Box::new(7)).expect("room");
        assert!(slab.remove(first));
        // Guessed, because passing it on would itself order the accesses.
        let next = Key {
            generation: first.generation + 1,
            ..first
        };
        let reader = {
            let slab = slab.clone();
            thread::spawn(move || slab.get(next).map(|value| **value))
        };
        assert_eq!(slab.insert(Box::new(8)), Some(next));
        assert_eq!(reader.join().unwrap().unwrap_or(8), 8);
    });
}

#[test]
fn loom_slab_two_threads_grow_it_at_once_and_each_entry_is_found() {
    model(3, || {
        // One more than a segment of the model, and than a directory of it.
        for before in [0, 2, 4] {
            let slab = Arc::new(Slab::new(6));
            for value in 0..before {
                slab.insert(Box::new(value)).expect("room");
            }
            let other = {
                let slab = slab.clone();
                thread::spawn(move || slab.insert(Box::new(7)).expect("room"))
            };
            let ours = slab.insert(Box::new(8)).expect("room");
            let theirs = other.join().unwrap();
            assert_eq!(**slab.get(ours).expect("there"), 8);
            assert_eq!(**slab.get(theirs).expect("there"), 7);
        }
    });
}

#[test]
fn loom_recheck_lock_has_one_holder_and_loses_no_event() {
    model(3, || {
        let shared = Arc::new((AtomicU32::new(0), RecheckLock::new(0)));
        let add_and_check = |shared: &(AtomicU32, RecheckLock<u32>)| {
            let (events, lock) = shared;
            events.fetch_add(1, Ordering::Relaxed);
            let mut guard = lock.try_lock();
            while let Some(mut seen) = guard {
                *seen = events.load(Ordering::Relaxed);
                guard = seen.unlock();
            }
        };
        let others: Vec<_> = (0..2)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || add_and_check(&shared))
            })
            .collect();
        add_and_check(&shared);
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(*shared.1.try_lock().expect("all have unlocked"), 3);
    });
}

#[test]
fn loom_waiting_word_no_wake_up_is_lost() {
    model(3, || {
        let shared = Arc::new((AtomicU32::new(0), WaitingWord::default()));
        let sender = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (position, word) = &*shared;
                for next in [1, 2] {
                    position.store(next, Ordering::Release);
                    assert!(!word.call(), "nobody is at a doorbell");
                }
            })
        };
        let (position, word) = &*shared;
        for awaited in [1, 2] {
            while position.load(Ordering::Acquire) < awaited {
                word.announce(Place::Word);
                if position.load(Ordering::Acquire) < awaited {
                    word.sleep(None);
                }
                word.withdraw();
            }
        }
        sender.join().unwrap();
    });
}

#[test]
fn loom_waiting_word_the_doorbell_is_rung_for_what_was_not_seen() {
    model(3, || {
        let shared = Arc::new((AtomicU32::new(0), WaitingWord::default()));
        let sender = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.0.store(1, Ordering::Release);
                shared.1.call()
            })
        };
        shared.1.announce(Place::Doorbell);
        let is_seen = shared.0.load(Ordering::Acquire) == 1;
        assert!(sender.join().unwrap() || is_seen);
    });
}

#[test]
fn loom_waiting_word_a_peer_that_writes_into_it_does_not_keep_a_thread_asleep() {
    model(3, || {
        let shared = Arc::new((AtomicU32::new(0), WaitingWord::default()));
        let peer = {
            let shared = shared.clone();
            thread::spawn(move || shared.1.withdraw())
        };
        let waker = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (has_ended, word) = &*shared;
                has_ended.store(1, Ordering::Release);
                word.wake();
            })
        };
        let (has_ended, word) = &*shared;
        while has_ended.load(Ordering::Acquire) == 0 {
            word.announce(Place::Word);
            if has_ended.load(Ordering::Acquire) == 0 {
                word.sleep(None);
            }
        }
        peer.join().unwrap();
        waker.join().unwrap();
    });
}
