//! Counters of the TCP implementation, per network namespace (`/proc/net/snmp` and `netstat`).

use std::fs;
use std::io;

/// What the TCP of the calling thread's namespace has counted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TcpCounters {
    /// Segments sent again (`Tcp: RetransSegs`).
    pub retransmitted_segments: u64,
    /// Retransmission timeouts (`TcpExt: TCPTimeouts`).
    pub timeouts: u64,
    /// Connections given up after too many timeouts (`TcpExt: TCPAbortOnTimeout`).
    pub aborted_on_timeout: u64,
}

impl TcpCounters {
    /// Reads them.
    ///
    /// # Errors
    /// When `/proc` is not mounted, or a counter is missing.
    pub fn read() -> io::Result<Self> {
        let snmp = fs::read_to_string("/proc/thread-self/net/snmp")?;
        let netstat = fs::read_to_string("/proc/thread-self/net/netstat")?;
        let find = |table: &str, group: &str, name: &str| {
            counter(table, group, name).ok_or_else(|| {
                io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("no counter {group} {name}"),
                )
            })
        };
        Ok(Self {
            retransmitted_segments: find(&snmp, "Tcp:", "RetransSegs")?,
            timeouts: find(&netstat, "TcpExt:", "TCPTimeouts")?,
            aborted_on_timeout: find(&netstat, "TcpExt:", "TCPAbortOnTimeout")?,
        })
    }
}

/// The value of `name` in `group` of `table`: each group is a line of names and, next, a line of
/// values.
fn counter(table: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = table
        .lines()
        .filter(|line| line.split(' ').next() == Some(group));
    let (names, values) = (lines.next()?, lines.next()?);
    let mut pairs = names.split(' ').zip(values.split(' '));
    pairs.find(|(found, _)| *found == name)?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_counter_by_group_and_name() {
        let table = "Ip: A B\nIp: 1 2\nTcp: A B\nTcp: 3 4\n";
        assert_eq!(counter(table, "Tcp:", "B"), Some(4));
        assert_eq!(counter(table, "Tcp:", "C"), None);
        assert_eq!(counter("Tcp: A\n", "Tcp:", "A"), None);
    }

    #[test]
    fn this_kernel_has_them() {
        TcpCounters::read().expect("all three");
    }
}
