//! Five hundred desktop clients in one process. A target of its own: other tests would not get
//! their answers in time next to it.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot be set up has failed, and one that is skipped says so"
)]

use plimsoll_testkit::smb_peers::samba;

use plimsoll_testkit::program::{Served, alone};
use plimsoll_testkit::shared_files::run;

const CLIENTS: u64 = 500;

/// A point in which all log on within six seconds; a Samba of two cores forks as long for them.
/// Workspaces and think time are such that both servers cope: this is no measurement.
#[track_caller]
fn all_take_part(url: &str) {
    let set = [
        "workload.workspace_mib=1",
        "profiles.quick.workload_scale=0.05",
        "load.think.mean=4s",
        "profiles.quick.think_scale=1",
        "load.start_delay=6s",
        "profiles.quick.warm_up=12s",
        "profiles.quick.measure=2s",
        "profiles.quick.drain=20s",
    ];
    let mut more = vec!["--points", "500"];
    set.iter().for_each(|one| more.extend(["--set", one]));
    let finished = run(url, &more, || ());
    let point = finished.point();
    assert_eq!(finished.stayed(), CLIENTS, "{}", point["error_samples"]);
    assert_eq!(finished.unexpected(), 0, "{}", point["unexpected"]);
    assert_eq!(point["errors"], serde_json::json!({}), "{}", point["error_samples"]);
    // How many depends on the machine.
    assert!(point["achieved_ops_per_s"].as_f64() > Some(0.0), "{point}");
}

#[test]
fn five_hundred_clients_of_the_reference_server_all_take_part() {
    let _alone = alone();
    // The largest volume that the clients may write, which is far more than they do.
    let server = Served::with("smb", &["--memory-max", "4GiB"]);
    all_take_part(&server.url);
}

#[test]
fn five_hundred_clients_of_a_real_samba_all_take_part() {
    let _alone = alone();
    let Some(server) = samba() else { return };
    all_take_part(&server.url_with_password());
}
