use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use plimsoll_model::units::NANOS_PER_SECOND;
use plimsoll_testkit::snmp_agent::{
    COMMUNITY, COUNTER_32, COUNTER_64, GAUGE_32, INTEGER, SnmpAgent, TIME_TICKS, Table, answer,
    number, text,
};

use super::*;
use crate::root::Root;
use crate::sampler::Sampler;
use crate::source::SAMPLE_WAIT;

/// An agent with these values, until it is made silent.
struct Agent {
    port: u16,
    table: Arc<Mutex<Table>>,
    silent: Arc<AtomicBool>,
    _agent: SnmpAgent,
}

impl Agent {
    fn start() -> Self {
        let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        let (table, silent) =
            (Arc::new(Mutex::new(Table::new())), Arc::new(AtomicBool::new(false)));
        let (served, hush) = (Arc::clone(&table), Arc::clone(&silent));
        let agent = SnmpAgent::start(socket, move || {
            (!hush.load(Ordering::Relaxed)).then(|| served.lock().unwrap().clone())
        });
        Self { port: agent.port(), _agent: agent, table, silent }
    }

    fn set(&self, column: &[u64], row: u64, value: Vec<u8>) {
        self.table.lock().unwrap().insert([column, &[row]].concat(), value);
    }

    fn open(&self) -> Result<SnmpPeer, Lost> {
        SnmpPeer::open("127.0.0.1", self.port, COMMUNITY).map(|(peer, _)| peer)
    }
}

/// A switch with a port of a gigabit, and a processor.
fn switch(agent: &Agent, octets: u64) {
    agent.set(SYS_DESCR, 0, text("Switch 9000"));
    agent.set(SYS_UP_TIME, 0, number(TIME_TICKS, 9_000));
    agent.set(IF_NAME, 7, text("Gi1/0/7"));
    agent.set(IF_HIGH_SPEED, 7, number(GAUGE_32, 1_000));
    agent.set(IF_HC_IN_OCTETS, 7, number(COUNTER_64, octets));
    agent.set(IF_HC_OUT_OCTETS, 7, number(COUNTER_64, 2 * octets));
    agent.set(HR_PROCESSOR_LOAD, 196_608, number(INTEGER, 40));
}

#[test]
fn an_agents_64_bit_counters_become_rates_and_its_load_a_share() {
    let agent = Agent::start();
    let begin = u64::MAX / 1_000;
    switch(&agent, begin);
    let mut peer = agent.open().unwrap();
    let frame = Frame::default();
    let root = Root::of_frame(frame.clone());
    let mut fetched = peer.fetch(&frame).unwrap().unwrap();
    let mut sampler = Sampler::new(&root, Vec::new());
    sampler.sample_reported(fetched.at, fetched.figures.as_ref());
    assert!(peer.fetch(&frame).unwrap().is_none(), "the agent reports nothing new");
    std::thread::sleep(std::time::Duration::from_millis(300));
    switch(&agent, begin + 50_000_000);
    let before = fetched.at;
    fetched = peer.fetch(&frame).unwrap().unwrap();
    let elapsed_ns = fetched.at.monotonic_ns - before.monotonic_ns;
    let sample = sampler.sample_reported(fetched.at, fetched.figures.as_ref());
    let sent = sample.networks.value("Gi1_0_7", "sent").unwrap();
    let expected = 1e8 * NANOS_PER_SECOND as f64 / elapsed_ns as f64;
    assert!((sent / expected - 1.0).abs() < 0.01, "{sent}, not {expected}");
    assert_eq!(sample.networks.value("Gi1_0_7", "sent_packets"), None, "not reported");
    let busy = sample.cpus.value("0", "busy").unwrap();
    assert!((busy - 0.4).abs() < 0.05, "{busy}");
    let share = sample.networks.value("Gi1_0_7", "sent_share").unwrap();
    assert!((share * 125e6 / sent - 1.0).abs() < 1e-9, "{share} of a gigabit");
    assert_eq!(sample.cpus.value("0", "user"), None, "it is only known to be busy");
}

#[test]
fn an_agent_that_falls_silent_is_lost_within_the_wait_and_answers_again_later() {
    let agent = Agent::start();
    switch(&agent, 1);
    let mut peer = agent.open().unwrap();
    assert!(!format!("{peer:?}").contains("s3cret"));
    agent.silent.store(true, Ordering::Relaxed);
    let begin_ns = clock::monotonic_ns();
    let Lost(message) = peer.fetch(&Frame::default()).unwrap_err();
    assert_eq!(message, "no answer within 1.5 s");
    assert!(clock::monotonic_ns() - begin_ns < SAMPLE_WAIT.as_nanos() as u64);
    agent.silent.store(false, Ordering::Relaxed);
    assert!(peer.fetch(&Frame::default()).unwrap().is_some());
}

#[test]
fn an_agent_that_tells_nothing_of_use_or_lets_nobody_in_is_refused() {
    let agent = Agent::start();
    agent.set(SYS_DESCR, 0, text("Printer"));
    let Lost(message) = agent.open().unwrap_err();
    assert!(message.contains("neither interfaces nor processors"), "{message}");
    let Lost(message) = SnmpPeer::open("127.0.0.1", agent.port, "public").map(drop).unwrap_err();
    assert!(message.contains("no answer"), "{message}");
}

