//! The NFS server: its core in memory, on real sockets, as a process; tested with itself, libnfs
//! and `nfs3_client`. And a real NFS-Ganesha.

mod calls;
mod calls4;
mod confined;
mod foreign_client;
mod ganesha;
mod libnfs_v2;
mod on_sockets;
mod rpc;
mod running;
mod v2;
mod v3;
mod v4;
mod v4_files;
