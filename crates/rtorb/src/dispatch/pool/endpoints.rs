//! The listening endpoints of the lanes of a pool.

use crate::endpoint::{Endpoint, ListenAddress, ListenEndpoint, PublishedAddress};
use crate::exception::{SystemException, local};
use crate::realtime::ThreadpoolId;
use std::path::{Path, PathBuf};

/// The endpoints that the application set for lanes (`-ORBLaneListenEndpoints`). Other lanes derive theirs from the ORB's.
#[derive(Clone, Debug, Default)]
pub(crate) struct LaneEndpoints {
    given: Vec<Given>,
}

/// An endpoint, and its pool and lane; `None` means all.
#[derive(Clone, Debug)]
struct Given {
    pool: Option<u32>,
    lane: Option<u32>,
    endpoint: ListenEndpoint,
}

impl LaneEndpoints {
    /// Sets an endpoint for the lanes that `which` names: `POOL:LANE`, where `*` means any.
    ///
    /// Pools count from 1, and the ORB's own pool is 0. Lanes count from 0. A lane can have several endpoints.
    ///
    /// # Errors
    /// The mistake in `which`.
    pub(crate) fn add(&mut self, which: &str, endpoint: ListenEndpoint) -> Result<(), String> {
        let given = which.split_once(':').and_then(|(pool, lane)| {
            Some(Given {
                pool: number_or_any(pool)?,
                lane: number_or_any(lane)?,
                endpoint,
            })
        });
        let wrong = || format!("`{which}` names no lanes; write POOL:LANE, as 1:0, 1:* or *:*");
        self.given.push(given.ok_or_else(wrong)?);
        Ok(())
    }

    /// The endpoints of a lane: those that were set for it. Otherwise, the first lane of the ORB's own pool has the endpoints of
    /// the ORB, and every other lane has a derived endpoint for each of these.
    ///
    /// For a TCP endpoint, the system chooses another port of that host. For a path, `.pPOOLlLANE` is added. Nothing is derived from
    /// sockets of a service manager.
    ///
    /// # Errors
    /// INITIALIZE for a lane that has no endpoint because of that.
    pub(crate) fn of_lane(
        &self,
        orb_endpoints: &[ListenEndpoint],
        pool: ThreadpoolId,
        lane: usize,
    ) -> Result<Vec<ListenEndpoint>, SystemException> {
        let given: Vec<_> = self
            .given
            .iter()
            .filter(|given| given.pool.is_none_or(|number| number == pool.get()))
            .filter(|given| given.lane.is_none_or(|number| number as usize == lane))
            .map(|given| given.endpoint.clone())
            .collect();
        match (given.is_empty(), pool, lane) {
            (false, ..) => Ok(given),
            (true, ThreadpoolId::OWN, 0) => Ok(orb_endpoints.to_vec()),
            (true, ..) => {
                let beside = orb_endpoints.iter();
                beside.map(|listen| beside_it(listen, pool, lane)).collect()
            }
        }
    }
}

fn number_or_any(text: &str) -> Option<Option<u32>> {
    match text {
        "*" => Some(None),
        _ => text.parse().ok().map(Some),
    }
}

fn beside_it(
    listen: &ListenEndpoint,
    pool: ThreadpoolId,
    lane: usize,
) -> Result<ListenEndpoint, SystemException> {
    let endpoint = match &listen.address {
        ListenAddress::Endpoint(endpoint) => endpoint,
        ListenAddress::Inherited(sockets) => {
            return Err(local::NO_INHERITED_SOCKET.with_detail(format!(
                "lane {lane} of pool {pool} has no endpoint beside {sockets}: give it one by \
                 -ORBLaneListenEndpoints {pool}:{lane}=ENDPOINT of a program, or by [[lane_endpoints]] of a configuration file (--config of the command)"
            )));
        }
    };
    let endpoint = match endpoint {
        Endpoint::Tcp { host, .. } => Endpoint::Tcp {
            host: host.clone(),
            port: 0,
        },
        Endpoint::Tls { host, .. } => Endpoint::Tls {
            host: host.clone(),
            port: 0,
        },
        Endpoint::Unix { path } => Endpoint::Unix {
            path: path_beside(path, pool, lane),
        },
        Endpoint::SharedMemory { path } => Endpoint::SharedMemory {
            path: path_beside(path, pool, lane),
        },
    };
    // The port that was published leads to the ORB's endpoint: the lane publishes its own.
    let mut published: Vec<PublishedAddress> = Vec::new();
    for PublishedAddress { host, .. } in &listen.published {
        if published.iter().all(|it| it.host != *host) {
            published.push(PublishedAddress {
                host: host.clone(),
                port: None,
            });
        }
    }
    Ok(ListenEndpoint {
        address: ListenAddress::Endpoint(endpoint),
        published,
        port_span: 1,
    })
}

