use super::*;
use crate::parse::{parse_meminfo, parse_net_dev, parse_stat};

fn observed(received: u64, up_time: u64) -> Observed {
    let interfaces = Interfaces { received: [(2, received)].into(), ..Interfaces::default() };
    Observed { up_time: Some(up_time), interfaces, ..Observed::default() }
}

fn received(accounts: &mut Accounts, told: u64, up_time: u64) -> u64 {
    let names = [(2, "Port 2: up".to_owned())].into();
    let speeds = [(2, 1_000)].into();
    let texts =
        accounts.texts(&observed(told, up_time), 0, &names, &speeds, &Storage::default()).unwrap();
    let networks = parse_net_dev(&texts["proc/net/dev"]);
    assert_eq!(networks[0].name, "Port_2__up");
    assert_eq!(texts["sys/class/net/Port_2__up/speed"], "1000\n");
    networks[0].received_bytes
}

#[test]
fn a_32_bit_counter_that_wraps_goes_on() {
    let mut accounts = Accounts::default();
    assert_eq!(received(&mut accounts, WRAP - 100, 1), WRAP - 100);
    assert_eq!(received(&mut accounts, 50, 2), WRAP + 50);
    assert_eq!(received(&mut accounts, 70, 3), WRAP + 70);
}

#[test]
fn an_agent_that_begins_anew_is_seen_to_go_back() {
    let mut accounts = Accounts::default();
    assert_eq!(received(&mut accounts, WRAP - 100, 9_000), WRAP - 100);
    assert_eq!(received(&mut accounts, 50, 3), 50, "its up time went back");
    assert_eq!(received(&mut accounts, 9_999, 4), 9_999);
    assert_eq!(received(&mut accounts, 7, 5), 7, "it was nowhere near a wrap");
    assert_eq!(received(&mut accounts, WRAP * 8, 6), WRAP * 8);
    assert_eq!(received(&mut accounts, 7, 7), 7, "64 bits do not wrap");
}

#[test]
fn a_counter_that_is_not_told_goes_back_so_that_it_has_no_rate() {
    let mut accounts = Accounts::default();
    let (names, none) = ([(2, "lo".to_owned())].into(), Column::new());
    let mut sent = |told: Option<u64>| -> Result<u64, Lost> {
        let mut seen = observed(1, 1);
        seen.interfaces.sent = told.map(|told| (2, told)).into_iter().collect();
        let texts = accounts.texts(&seen, 0, &names, &none, &Storage::default())?;
        Ok(parse_net_dev(&texts["proc/net/dev"])[0].sent_bytes)
    };
    let seen = [None, None, Some(488), Some(490)].map(|told| sent(told).unwrap());
    assert!(seen[0] > seen[1] && seen[1] > seen[2], "{seen:?}");
    assert_eq!((seen[2], seen[3]), (488, 490));
    let Lost(words) = sent(None).unwrap_err();
    assert!(words.contains("leaves out"), "one that was told before: {words}");
}

#[test]
fn a_load_in_percent_becomes_time() {
    let mut accounts = Accounts::default();
    let mut seen = Observed { loads: [(196_608, 25), (196_609, 100)].into(), ..observed(0, 1) };
    let mut stat = |seen: &Observed, at_s: u64| {
        let none = Column::new();
        let texts = accounts.texts(
            seen,
            at_s * NANOS_PER_SECOND,
            &none,
            &Column::new(),
            &Storage::default(),
        );
        let texts = texts.unwrap();
        parse_stat(&texts["proc/stat"])
    };
    stat(&seen, 10);
    let now = stat(&seen, 14);
    let times: Vec<_> = now.cpus.iter().map(|(n, cpu)| (*n, cpu.user, cpu.idle)).collect();
    assert_eq!(times, [(0, 100, 300), (1, 400, 0)]);
    seen.loads.remove(&196_609);
    assert_eq!(stat(&seen, 15).cpus.len(), 1);
}

#[test]
fn physical_memory_is_what_is_used_less_the_page_cache() {
    let storage = Storage {
        kinds: [(1, RAM.to_vec()), (3, VIRTUAL.to_vec()), (10, VIRTUAL.to_vec())].into(),
        names: [
            (1, "Physical memory".to_owned()),
            (3, "Virtual memory".to_owned()),
            (7, "Cached memory".to_owned()),
            (10, "Swap space".to_owned()),
        ]
        .into(),
        units: [(1, 1024), (3, 1024), (7, 1024), (10, 1024)].into(),
    };
    let seen = Observed {
        sizes: [(1, 8_000), (3, 9_000), (7, 1_000), (10, 1_000)].into(),
        used: [(1, 6_000), (3, 6_100), (7, 1_000), (10, 100)].into(),
        ..Observed::default()
    };
    let (none, speeds) = (Column::new(), Column::new());
    let texts = Accounts::default().texts(&seen, 0, &none, &speeds, &storage).unwrap();
    let memory = parse_meminfo(&texts["proc/meminfo"]);
    assert_eq!((memory.total, memory.available), (Some(8_000 << 10), Some(3_000 << 10)));
    assert_eq!((memory.swap_total, memory.swap_free), (Some(1_000 << 10), Some(900 << 10)));
    assert!(!texts.contains_key("proc/stat") && !texts.contains_key("proc/net/dev"));
}
