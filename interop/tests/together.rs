//! Many at once: threads that call, objects that go, and a server that ends in the middle.

use std::thread;

use rtorb::{DispatchStrategy, ExceptionKind, Orb, SystemException};
use rtorb_interop::ours::{Ours, Wide, check_cubit, check_desk};
use rtorb_interop::servants::Cubes;
use rtorb_interop::stubs::Cubit;

const THREADS: usize = 8;

#[test]
fn threads_with_one_reference_do_not_disturb_each_other() {
    for (_, dispatch) in DispatchStrategy::ALL {
        let ours = Ours::serve_as(Orb::builder().dispatch(dispatch));
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| check_cubit(&ours.cubit, &[0, 1, 1021]));
            }
        });
        check_desk(&ours.desk, Wide::Sent);
    }
}

#[test]
fn an_object_that_goes_answers_right_or_is_gone() {
    let ours = Ours::serve();
    let root = ours.orb.root_poa().expect("the ORB runs");
    for _ in 0..100 {
        let cubit: Cubit = root
            .activate(Cubes {
                orb: ours.orb.clone(),
            })
            .expect("there is room");
        let caller = cubit.clone();
        let calling = thread::spawn(move || call_until_it_fails(&caller));
        root.deactivate(cubit.as_object()).expect("it is active");
        let failed = calling.join().expect("no panic");
        assert_eq!(failed.kind, ExceptionKind::ObjectNotExist, "{failed}");
    }
    assert_eq!(ours.cubit.cube_long(3), Ok(27));
}

#[test]
fn a_server_that_ends_leaves_no_client_waiting() {
    for (_, dispatch) in DispatchStrategy::ALL {
        for _ in 0..10 {
            let ours = Ours::serve_as(Orb::builder().dispatch(dispatch));
            let text = ours.text(ours.cubit.as_object());
            thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        let orb = Orb::builder().build().expect("the ORB can be built");
                        let object = orb.string_to_object(&text).expect("a reference");
                        let failed = call_until_it_fails(&Cubit::unchecked_narrow(object));
                        let kinds = [ExceptionKind::Transient, ExceptionKind::CommFailure];
                        assert!(kinds.contains(&failed.kind), "{failed}");
                    });
                }
                ours.orb.shutdown();
            });
        }
    }
}

fn call_until_it_fails(cubit: &Cubit) -> SystemException {
    loop {
        match cubit.cube_long(3) {
            Ok(cubed) => assert_eq!(cubed, 27),
            Err(failed) => return failed,
        }
    }
}