fn path_beside(path: &Path, pool: ThreadpoolId, lane: usize) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".p{pool}l{lane}"));
    beside.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen(text: &str) -> ListenEndpoint {
        text.parse().expect("an endpoint")
    }

    fn of_lane(
        given: &LaneEndpoints,
        orb: &[ListenEndpoint],
        pool: ThreadpoolId,
        lane: usize,
    ) -> Vec<ListenEndpoint> {
        let endpoints = given.of_lane(orb, pool, lane);
        endpoints.expect("the lane has endpoints")
    }

    fn texts(endpoints: &[ListenEndpoint]) -> Vec<String> {
        let text = |listen: &ListenEndpoint| listen.address.to_string();
        endpoints.iter().map(text).collect()
    }

    #[test]
    fn a_lane_listens_beside_each_endpoint_of_the_orb() {
        let orb = [
            listen("iiop://127.0.0.1:2809/publish=gate:12809&publish=wall&publish=gate:12810"),
            listen("uiop:///run/x.sock"),
        ];
        let lane = of_lane(&LaneEndpoints::default(), &orb, ThreadpoolId(1), 2);
        assert_eq!(
            texts(&lane),
            ["iiop://127.0.0.1:0", "uiop:///run/x.sock.p1l2"]
        );
        let published = &lane[0].published[0];
        assert_eq!((&*published.host, published.port), ("gate", None));
        assert_eq!(lane[0].published.len(), 2, "each host once");
    }

    #[test]
    fn the_first_lane_of_the_own_pool_has_the_endpoints_of_the_orb_unless_it_is_given_others() {
        let orb = [listen("iiop://127.0.0.1:2809")];
        let mut given = LaneEndpoints::default();
        let first = of_lane(&given, &orb, ThreadpoolId::OWN, 0);
        assert_eq!(texts(&first), ["iiop://127.0.0.1:2809"]);
        given
            .add("0:0", listen("iiop://127.0.0.1:1000"))
            .expect("0:0");
        let first = of_lane(&given, &orb, ThreadpoolId::OWN, 0);
        assert_eq!(texts(&first), ["iiop://127.0.0.1:1000"]);
    }

    #[test]
    fn a_lane_beside_sockets_of_a_service_manager_needs_an_endpoint_of_its_own() {
        let orb = [listen("inherited://naming")];
        let mut given = LaneEndpoints::default();
        let first = of_lane(&given, &orb, ThreadpoolId::OWN, 0);
        assert_eq!(texts(&first), ["inherited://naming"]);
        let refused = given.of_lane(&orb, ThreadpoolId::OWN, 1);
        let refused = refused.expect_err("it has no socket").to_string();
        assert!(
            refused.contains("-ORBLaneListenEndpoints 0:1=ENDPOINT"),
            "{refused}"
        );
        given
            .add("0:1", listen("inherited://urgent"))
            .expect("0:1 is a lane");
        let second = of_lane(&given, &orb, ThreadpoolId::OWN, 1);
        assert_eq!(texts(&second), ["inherited://urgent"]);
    }

    #[test]
    fn what_is_given_for_a_lane_takes_the_place_of_that() {
        let mut given = LaneEndpoints::default();
        for (which, port) in [("1:0", 1000), ("1:0", 1001), ("2:*", 2000)] {
            let endpoint = listen(&format!("iiop://127.0.0.1:{port}"));
            given.add(which, endpoint).expect(which);
        }
        let orb = [listen("iiop://127.0.0.1:0")];
        let of_lane = |pool, lane| texts(&of_lane(&given, &orb, ThreadpoolId(pool), lane));
        assert_eq!(
            of_lane(1, 0),
            ["iiop://127.0.0.1:1000", "iiop://127.0.0.1:1001"]
        );
        assert_eq!(of_lane(1, 1), ["iiop://127.0.0.1:0"]);
        assert_eq!(of_lane(2, 7), ["iiop://127.0.0.1:2000"]);
        for wrong in ["1", "1:", "x:0", "1:-1", "1:0:0"] {
            let refused = given.add(wrong, listen("iiop://127.0.0.1:0"));
            assert!(refused.expect_err(wrong).contains("POOL:LANE"));
        }
    }
}
