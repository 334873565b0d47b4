//! The program as its users meet it: the real binary, its messages, its exit codes, its files.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot be set up has failed, and one that is skipped says so"
)]

mod agent_targets;
mod app;
mod bad_days;
mod blame;
mod calibrate;
mod compare;
mod consumers;
mod core_separation;
mod counts;
mod demo;
mod derive;
mod experiments;
mod flags;
mod fleet;
mod fuzz_entries;
mod gates;
mod generate;
mod hints;
mod http2;
mod http2_faults;
mod https;
mod interruption;
mod journey_server;
mod kubernetes;
mod listening;
mod live;
mod llm;
mod llm_faults;
mod monitors;
mod nfs;
mod old_bundles;
mod otlp;
mod own_protocol;
mod pairs;
mod priced;
mod reaching;
mod replay;
mod reported_figures;
mod requests;
mod search;
mod secrets;
mod serve_app;
mod shapes;
mod signatures;
mod size;
mod smb;
mod smb_cross_checks;
mod storage;
mod streams;
mod systems;
mod tour;
mod until;
mod usage;
mod user_faults;
mod users;
mod web_peers;