#[test]
fn garbage_for_an_answer_never_panics() {
    let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
    let port = socket.local_addr().unwrap().port();
    let agent = Agent::start();
    switch(&agent, 1);
    let table = agent.table.lock().unwrap().clone();
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        let mut count = 0_usize;
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            // A good answer with one byte of it another, or cut.
            let mut bytes = answer(&buffer[..length], &table).unwrap();
            count += 1;
            let at = count * 7 % bytes.len();
            match count % 3 {
                0 => bytes.truncate(at),
                1 => bytes[at] ^= 0x80,
                _ => bytes[at] = 0xff,
            }
            socket.send_to(&bytes, from).unwrap();
        }
    });
    for _ in 0..400 {
        let _ = SnmpPeer::open("127.0.0.1", port, "s3cret");
    }
}

/// Ticks of user, system, idle, waiting, software interrupts and stolen, and context switches.
fn ticks(agent: &Agent, values: [u64; 7]) {
    for (object, value) in [50, 52, 53, 54, 61, 64, 60].into_iter().zip(values) {
        agent.set(&[SYSTEM_STATS, &[object]].concat(), 0, number(COUNTER_32, value));
    }
}

#[test]
fn ticks_of_all_processors_are_taken_before_the_mean_over_a_minute() {
    let agent = Agent::start();
    switch(&agent, 1);
    ticks(&agent, [u64::from(u32::MAX) - 99, 1_000, 5_000, 70, 30, 9, 1_000]);
    let (mut peer, facts) = SnmpPeer::open("127.0.0.1", agent.port, "s3cret").unwrap();
    assert!(facts.iter().any(|(_, value)| value.contains("UCD-SNMP-MIB")), "{facts:?}");
    let frame = Frame::default();
    let mut sampler = Sampler::new(&Root::of_frame(frame.clone()), Vec::new());
    let fetched = peer.fetch(&frame).unwrap().unwrap();
    sampler.sample_reported(fetched.at, fetched.figures.as_ref());
    switch(&agent, 2);
    // 500 more of user, across the end of 32 bits, of 1,000 in all.
    ticks(&agent, [400, 1_100, 5_300, 120, 50, 39, 3_000]);
    let fetched = peer.fetch(&frame).unwrap().unwrap();
    let sample = sampler.sample_reported(fetched.at, fetched.figures.as_ref());
    for (column, expected) in [
        ("cpu_user", 0.5),
        ("cpu_system", 0.1),
        ("cpu_idle", 0.3),
        ("cpu_iowait", 0.05),
        ("cpu_softirq", 0.02),
        ("cpu_steal", 0.03),
    ] {
        let actual = sample.host.value("", column).unwrap();
        assert!((actual - expected).abs() < 1e-9, "{column}: {actual}, not {expected}");
    }
    assert!(sample.host.value("", "context_switches").unwrap() > 0.0);
    assert_eq!(sample.cpus.value("0", "user"), None, "of all processors together only");
}

#[test]
fn an_agent_that_has_not_looked_yet_tells_zeros_which_are_no_times() {
    let agent = Agent::start();
    switch(&agent, 1);
    ticks(&agent, [0; 7]);
    let mut peer = agent.open().unwrap();
    let frame = Frame::default();
    let mut sampler = Sampler::new(&Root::of_frame(frame.clone()), Vec::new());
    let fetched = peer.fetch(&frame).unwrap().unwrap();
    sampler.sample_reported(fetched.at, fetched.figures.as_ref());
    for (octets, busy) in [(2, None), (3, Some(0.25))] {
        switch(&agent, octets);
        let user_ticks = if octets == 2 { 100_000 } else { 100_100 };
        ticks(&agent, [user_ticks, 0, 200_000 + 3 * (user_ticks - 100_000), 0, 0, 0, 10]);
        let fetched = peer.fetch(&frame).unwrap().unwrap();
        let sample = sampler.sample_reported(fetched.at, fetched.figures.as_ref());
        assert_eq!(sample.host.value("", "cpu_busy"), busy, "all since its start is no second");
    }
}

#[test]
fn an_agent_without_ticks_says_that_its_load_is_a_mean_over_a_minute() {
    let agent = Agent::start();
    switch(&agent, 1);
    let (mut peer, facts) = SnmpPeer::open("127.0.0.1", agent.port, "s3cret").unwrap();
    assert!(facts.contains(&("load of processors", "one-minute mean (hrProcessorLoad)".into())));
    let frame = Frame::default();
    let mut sampler = Sampler::new(&Root::of_frame(frame.clone()), Vec::new());
    for octets in [2, 3] {
        switch(&agent, octets);
        std::thread::sleep(std::time::Duration::from_millis(100));
        let fetched = peer.fetch(&frame).unwrap().unwrap();
        let sample = sampler.sample_reported(fetched.at, fetched.figures.as_ref());
        let busy = sample.host.value("", "cpu_busy");
        assert_eq!(busy.is_some(), octets == 3, "{busy:?}");
        assert_eq!(sample.host.value("", "cpu_user"), None);
    }
}
