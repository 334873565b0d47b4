//! The same loop on real sockets: an agent, its workers, the epoll driver, an echo server.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use plimsoll_engine::agent::{run_point, soonest};
use plimsoll_engine::driver::epoll::EpollDriver;
use plimsoll_engine::driver::{Driver as _, Wait};
use plimsoll_model::assignment::{
    Assignment, Endpoint, Load, Pacing, Phases, PointId, Priority, Purpose,
};
use plimsoll_model::event::{AgentEvent, WorkerHealth, WorkerTotals};
use plimsoll_model::suite::{Arrivals, InterArrival, OnClientFailure, Think, ThinkDistribution};
use plimsoll_model::units::{Nanos, OpsPerSec};
use plimsoll_testkit::echo::Echo;

/// Echoes every eight bytes; each connection lives for `replies` of them.
fn echo_server(replies: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let mut message = [0; 8];
                for _ in 0..replies {
                    if stream.read_exact(&mut message).is_err() {
                        return;
                    }
                    let _ = stream.write_all(&message);
                }
            });
        }
    });
    address
}

fn assignment(address: SocketAddr, load: Load, workers: u32) -> Assignment {
    Assignment {
        point: PointId { ordinal: 1, purpose: Purpose::Ladder },
        load,
        phases: Phases {
            warm_up_ns: Nanos::from_millis(100),
            measure_ns: Nanos::from_millis(400),
            ramp_down_ns: Nanos::ZERO,
            drain_ns: Nanos::from_secs(2),
            ops: None,
        },
        seed: 1,
        workers,
        cores: vec![],
        pacing: Pacing::Precise,
        own_cores: false,
        priority: Priority::Normal,
        op_timeout: Nanos::from_secs(2),
        endpoints: vec![Endpoint { target: "echo".into(), address, unix: None }],
        sources: vec![],
        reserved_ports: false,
        nonce: 0,
        on_client_failure: OnClientFailure::Drop,
        goodput: None,
        counts_clients: false,
        shape: None,
        crew: None,
        files: None,
    }
}

/// A window of two seconds: whatever a pause of the machine takes from its end, most of it is left.
fn longer(mut assignment: Assignment) -> Assignment {
    assignment.phases.measure_ns = Nanos::from_secs(2);
    assignment
}

fn open(rate: f64) -> Load {
    Load::Open {
        rate_ops_per_s: OpsPerSec::new(rate).unwrap(),
        arrivals: Arrivals::PerClient,
        gaps: InterArrival::Uniform,
        clients: 16,
        backlog_ops_max: 1_000,
    }
}

fn closed(clients: u32) -> Load {
    let think = Think { mean: Nanos::ZERO, distribution: ThinkDistribution::Constant };
    Load::Closed {
        clients,
        think,
        start_delay_ns: Nanos::ZERO,
        starts_thinking: false,
        axis_think_ns: None,
    }
}

fn run(assignment: &Assignment) -> Vec<WorkerTotals> {
    let (events, received) = sync_channel(10_000);
    run_point(assignment, &Echo, soonest(assignment), (&events, &AtomicBool::new(false))).unwrap();
    drop(events);
    let finished = |event| match event {
        AgentEvent::WorkerFinished { totals, .. } => Some(*totals),
        AgentEvent::WorkerPanicked { message } => panic!("{message}"),
        _ => None,
    };
    received.into_iter().filter_map(finished).collect()
}

#[test]
fn workers_share_an_open_load_and_every_op_is_answered() {
    let totals = run(&longer(assignment(echo_server(usize::MAX), open(1_000.0), 2)));
    assert_eq!(totals.len(), 2);
    for worker in &totals {
        assert_eq!(worker.due, 1_000);
        assert_eq!((worker.ops["echo"].count, worker.ops["echo"].errors), (1_000, 0));
        assert_eq!(worker.clients_participating, 8);
        // Of the window alone: a machine that pauses at a border moves bytes across it.
        let bytes = worker.wire_bytes_out;
        assert!((500 * 8..=1_050 * 8).contains(&bytes) && bytes.is_multiple_of(8), "{bytes}");
    }
}

#[test]
fn a_closed_load_keeps_every_client_busy() {
    let totals = run(&longer(assignment(echo_server(usize::MAX), closed(4), 1)));
    assert_eq!(totals[0].clients_participating, 4);
    assert!(totals[0].done_in_window > 400, "{}", totals[0].done_in_window);
    assert_eq!(totals[0].errors.len(), 0);
}

#[test]
fn a_server_that_hangs_up_costs_an_op_and_the_client_connects_again() {
    let totals = run(&longer(assignment(echo_server(10), open(1_000.0), 1)));
    let echo = &totals[0].ops["echo"];
    assert_eq!(echo.count, 2_000);
    // One for every ten ops, of the window alone: what is overdue at its end connects after it.
    assert!(totals[0].connects >= 100, "{}", totals[0].connects);
    // The warm-up used up a part of each client's first connection.
    assert!(echo.errors <= echo.count / 10 + 16, "{}", echo.errors);
}

