//! Defaults that the kernel computes from the machine, as it computes them.

use super::Machine;

/// The table of established connections has an entry for each of these bytes of memory
/// (`alloc_large_system_hash` with a scale of 17, in `tcp_init`) …
const BYTES_PER_ENTRY: u64 = 1 << 17;
/// … and no more entries than this.
const ENTRIES_MAX: u64 = 512 * 1024;
const MIB: u64 = 1 << 20;
/// A buffer may grow to a 128th part of the memory that is free at boot (`tcp_init`). How much that
/// was cannot be read later: half of all is certain.
const MEMORY_PER_BUFFER: u64 = 128 * 2;
/// `net.ipv4.tcp_rmem`'s first growth, and its second.
const RMEM_VERSIONS: [((u32, u32), &str); 3] = [
    ((6, 16), "4096 131072 33554432"),
    ((4, 20), "4096 131072 6291456"),
    ((0, 0), "4096 87380 6291456"),
];
const WMEM: &str = "4096 16384 4194304";
/// `PID_MAX_DEFAULT` and `PIDS_PER_CPU_DEFAULT`.
const PIDS_MIN: u64 = 32_768;
const PIDS_PER_PROCESSOR: u64 = 1_024;

/// A rule: what it is called in the table, what it needs to know, and the value where that is
/// known.
pub(super) struct Rule {
    pub(super) name: &'static str,
    pub(super) needs: &'static str,
    pub(super) value: fn(&Machine) -> Option<String>,
}

pub(super) const RULES: [Rule; 5] = [
    Rule {
        name: "tcp_rmem",
        needs: "the size of memory, and the kernel's version",
        value: |machine| {
            let version = machine.kernel?;
            let found = RMEM_VERSIONS.iter().find(|(since, _)| version >= *since)?;
            unless_memory_is_short(found.1, machine)
        },
    },
    Rule {
        name: "tcp_wmem",
        needs: "the size of memory",
        value: |machine| unless_memory_is_short(WMEM, machine),
    },
    Rule {
        name: "tcp_max_tw_buckets",
        needs: "the size of memory",
        value: |machine| Some((established_entries(machine)? / 2).to_string()),
    },
    Rule {
        name: "tcp_max_syn_backlog",
        needs: "the size of memory",
        value: |machine| Some((established_entries(machine)? / 128).max(128).to_string()),
    },
    Rule {
        name: "pid_max",
        needs: "the number of processors",
        value: |machine| {
            let processors = u64::from(machine.processors_possible?);
            Some(PIDS_MIN.max(PIDS_PER_PROCESSOR * processors).to_string())
        },
    },
];

fn unless_memory_is_short(buffers: &str, machine: &Machine) -> Option<String> {
    let most: u64 = buffers.rsplit(' ').next()?.parse().ok()?;
    (machine.memory_bytes? >= most * MEMORY_PER_BUFFER).then(|| buffers.to_owned())
}

fn established_entries(machine: &Machine) -> Option<u64> {
    let memory = machine.memory_bytes?.next_multiple_of(MIB);
    let entries = (memory / BYTES_PER_ENTRY).checked_next_power_of_two()?;
    Some(entries.min(ENTRIES_MAX))
}
