//! Times as SMB has them.

use plimsoll_servers::clock;

/// Now in FILETIME: 100 ns since 1601 (MS-DTYP 2.3.3).
pub(super) fn filetime() -> u64 {
    const BEFORE_1970_S: u64 = 11_644_473_600;
    let since = clock::since_1970();
    (since.as_secs() + BEFORE_1970_S) * 10_000_000 + u64::from(since.subsec_nanos()) / 100
}