/// Health of a worker over the window.
fn health(pacing: Pacing, own_cores: bool) -> WorkerHealth {
    let mut task = longer(assignment(echo_server(usize::MAX), open(2_000.0), 1));
    (task.pacing, task.own_cores) = (pacing, own_cores);
    let (events, received) = sync_channel(10_000);
    run_point(&task, &Echo, soonest(&task), (&events, &AtomicBool::new(false))).unwrap();
    drop(events);
    let mut sum = WorkerHealth { run_delay_ns: Some(0), ..WorkerHealth::default() };
    for event in received {
        let AgentEvent::Interval(interval) = event else { continue };
        let health = interval.health;
        sum.cpu_ns += health.cpu_ns;
        sum.empty_poll_ns += health.empty_poll_ns;
        sum.sleep_ns += health.sleep_ns;
        sum.gap_ns += health.gap_ns;
        sum.wall_ns += health.wall_ns;
        sum.wakeups += health.wakeups;
        sum.run_delay_ns =
            sum.run_delay_ns.zip(health.run_delay_ns).map(|(sum, delay)| sum + delay);
    }
    sum
}

#[test]
fn work_polls_and_sleep_are_the_workers_time() {
    let pacings = [
        (Pacing::Auto, true),
        (Pacing::Auto, false),
        (Pacing::Spin, false),
        (Pacing::Precise, false),
        (Pacing::Coalesce, false),
    ];
    for (pacing, own_cores) in pacings {
        // Where others had the core, the kernel's own work counts twice and for longer: a wrong
        // account is wrong each time.
        let faults = (0..5).map_while(|_| account_fault(pacing, own_cores)).collect::<Vec<_>>();
        assert!(faults.len() < 5, "{faults:#?}");
    }
}

/// What is wrong with how a worker accounts for its time, if anything.
fn account_fault(pacing: Pacing, own_cores: bool) -> Option<String> {
    let health = health(pacing, own_cores);
    let wall = health.wall_ns as f64;
    let work = health.cpu_ns.saturating_sub(health.empty_poll_ns);
    let accounted = (work + health.empty_poll_ns + health.sleep_ns) as f64;
    // The accounts omit only the time in which others had the core.
    let kept_waiting = health.run_delay_ns.unwrap_or(health.wall_ns).max(health.gap_ns) as f64;
    // The kernel's own work to put the worker to sleep and to wake it is in both.
    let both = health.wakeups as f64 * 40_000.0;
    let right = accounted <= wall * 1.03 + both
        && accounted + kept_waiting >= wall * 0.93
        && (health.empty_poll_ns > 0 || !(own_cores || pacing == Pacing::Spin))
        && (health.sleep_ns > 0 || pacing == Pacing::Spin);
    (!right).then(|| format!("{pacing:?}, core of its own {own_cores}: {health:?}"))
}

#[test]
fn replies_of_a_real_socket_are_stamped() {
    let totals = run(&longer(assignment(echo_server(usize::MAX), closed(4), 1)));
    let (stamped, bounded) = (totals[0].arrived_stamped, totals[0].arrived_bounded);
    assert!(stamped > 100 && bounded <= stamped / 100, "{stamped} stamped, {bounded} bounded");
}

#[test]
fn a_refused_port_is_a_transport_error_of_every_op() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let totals = run(&assignment(address, open(200.0), 1));
    assert_eq!(totals[0].errors["transport"], totals[0].ops["echo"].count);
    assert_eq!(totals[0].due, 80);
}

#[test]
fn the_stop_flag_ends_a_point_at_once() {
    let address = echo_server(usize::MAX);
    let mut task = assignment(address, open(100.0), 2);
    task.phases.measure_ns = Nanos::from_secs(3_600);
    let (events, received) = sync_channel(10_000);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let point = scope.spawn(|| run_point(&task, &Echo, soonest(&task), (&events, &stop)));
        thread::sleep(Duration::from_millis(50));
        stop.store(true, Ordering::Relaxed);
        point.join().unwrap().unwrap();
    });
    drop(events);
    assert!(received.into_iter().any(|event| matches!(event, AgentEvent::WorkerFinished { .. })));
}

#[test]
fn a_wait_is_not_rounded_up_to_whole_milliseconds() {
    // Rounding makes every one of these at least 0.9 ms late; a nanosecond timer, at least one of
    // them less, on the busiest machine.
    let mut driver = EpollDriver::new(EpollDriver::instance().unwrap(), Nanos::ZERO);
    EpollDriver::fire_timers_exactly().unwrap();
    let late = (0..100).map(|_| {
        let until = driver.now() + Nanos::from_micros(100);
        driver.wait(Wait::Until(until), &mut Vec::new());
        driver.now() - until
    });
    let least = late.min().unwrap();
    assert!(least < Nanos::from_micros(800), "{least}");
}
