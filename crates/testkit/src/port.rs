//! Ports on the loopback interface: a free one, and who listens on it.
//!
//! Easy to get wrong: the port that the kernel gives for 0 lies among those that it gives to clients. While a server is
//! away its own clients knock, and a client whose side gets the server's port connects to itself and keeps the port. So
//! servers that stop and come back have ports below that range.

#[cfg(feature = "control-plane")]
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// Below Linux's range for clients, above what services are known by.
const FIRST: u32 = 20_000;
const COUNT: u32 = 12_000;

/// A port for a program that will be started; somebody may take it before that listens, and then another is asked for.
pub fn free_port() -> Option<u16> {
    let socket = listen()?;
    Some(socket.local_addr().ok()?.port())
}

/// A socket on a port that nobody else had.
///
/// Whoever can keep it should: a child that another thread starts at this moment holds a copy of it until its `exec`, and
/// for so long the port stays taken after it was given up here.
pub(crate) fn listen() -> Option<TcpListener> {
    // Processes start at different places, so that two of them seldom want the same.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(97);
    (0..COUNT).find_map(|_| {
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = u16::try_from(FIRST + start.wrapping_add(nth) % COUNT).ok()?;
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()
    })
}

/// Who answers on a port of 127.0.0.1.
#[cfg(feature = "control-plane")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listener {
    /// Nobody.
    None,
    /// The process that was asked about, and nobody else.
    Ours,
    /// Somebody else.
    Foreign,
}

/// Whether the sockets that listen on the port are those of that process.
#[cfg(feature = "control-plane")]
pub(crate) fn listener(port: u16, pid: u32) -> Listener {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let sockets: Vec<String> = tables
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| inodes(&table, port))
        .collect();
    if sockets.is_empty() {
        return Listener::None;
    }
    let of_process: Vec<String> = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .filter_map(|target| {
            let target = target.to_str()?;
            let inode = target.strip_prefix("socket:[")?.strip_suffix(']')?;
            Some(inode.to_owned())
        })
        .collect();
    if sockets.iter().all(|inode| of_process.contains(inode)) {
        Listener::Ours
    } else {
        Listener::Foreign
    }
}

/// The listening sockets of a table of the kernel's that take what is sent to the port of 127.0.0.1.
#[cfg(feature = "control-plane")]
fn inodes(table: &str, port: u16) -> Vec<String> {
    const LISTEN: &str = "0A";
    let line = |line: &str| {
        let mut columns = line.split_whitespace();
        let (address, local_port) = columns.nth(1)?.split_once(':')?;
        let state = columns.nth(1)?;
        let inode = columns.nth(5)?;
        let takes = address == "0100007F"
            || address == "0000000000000000FFFF00000100007F"
            || address.chars().all(|c| c == '0');
        let same = u16::from_str_radix(local_port, 16).ok()? == port;
        (takes && same && state == LISTEN).then(|| inode.to_owned())
    };
    table.lines().skip(1).filter_map(line).collect()
}

#[cfg(all(test, feature = "control-plane"))]
mod tests {
    use super::*;

    #[test]
    fn a_socket_belongs_to_the_process_that_holds_it() {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = socket.local_addr().unwrap().port();
        let init = 1;
        assert_eq!(listener(port, std::process::id()), Listener::Ours);
        assert_eq!(listener(port, init), Listener::Foreign);
    }

    #[test]
    fn a_socket_on_every_address_takes_the_port_too() {
        let socket = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        let port = socket.local_addr().unwrap().port();
        assert_eq!(listener(port, 1), Listener::Foreign);
    }

    #[test]
    fn a_free_port_is_outside_the_range_of_clients_and_nobody_listens_on_it() {
        let port = free_port().unwrap();
        assert!((20_000..32_000).contains(&port), "{port}");
        assert_ne!(free_port(), Some(port), "the next one is another");
    }

    #[test]
    fn the_kernel_s_table_is_read_by_its_columns() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0\n\
             1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0 100 0\n\
             2: 0200000A:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1 0 100 0\n";
        assert_eq!(inodes(table, 8080), ["4711"]);
    }
}
