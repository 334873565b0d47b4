use plimsoll_engine::agent::run_point;
use plimsoll_engine::clock;
use plimsoll_model::assignment::*;
use plimsoll_model::event::*;
use plimsoll_model::suite::*;
use plimsoll_model::target::TargetUrl;
use plimsoll_model::units::*;
use plimsoll_protocols::*;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let url = TargetUrl::parse(&a[1]).unwrap();
    let clients: u32 = a[2].parse().unwrap();
    let rate: f64 = a[3].parse().unwrap();
    let pacing = match a[4].as_str() {
        "spin" => Pacing::Spin,
        "precise" => Pacing::Precise,
        _ => Pacing::Coalesce,
    };
    let secs: u64 = a[5].parse().unwrap();
    let suite = parse_suite("x", shipped("web-url").unwrap(), &[]).unwrap();
    let address = url.authority(80).parse().unwrap();
    let targets = [ResolvedTarget { url, address }];
    let plan = (protocol("http").unwrap().plan)(&PlanRequest {
        suite: &suite,
        profile: &suite.profiles.quick,
        seed: 1,
        highest_ops_per_s: None,
        targets: &targets,
        file_set: None,
        urls: None,
    })
    .map_err(|e| e.to_string())
    .unwrap_or_else(|e| panic!("{e}"));
    let load = if rate > 0.0 {
        Load::Open {
            rate_ops_per_s: OpsPerSec::new(rate).unwrap(),
            arrivals: Arrivals::Shared,
            gaps: Gaps::Uniform,
            clients,
            backlog_ops_max: 65536,
        }
    } else {
        Load::Closed {
            clients,
            think: Think { mean: Nanos(0), distribution: ThinkDistribution::Constant },
            start_delay_ns: Nanos(0),
        }
    };
    let asg = Assignment {
        point: PointId { ordinal: 1, purpose: Purpose::Ladder },
        load,
        phases: Phases {
            warm_up_ns: Nanos::from_millis(500),
            measure_ns: Nanos::from_secs(secs),
            drain_ns: Nanos::from_secs(1),
        },
        seed: 1,
        workers: 1,
        cores: vec![],
        pacing,
        op_timeout: Nanos::from_secs(5),
        endpoints: vec![Endpoint { target: "x".into(), address }],
        sources: vec![],
    };
    let (tx, rx) = channel();
    let c0 = clock::process_cpu();
    run_point(&asg, &*plan.workload, &tx, &AtomicBool::new(false)).unwrap();
    let cpu = clock::process_cpu() - c0;
    drop(tx);
    let mut h = new_times();
    let mut lag = new_times();
    let mut all = 0;
    for e in rx {
        match e {
            AgentEvent::Interval(i) => {
                all += i.done;
                if i.phase != Phase::WarmUp {
                    h.add(&i.ops[0].response).unwrap();
                    lag.add(&i.ops[0].send_lag).unwrap();
                }
            }
            AgentEvent::WorkerFinished(t) => println!(
                "due {} done {} rate {:.0} errors {:?} ambiguous {} connects {}",
                t.due,
                t.done_in_window,
                t.done_in_window as f64 / secs as f64,
                t.errors,
                t.ambiguous,
                t.connects
            ),
            AgentEvent::ErrorSample(s) => println!("{s:?}"),
            AgentEvent::WorkerPanicked { message } => println!("{message}"),
            _ => {}
        }
    }
    println!(
        "cpu/op {:.3} us  p50 {} p99 {} p999 {} max {} lag p50 {} p99 {}",
        cpu.0 as f64 / all as f64 / 1e3,
        h.value_at_quantile(0.5) / 1000,
        h.value_at_quantile(0.99) / 1000,
        h.value_at_quantile(0.999) / 1000,
        h.max() / 1000,
        lag.value_at_quantile(0.5) / 1000,
        lag.value_at_quantile(0.99) / 1000
    );
}
