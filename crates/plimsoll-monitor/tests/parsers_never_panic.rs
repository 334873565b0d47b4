//! Parsers never panic, whatever a kernel (or a fake of one) writes.

use std::path::Path;

use plimsoll_monitor::parse::*;
use procfs_core::process::{Schedstat, StatM};
use procfs_core::{FromBufRead as _, FromRead as _, ProcessCGroups, VmStat};
use proptest::prelude::*;

/// Words that steer arbitrary text into the parsers' branches.
const TOKENS: [&str; 28] = [
    "cpu",
    "cpu0",
    "ctxt",
    "MemTotal:",
    "kB",
    "processor",
    ":",
    "flags",
    "Tcp:",
    "RetransSegs",
    "(",
    ")",
    " - ",
    "\\040",
    "\\",
    "[",
    "]",
    "some ",
    "total=",
    "0-3",
    "-",
    ",",
    "max",
    "nr_throttled",
    "PRETTY_NAME=\"",
    "18446744073709551615",
    "-1",
    "nan",
];

fn text() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        4 => prop::sample::select(&TOKENS[..]).prop_map(str::to_owned),
        2 => any::<u64>().prop_map(|number| number.to_string()),
        1 => any::<String>(),
    ];
    let separator = prop::sample::select(&["", " ", " ", "\n", "\t"][..]);
    prop::collection::vec((word, separator), 0..60)
        .prop_map(|parts| parts.into_iter().map(|(word, separator)| word + separator).collect())
}

fn parse_all(text: &str) {
    parse_cpuinfo(text);
    let stat = parse_stat(text);
    for times in stat.all.iter().chain(stat.cpus.iter().map(|(_, times)| times)) {
        assert!(times.busy() <= times.total());
    }
    assert!(parse_load(text).is_none_or(f64::is_finite));
    parse_cpu_list(text);
    parse_meminfo(text);
    parse_net_dev(text);
    parse_diskstats(text);
    parse_paired(text, "Tcp", "RetransSegs");
    parse_process_stat(text);
    parse_thread_stat(text);
    parse_interrupts(text);
    parse_softirqs(text);
    parse_limit(text, "cpu");
    Mount::holding(&parse_mountinfo(text), Path::new("/a/b"));
    assert!(parse_cpu_max(text).is_none_or(f64::is_finite));
    parse_throttling(text);
    parse_os_release(text);
    parse_pressure(text);
    parse_selected(text);
    parse_status_field(text, "cpu");
}

/// What `procfs-core` reads for us.
fn read_all(text: &str) {
    let _ = VmStat::from_buf_read(text.as_bytes());
    let _ = ProcessCGroups::from_buf_read(text.as_bytes());
    let _ = Schedstat::from_read(text.as_bytes());
    let _ = StatM::from_read(text.as_bytes());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_text_makes_a_parser_panic(text in text()) {
        parse_all(&text);
        read_all(&text);
    }

    #[test]
    fn a_line_of_numbers_makes_no_parser_panic(
        numbers in prop::collection::vec(any::<u64>(), 0..40),
    ) {
        let tokens: Vec<String> = numbers.iter().map(u64::to_string).collect();
        let line = tokens.join(" ");
        parse_all(&format!("cpu {line}\ncpu1 {line}\n1 1 sda {line}\neth0: {line}\n"));
        parse_all(&format!("1 (a) S {line}"));
        read_all(&line);
        read_all(&format!("1:a:{line}\n"));
    }
}
