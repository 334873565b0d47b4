//! `/proc/softirqs` and `/proc/interrupts`: how often each was served, over all processors.

use std::collections::BTreeMap;

/// No machine has this many kinds or devices; a longer text is cut.
const KINDS_MAX: usize = 4_096;
/// Bytes of a name; longer ones are cut.
const NAME_BYTES_MAX: usize = 64;

/// Soft interrupts by kind: `NET_RX`.
pub fn parse_softirqs(text: &str) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for (label, count, _) in lines(text) {
        add(&mut all, label, count);
    }
    all
}

/// Hard interrupts by device, queues of a device summed: `eth0`, `nvme0`, `virtio3`. Those that are
/// no device's have the kernel's names: `Local timer interrupts`.
pub fn parse_interrupts(text: &str) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for (label, count, rest) in lines(text) {
        let is_numbered = label.bytes().all(|byte| byte.is_ascii_digit());
        match (is_numbered, rest.is_empty()) {
            (_, true) => add(&mut all, label, count),
            (false, false) => {
                add(&mut all, &rest.split_whitespace().collect::<Vec<_>>().join(" "), count);
            }
            (true, false) => add(&mut all, &devices(rest), count),
        }
    }
    all
}

/// Label, sum over processors, and what follows, of each line below the head.
fn lines(text: &str) -> impl Iterator<Item = (&str, u64, &str)> {
    let (head, body) = text.split_once('\n').unwrap_or_default();
    let processors = head.split_ascii_whitespace().filter(|word| word.starts_with("CPU")).count();
    body.lines().filter(move |_| processors > 0).filter_map(move |line| {
        let (label, mut rest) = line.split_once(':')?;
        let (mut sum, mut numbers) = (0u64, 0);
        while numbers < processors {
            rest = rest.trim_start();
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            let Ok(count) = rest[..end].parse::<u64>() else { break };
            sum = sum.saturating_add(count);
            rest = &rest[end..];
            numbers += 1;
        }
        (numbers > 0).then(|| (label.trim(), sum, rest.trim()))
    })
}

fn add(all: &mut BTreeMap<String, u64>, name: &str, count: u64) {
    let name = name.chars().filter(|c| !c.is_control());
    let mut bytes = 0;
    let name: String = name
        .take_while(|c| {
            bytes += c.len_utf8();
            bytes <= NAME_BYTES_MAX
        })
        .collect();
    if all.len() < KINDS_MAX || all.contains_key(&name) {
        let sum = all.entry(name).or_default();
        *sum = sum.saturating_add(count);
    }
}

/// The devices of a line: its last word, with those before it that end with a comma, since several
/// devices may share an interrupt.
fn devices(rest: &str) -> String {
    let tokens: Vec<&str> = rest.split_whitespace().collect();
    // `iwlwifi: queue 1`.
    let is_queue = |word: &str| word == "queue" || word.bytes().all(|byte| byte.is_ascii_digit());
    let first = tokens.iter().rposition(|word| !is_queue(word)).unwrap_or(0);
    let shared = tokens[..first].iter().rev().take_while(|word| word.ends_with(',')).count();
    // Xen's own, one a processor: `xen-percpu -virq timer0`.
    if tokens[0].starts_with("xen-percpu") {
        return tokens[first].trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
    }
    let mut names: Vec<&str> = tokens[first - shared..=first]
        .iter()
        .map(|word| device(word.trim_end_matches([',', ':'])))
        .collect();
    names.dedup();
    names.join(", ")
}

/// Text that drivers append to a device's name for its queues.
const PARTS: [&str; 17] = [
    "rx", "tx", "txrx", "tx-rx", "input", "output", "req", "config", "control", "event", "fp",
    "comp", "async", "mgmnt", "vec", "q", "msix",
];

/// A device without the queue: `eth0` of `eth0-TxRx-3`, `virtio3` of `virtio3-input.0`, `nvme0` of
/// `nvme0q12`.
fn device(name: &str) -> &str {
    let no_digits = |name: &str| name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    if let Some((head, _)) = name.split_once('-').filter(|(head, _)| head.starts_with("virtio")) {
        return head;
    }
    // `mlx5_comp3@pci:0000:03:00.0`: the address distinguishes the adapters.
    if let Some((_, address)) = name.split_once('@') {
        return address;
    }
    let mut name = name;
    while let Some(at) = name.rfind(['-', '.', '_']).filter(|at| *at > 0) {
        let part = name[at + 1..].to_ascii_lowercase();
        let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number && !PARTS.contains(&&part[..no_digits(&part)]) {
            break;
        }
        name = &name[..at];
    }
    match name.starts_with("nvme").then(|| name.rfind('q')).flatten() {
        Some(at) if no_digits(name) == at + 1 => &name[..at],
        _ => name,
    }
}

#[cfg(test)]
mod tests;
