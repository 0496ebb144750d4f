//! Options of a socket from RT-CORBA's protocol policies: protocol properties, and marks of its packets.

use crate::realtime::{NetworkPriority, Protocol};
use rtorb_os::socket::{set_dont_route, set_priority};
use rustix::io::Errno;
use rustix::net::{AddressFamily, sockopt};
use std::os::fd::AsFd;

/// Applies the protocol properties of a policy to a socket.
//= RT-CORBA 1.2 §Protocol Configuration
//# The protocol properties of a policy set buffers, keep-alive, routing and delay of a socket.
pub(crate) fn apply(socket: impl AsFd, protocol: &Protocol) -> Result<(), Errno> {
    let socket = socket.as_fd();
    let (send, receive) = match protocol {
        Protocol::Tcp(tcp) => (tcp.send_buffer_size, tcp.recv_buffer_size),
        Protocol::UnixDomain(unix) => (unix.send_buffer_size, unix.recv_buffer_size),
        Protocol::SharedMemory(_) => return Ok(()),
    };
    if send > 0 {
        sockopt::set_socket_send_buffer_size(socket, send as usize)?;
    }
    if receive > 0 {
        sockopt::set_socket_recv_buffer_size(socket, receive as usize)?;
    }
    let Protocol::Tcp(tcp) = protocol else {
        return Ok(());
    };
    sockopt::set_tcp_nodelay(socket, tcp.no_delay)?;
    if tcp.keep_alive {
        sockopt::set_socket_keepalive(socket, true)?;
    }
    if tcp.dont_route {
        set_dont_route(socket)
    } else {
        Ok(())
    }
}

/// Sets the marks of a TCP socket's packets, for routers and for this host's own queues.
///
/// SO_PRIORITY comes last: Linux sets it too when it sets IP_TOS (ip(7)).
pub(crate) fn mark(socket: impl AsFd, marks: NetworkPriority) -> Result<(), Errno> {
    let socket = socket.as_fd();
    if sockopt::socket_domain(socket)? == AddressFamily::INET6 {
        sockopt::set_ipv6_tclass(socket, marks.tos().into())?;
    }
    // An IPv6 socket may be connected to an IPv4 host, so both fields are set.
    sockopt::set_ip_tos(socket, marks.tos())?;
    set_priority(socket, marks.socket_priority)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::realtime::TcpProtocolProperties;
    use std::net::{TcpListener, TcpStream};

    //= RT-CORBA 1.2 §Protocol Configuration
    //% test
    #[test]
    fn a_socket_has_what_the_policy_says() {
        let properties = TcpProtocolProperties {
            send_buffer_size: 20_000,
            recv_buffer_size: 30_000,
            keep_alive: true,
            dont_route: true,
            no_delay: false,
            enable_network_priority: true,
        };
        let marks = NetworkPriority {
            dscp: 46,
            socket_priority: 6,
        };
        for host in ["127.0.0.1:0", "[::1]:0"] {
            // Not every host has IPv6.
            let Ok(listener) = TcpListener::bind(host) else {
                continue;
            };
            let address = listener.local_addr().expect("it is bound");
            let socket = TcpStream::connect(address).expect("it listens");
            apply(&socket, &Protocol::Tcp(properties)).expect("the host allows it");
            // The kernel doubles what it is asked for (socket(7)).
            assert_eq!(sockopt::socket_send_buffer_size(&socket), Ok(40_000));
            assert_eq!(sockopt::socket_recv_buffer_size(&socket), Ok(60_000));
            assert_eq!(sockopt::socket_keepalive(&socket), Ok(true));
            assert_eq!(sockopt::tcp_nodelay(&socket), Ok(false));
            mark(&socket, marks).expect("6 is everybody's");
            assert_eq!(sockopt::ip_tos(&socket), Ok(marks.tos()), "{host}");
            if address.is_ipv6() {
                assert_eq!(sockopt::ipv6_tclass(&socket), Ok(marks.tos().into()));
            }
        }
    }
}
