//! `plimsoll serve app` as a process of its own: flags, ends, durability as the system sees it, and
//! memory.

mod capacity;
mod client;
mod durability;
mod memory;
mod resources;
mod scale;
