//! The beginning and the end of connections at a server: too many of them, and a server that ends.

use super::network::connections;
use super::servant::{Job, Worker};
use super::world::{Sending, World, object};
use crate::clock::monotonic_ns;
use crate::{CompletionStatus, ExceptionKind, Limits, Orb};
use core::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(10);

#[test]
fn an_idle_connection_gives_way_and_is_opened_again() {
    for sending in [Sending::Waiting, Sending::ByEventLoop] {
        let world = World::perfect();
        let limits = Limits::with(|limits| limits.connections_max = 2);
        let server = world.serve(Orb::builder().limits(limits), sending);
        let workers = [(); 3].map(|()| {
            let builder = Orb::builder().round_trip_timeout(Some(TIMEOUT));
            Worker(object(&world, builder, &server.reference))
        });
        for number in 0..30 {
            let worker = &workers[number as usize % 3];
            worker.work(Job::small(number)).expect("it is served");
        }
        assert_eq!(server.log.len(), 30);
        assert_eq!(
            connections(),
            30,
            "each call takes the place of the oldest connection"
        );
    }
}

#[test]
fn a_client_is_refused_while_all_connections_are_busy() {
    let world = World::perfect();
    let limits = Limits::with(|limits| limits.connections_max = 0);
    let server = world.serve(Orb::builder().limits(limits), Sending::ByEventLoop);
    let builder = Orb::builder().round_trip_timeout(Some(TIMEOUT));
    let worker = Worker(object(&world, builder, &server.reference));
    let failed = worker.work(Job::small(0)).expect_err("it is refused");
    assert_eq!(
        (failed.kind, failed.completed),
        (ExceptionKind::Transient, CompletionStatus::No),
        "{failed}"
    );
    assert!(failed.to_string().contains("connections_max"), "{failed}");
}

#[test]
fn a_server_that_ends_says_so_to_its_clients() {
    for sending in [Sending::Waiting, Sending::ByEventLoop] {
        let world = World::perfect();
        let server = world.serve(Orb::builder(), sending);
        let builder = Orb::builder().round_trip_timeout(Some(TIMEOUT));
        let worker = Worker(object(&world, builder, &server.reference));
        worker.work(Job::small(0)).expect("it is served");
        server.orb.shutdown();
        let begun_ns = monotonic_ns();
        world.pass(Duration::from_millis(2));
        // CloseConnection is there: the request would be sent again, but the server accepts nobody.
        let failed = worker.work(Job::small(1)).expect_err("nobody serves it");
        assert_eq!(
            (failed.kind, failed.completed),
            (ExceptionKind::Transient, CompletionStatus::No),
            "{failed}"
        );
        assert_eq!(server.log.len(), 1);
        assert!(monotonic_ns() > begun_ns);
    }
}
