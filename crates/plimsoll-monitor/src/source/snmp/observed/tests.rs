use super::*;

fn observed(received: u64, up_time: u64) -> Observed {
    let mut interfaces: [Column<u64>; 8] = Default::default();
    interfaces[0] = [(2, received)].into();
    Observed { up_time: Some(up_time), interfaces, ..Observed::default() }
}

fn received(accounts: &mut Accounts, reported: u64, up_time: u64) -> u64 {
    let names = [(2, "Port 2: up".to_owned())].into();
    let speeds = [(2, 1_000)].into();
    let figures = accounts
        .figures(&observed(reported, up_time), 0, &names, &speeds, &Storage::default())
        .unwrap();
    assert_eq!(figures.networks[0].name, "Port_2__up");
    assert_eq!(figures.speeds_mbit["Port_2__up"], 1_000);
    figures.networks[0].counters[0].unwrap()
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
fn a_counter_that_is_not_told_is_absent_and_may_not_disappear() {
    let mut accounts = Accounts::default();
    let (names, none) = ([(2, "lo".to_owned())].into(), Column::new());
    let mut sent = |reported: Option<u64>| -> Result<Option<u64>, Lost> {
        let mut observation = observed(1, 1);
        observation.interfaces[4] = reported.map(|reported| (2, reported)).into_iter().collect();
        let figures = accounts.figures(&observation, 0, &names, &none, &Storage::default())?;
        Ok(figures.networks[0].counters[4])
    };
    let sent_bytes = [None, None, Some(488), Some(490)].map(|reported| sent(reported).unwrap());
    assert_eq!(sent_bytes, [None, None, Some(488), Some(490)]);
    let Lost(message) = sent(None).unwrap_err();
    assert!(message.contains("leaves out"), "one that was reported before: {message}");
}

#[test]
fn a_load_in_percent_becomes_time() {
    let mut accounts = Accounts::default();
    let mut observation =
        Observed { loads: [(196_608, 25), (196_609, 100)].into(), ..observed(0, 1) };
    let mut stat = |observation: &Observed, at_s: u64| {
        let none = Column::new();
        let figures = accounts.figures(
            observation,
            at_s * NANOS_PER_SECOND,
            &none,
            &Column::new(),
            &Storage::default(),
        );
        figures.unwrap().host.stat
    };
    stat(&observation, 10);
    let now = stat(&observation, 14);
    let times: Vec<_> = now.cpus.iter().map(|(n, cpu)| (*n, cpu.user, cpu.idle)).collect();
    assert_eq!(times, [(0, 100, 300), (1, 400, 0)]);
    observation.loads.remove(&196_609);
    assert_eq!(stat(&observation, 15).cpus.len(), 1);
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
    let observation = Observed {
        sizes: [(1, 8_000), (3, 9_000), (7, 1_000), (10, 1_000)].into(),
        used: [(1, 6_000), (3, 6_100), (7, 1_000), (10, 100)].into(),
        ..Observed::default()
    };
    let (none, speeds) = (Column::new(), Column::new());
    let figures = Accounts::default().figures(&observation, 0, &none, &speeds, &storage).unwrap();
    let memory = figures.host.memory;
    assert_eq!((memory.total, memory.available), (Some(8_000 << 10), Some(3_000 << 10)));
    assert_eq!((memory.swap_total, memory.swap_free), (Some(1_000 << 10), Some(900 << 10)));
    assert!(figures.host.stat == Stat::default() && figures.networks.is_empty());
}
