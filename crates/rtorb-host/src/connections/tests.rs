use super::*;
use crate::netlink::attribute_bytes;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::process;

/// Returns the connection of this process whose own end has that address.
fn with_own_end(own: &str) -> Option<ConnectionRow> {
    let mut rows = own_connections().into_iter();
    rows.find(|row| row.own == own)
}

fn own_connections() -> Vec<ConnectionRow> {
    let rows = of_processes(&[process::id()]).pop();
    rows.expect("one process")
        .expect("the connections of this process can be read")
}

#[test]
fn bytes_of_tcp_connections_are_counted_and_those_that_nobody_has_read() -> io::Result<()> {
    for host in ["127.0.0.1:0", "[::1]:0"] {
        let listener = match TcpListener::bind(host) {
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                eprintln!("skipped for {host}: the host has no such address");
                continue;
            }
            bound => bound?,
        };
        let mut client = TcpStream::connect(listener.local_addr()?)?;
        let (mut server, peer) = listener.accept()?;
        client.write_all(&[7; 1000])?;
        let server_end = listener.local_addr()?.to_string();
        // It may come in several segments.
        while server.peek(&mut [0; 1000])? < 1000 {}
        let mut both = own_connections();
        both.retain(|row| [&row.own, &row.peer].contains(&&server_end));
        assert_eq!(both.len(), 2, "{both:?}");
        let at_server = both.iter().find(|row| row.own == server_end);
        let at_server = at_server.expect("the server's end is there");
        assert_eq!(at_server.peer, peer.to_string());
        assert_eq!(at_server.unread_bytes, 1000);
        assert_eq!(at_server.tcp.map(|tcp| tcp.received_bytes), Some(1000));

        server.read_exact(&mut [0; 1000])?;
        server.write_all(&[8; 10])?;
        client.read_exact(&mut [0; 10])?;
        let at_client = with_own_end(&peer.to_string()).expect("the client's end is there");
        let tcp = at_client.tcp.expect("TCP is counted");
        assert_eq!((tcp.sent_bytes, tcp.received_bytes), (1000, 10));
        assert_eq!(at_client.bytes(), 1010);
        assert_eq!(at_client.unread_bytes, 0);
    }
    Ok(())
}

#[test]
fn a_unix_connection_has_the_names_of_both_ends_and_what_nobody_has_read() -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("servant");
    let listener = UnixListener::bind(&path)?;
    let mut client = UnixStream::connect(&path)?;
    let (_server, _) = listener.accept()?;
    client.write_all(&[7; 100])?;
    let path = path.to_str().expect("the path is text");
    let server = with_own_end(path).expect("the server's end is there");
    assert_eq!((server.unread_bytes, server.tcp), (100, None));
    let rows = own_connections();
    let client = rows.iter().find(|row| row.peer == path);
    let client = client.expect("the client's end is there");
    assert!(client.own.is_empty(), "{client:?}");
    assert!(client.unacknowledged_bytes > 0, "{client:?}");
    Ok(())
}

#[test]
fn a_process_that_is_not_there_is_an_error_and_no_other_is_lost() {
    let [none, own] = &of_processes(&[u32::MAX, process::id()])[..] else {
        panic!("two processes");
    };
    let error = none.as_ref().expect_err("there is no such process");
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert!(own.is_ok(), "{own:?}");
}

#[test]
fn sockets_of_datagrams_are_no_connections() -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("journal");
    let journal = UnixDatagram::bind(&path)?;
    let (writer, other) = (UnixDatagram::unbound()?, UnixDatagram::unbound()?);
    writer.connect(&path)?;
    other.connect(&path)?;
    let path = path.to_str().expect("the path is text");
    assert_eq!(with_own_end(path), None);
    drop((journal, writer, other));
    Ok(())
}

/// What the kernel says is never trusted to be whole.
#[test]
fn messages_that_are_cut_are_no_rows() {
    let mut whole = vec![0; 72];
    whole[0] = AddressFamily::INET.as_raw() as u8;
    whole.extend(attribute_bytes(INET_DIAG_INFO, &[1; 232]));
    assert!(tcp_row(&whole).is_some_and(|(_, row)| row.tcp.is_some()));
    for length in 0..whole.len() {
        let row = tcp_row(&whole[..length]);
        assert!(row.is_none_or(|(_, row)| row.tcp.is_none()), "{length}");
    }
    let unix = [&[1; 16][..], &attribute_bytes(UNIX_DIAG_NAME, b"\0name")].concat();
    assert!(unix_row(&unix).is_some_and(|(_, row, _)| row.own == "@name"));
    for length in 0..unix.len() - 3 {
        let row = unix_row(&unix[..length]);
        assert!(row.is_none_or(|(_, row, _)| row.own.is_empty()), "{length}");
    }
}
