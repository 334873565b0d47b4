//! What people call the resources that results name.

/// Tables whose names have a key between table and column, which may contain dots itself.
const KEYED: [&str; 8] =
    ["cpu", "disk", "network", "process", "cgroup", "storage", "socket", "gpu"];

/// Name and display name; the star is the key.
const NAMES: &[(&str, &str)] = &[
    ("host.cpu_busy", "host: processors, busy"),
    ("host.cpu_user", "host: processors, in programs"),
    ("host.cpu_system", "host: processors, in the kernel"),
    ("host.cpu_iowait", "host: processors, idle while a disk is awaited"),
    ("host.cpu_softirq", "host: processors, in interrupts"),
    ("host.cpu_steal", "host: processors, kept by the hypervisor"),
    ("host.cpu_busiest", "host: busiest processor"),
    ("host.runnable", "host: threads running or ready to"),
    ("host.blocked", "host: threads waiting for a disk"),
    ("host.context_switches", "host: context switches"),
    ("host.interrupts", "host: interrupts"),
    ("host.memory_used", "host: memory used"),
    ("host.memory_available", "host: memory available"),
    ("host.paged_in", "host: read from disks"),
    ("host.cpu_irq", "host: processors, in hardware interrupts"),
    ("host.memory_cached", "host: files kept in memory"),
    ("host.memory_dirty", "host: memory not yet written to disk"),
    ("host.swap_used", "host: swap used"),
    ("host.swapped_in_pages", "host: pages read from swap"),
    ("host.swapped_out_pages", "host: pages written to swap"),
    ("host.major_faults", "host: page faults that read a disk"),
    ("host.tcp_retransmits", "host: TCP segments sent again"),
    ("host.tcp_listen_overflows", "host: connections refused by a full accept queue"),
    ("host.udp_received", "host: UDP datagrams received"),
    ("host.udp_receive_errors", "host: UDP datagrams received and not delivered"),
    ("host.udp_receive_buffer_errors", "host: UDP datagrams dropped by a full socket buffer"),
    ("host.softnet_processed", "host: packets that the processors took in"),
    ("host.softnet_dropped", "host: packets dropped by a full backlog of a processor"),
    ("host.softnet_squeezed", "host: times a processor left packets for later"),
    ("host.tcp_listen_drops", "host: connections dropped before they were accepted"),
    ("host.tcp_timeouts", "host: TCP retransmission timeouts"),
    ("host.tcp_loss_probes", "host: TCP tail loss probes"),
    ("host.tcp_syn_retransmits", "host: TCP connects tried again"),
    ("host.tcp_delayed_acks", "host: TCP acknowledgements delayed"),
    ("host.pressure_cpu_some", "host: time a thread waited for a processor"),
    ("host.pressure_io_some", "host: time a thread waited for a disk"),
    ("host.pressure_memory_some", "host: time a thread waited for memory"),
    ("host.throttled_periods", "host: periods in which a CPU quota was used up"),
    ("host.throttled", "host: throttled by a CPU quota"),
    ("host.turns_correlation", "host: full processors against disk waits, correlation by 50 ms"),
    ("host.turns_cpu_full", "host: time with full processors, by 50 ms"),
    ("host.turns_storage_stalled", "host: time with a disk waited for, by 50 ms"),
    ("load.slow_rate", "load: ops done in the slowest quarter of 50 ms"),
    ("load.fast_rate", "load: ops done in the fastest quarter of 50 ms"),
    ("cpu.*.busy", "processor *: busy"),
    ("disk.*.read", "disk *: read"),
    ("disk.*.written", "disk *: written"),
    ("disk.*.reads", "disk *: reads"),
    ("disk.*.writes", "disk *: writes"),
    ("disk.*.per_read", "disk *: time of a read"),
    ("disk.*.per_write", "disk *: time of a write"),
    ("disk.*.queue_mean", "disk *: requests in its queue"),
    ("disk.*.busy", "disk *: time with a request"),
    ("network.*.received", "network *: received"),
    ("network.*.sent", "network *: sent"),
    ("network.*.received_share", "network *: received, share of the link"),
    ("network.*.sent_share", "network *: sent, share of the link"),
    ("network.*.received_packets", "network *: packets received"),
    ("network.*.sent_packets", "network *: packets sent"),
    ("network.*.received_per_packet", "network *: size of a packet received"),
    ("network.*.sent_per_packet", "network *: size of a packet sent"),
    ("network.*.receive_drops", "network *: packets dropped on arrival"),
    ("network.*.receive_overruns", "network *: packets dropped by a full receive ring"),
    ("network.*.send_drops", "network *: packets dropped when sent"),
    ("process.generator.cpu", "generator: processor, cores used, polls for replies included"),
    ("process.*.cpu", "*: processor, cores used"),
    ("process.*.cpu_system", "*: processor, cores used in the kernel"),
    ("process.*.context_switches", "*: times a thread was given a core"),
    ("process.*.run_delay", "*: ready to run, waiting for a processor"),
    ("process.*.busiest_thread", "*: busiest thread"),
    ("process.*.cores_allowed", "*: cores it may use"),
    ("process.*.cores_busy", "*: cores it may use, busy with anything"),
    ("process.*.cores_steal", "*: cores it may use, kept by the hypervisor"),
    ("process.*.core", "*: number of its only core"),
    ("process.*.threads_waiting_for_disk", "*: threads waiting for a disk"),
    ("process.*.threads_waiting_for_lock", "*: threads waiting for a lock"),
    ("process.*.waiting_for_disk", "*: threads waiting for a disk"),
    ("process.*.waiting_for_lock", "*: threads waiting for a lock"),
    ("process.*.rss", "*: memory resident"),
    ("process.*.threads", "*: threads"),
    ("process.*.descriptors", "*: open files and sockets"),
    ("process.*.processes", "*: processes"),
    ("cgroup.*.quota", "*: CPU quota"),
    ("cgroup.*.throttled", "*: throttled by its CPU quota"),
    ("cgroup.*.throttled_periods", "*: periods in which its CPU quota was used up"),
    ("cgroup.*.memory", "*: memory of its group"),
    ("cgroup.*.memory_max", "*: memory its group may use"),
    ("cgroup.*.memory_full", "*: times its memory was full"),
    ("cgroup.*.memory_stalls", "*: times its memory was full"),
    ("cgroup.*.refaults", "*: pages read again for lack of memory"),
    ("storage.*.reads", "*: reads"),
    ("storage.*.writes", "*: writes"),
    ("storage.*.read", "*: read"),
    ("storage.*.written", "*: written"),
    ("storage.*.reads_max", "*: reads it may do"),
    ("storage.*.writes_max", "*: writes it may do"),
    ("storage.*.read_max", "*: bytes it may read"),
    ("storage.*.written_max", "*: bytes it may write"),
    ("socket.*.connections", "*: connections"),
    ("socket.*.send_queue", "*: sent and not yet acknowledged"),
    ("socket.*.receive_queue", "*: arrived and not yet read"),
    ("socket.*.accept_queue", "*: connections not yet accepted"),
    ("server.threads", "server: service threads"),
    ("server.threads_busy", "server: service threads busy, when polled"),
    ("server.threads_busy_mean", "server: service threads busy"),
    ("server.queue", "server: requests waiting, when polled"),
    ("server.queue_mean", "server: requests waiting"),
    ("server.threads_in_fdatasync", "server: threads in fdatasync"),
    ("server.fdatasyncs", "server: calls of fdatasync"),
    ("server.requests", "server: requests done"),
    ("server.segment_read", "server: read from its segments"),
    ("server.segment_written", "server: written to its segments"),
    ("server.connections", "server: connections, by its own account"),
    ("server.connections_accepted", "server: connections accepted, by its own account"),
    ("server.connections_reading", "server: connections on which it reads a request"),
    ("server.connections_writing", "server: connections on which it answers"),
    ("server.connections_waiting", "server: connections kept open without a request"),
    ("nfsd.calls", "kernel NFS server: calls"),
    ("nfsd.bad_calls", "kernel NFS server: calls malformed or refused"),
    ("nfsd.read", "kernel NFS server: read by clients"),
    ("nfsd.written", "kernel NFS server: written by clients"),
    ("model.running", "model server: requests in the batch"),
    ("model.waiting", "model server: requests waiting"),
    ("model.kv_cache", "model server: KV cache in use"),
    ("model.preemptions", "model server: requests that lost their KV cache"),
    ("model.prompt_tokens", "model server: prompt tokens, by its own account"),
    ("model.output_tokens", "model server: output tokens, by its own account"),
    ("model.prefix_hits", "model server: prompt tokens found in its prefix cache"),
    ("gpu.*.busy", "GPU *: busy"),
    ("gpu.*.memory_busy", "GPU *: memory read or written"),
    ("gpu.*.memory_used", "GPU *: memory used"),
    ("gpu.*.memory_total", "GPU *: memory in all"),
    ("achieved_ops_per_s", "throughput"),
    ("send_lag_p99_ns", "send lag p99"),
    ("service_mean_ns", "service mean"),
    ("response_mean_ns", "response mean"),
];

