//! SMB checked from outside: a server that misbehaves, a packet capture, the kernel's counters and
//! flipped bytes.

mod counts;
mod flips;
mod hostile;
mod sharing;
