//! Portmapper version 2. RFC 1833 §3.

use super::xdr::List;

/// Program number.
pub const PROGRAM: u32 = 100_000;
/// Its version.
pub const VERSION: u32 = 2;
/// Where every portmapper listens.
pub const PORT: u16 = 111;

/// Protocol number of TCP.
pub const TCP: u32 = 6;
/// Protocol number of UDP.
pub const UDP: u32 = 17;

procedures! {
    /// Procedures of the portmapper. RFC 1833 §3.2
    pub enum Procedure {
        Null = 0 "PMAPPROC_NULL",
        Set = 1 "PMAPPROC_SET",
        Unset = 2 "PMAPPROC_UNSET",
        GetPort = 3 "PMAPPROC_GETPORT",
        Dump = 4 "PMAPPROC_DUMP",
        CallIt = 5 "PMAPPROC_CALLIT",
    }
}

xdr_struct! {
    /// Where a program listens; arguments of SET, UNSET and GETPORT. RFC 1833 §3.1
    pub struct Mapping {
        /// Program number.
        program: u32,
        /// Its version.
        version: u32,
        /// [`TCP`] or [`UDP`].
        protocol: u32,
        /// Port; 0 in a query.
        port: u32,
    }
}

/// Result of DUMP.
pub type DumpRes<'a> = List<'a, Mapping>;
