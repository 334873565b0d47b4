//! NFS versions 2 and 3 over UDP and TCP: the `nfs-v2`, `nfs-v3` and `nfs-v3-2008` suites.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`wire`] | ONC RPC, portmapper, MOUNT, NFS as bytes, pure |
//! | [`op`] | one RPC of the mix, as script and session see it |
//! | [`fileset`], [`script`] | what lies on the server, and what is asked of it |
//! | [`session`] | the state machine of one client |
//! | [`client`], [`mounting`], [`validate`], [`prepare`], [`handles`] | errands around a load point |
//! | [`parameters`], [`plan`], [`workload`] | from a suite to running clients |

// A module is listed here as soon as it compiles.
pub mod op;
pub mod wire;
