//! Shares of the reference server and of a real Samba: as smbclient and smbtorture see them, and as
//! our logon and set-up do.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod logon;
mod reference;
mod samba;
mod set_up;