/// Display name of a resource or a figure of a load point; a name without one stays as it is.
pub(super) fn display_name(name: &str) -> String {
    let (pattern, key) = pattern(name);
    let text = NAMES.iter().find(|(candidate, _)| *candidate == pattern).map(|(_, text)| text);
    match (text, name.contains('.')) {
        (Some(text), _) => text.replacen('*', &key_text(name, key), 1),
        (None, true) => name.to_owned(),
        (None, false) => name.replace('_', " "),
    }
}

/// A key as text. The key of a server's use of a disk contains both; the key of an interface in the
/// server's own namespace has the server's name before the interface's.
pub(crate) fn key_text(name: &str, key: &str) -> String {
    match key.split_once(':') {
        Some((server, interface)) if name.starts_with("network") => {
            format!("{interface} of {server}")
        }
        Some((server, disk)) => format!("{server} on {disk}"),
        None => key.to_owned(),
    }
}

/// The key of a name of a table that has keys.
pub(crate) fn key_of<'n>(name: &'n str, table: &str) -> Option<&'n str> {
    let rest = name.strip_prefix(table)?.strip_prefix('.')?;
    rest.rsplit_once('.').map(|(key, _)| key).filter(|key| !key.is_empty())
}

fn pattern(name: &str) -> (String, &str) {
    let table = name.split('.').next().unwrap_or_default();
    let key = KEYED.contains(&table).then(|| key_of(name, table)).flatten();
    match (key, name.rsplit_once('.')) {
        (Some(key), Some((_, column))) => (format!("{table}.*.{column}"), key),
        _ => (name.to_owned(), ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_have_names_that_people_use() {
        for (name, expected) in [
            ("process.server.cpu", "server: processor, cores used"),
            ("network.eth0.100.sent_share", "network eth0.100: sent, share of the link"),
            ("network.server:veth0.sent", "network veth0 of server: sent"),
            ("storage.server:vda.reads_max", "server on vda: reads it may do"),
            ("disk.dm-0.queue_mean", "disk dm-0: requests in its queue"),
            ("gpu.0.busy", "GPU 0: busy"),
            ("host.cpu_steal", "host: processors, kept by the hypervisor"),
            ("disk.vda.unheard_of", "disk.vda.unheard_of"),
            ("ops_in_flight", "ops in flight"),
        ] {
            assert_eq!(display_name(name), expected);
        }
    }

    #[test]
    fn each_name_stands_in_the_table_once() {
        let mut names: Vec<_> = NAMES.iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), NAMES.len());
    }
}
