//! Hosts, kernel settings and statements in a report.

use plimsoll_model::disclosure::{Host, KernelSetting, Setting};
use plimsoll_model::inventory::{
    ConfigurationFile, DeclaredFacts, DeclaredSystem, Inventory, ServerSoftware, SystemInventory,
};
use plimsoll_model::result::RunResult;

use crate::fixture;

fn disclosed() -> RunResult {
    let mut run = fixture::valid(3);
    let disclosure = run.disclosure.as_mut().unwrap();
    let changed = KernelSetting {
        name: "net.core.somaxconn".into(),
        value: "1024".into(),
        default: Some("4096".into()),
        depends_on: None,
        meaning: "longest queue".into(),
        unit: "connections".into(),
    };
    let open = KernelSetting {
        name: "net.ipv4.tcp_mem".into(),
        value: "1 2 3".into(),
        default: None,
        depends_on: Some("the size of memory".into()),
        meaning: "memory of all sockets".into(),
        unit: "pages".into(),
    };
    disclosure.generator.kernel_settings = vec![changed.clone(), open];
    disclosure.generator.kernel_settings_judged = Some(90);
    disclosure.generator.clocks = vec![Setting::new("clock source", "tsc")];
    disclosure.setup.push(Setting::new("clock of ssh://db", "1.50 ms ahead"));
    disclosure.topology = vec![Setting::new("generator", "gen1, 192.0.2.1")];
    let host = Host {
        name: Some("web1".into()),
        kernel_settings: vec![changed],
        kernel_settings_judged: Some(1),
        ..Host::default()
    };
    let server = ServerSoftware {
        name: "nginx".into(),
        version: Some("nginx/1.28.0".into()),
        command_line: Some("nginx -g <b>".into()),
        configuration_file: Some(ConfigurationFile {
            path: "/etc/nginx.conf".into(),
            sha256: "00ff".into(),
        }),
        listens: vec!["0.0.0.0:80".into()],
        ..ServerSoftware::default()
    };
    disclosure.systems = vec![SystemInventory {
        file: "server.json".into(),
        age_s: 7_200,
        of_targets: vec!["http://192.0.2.17:8080/".into()],
        inventory: Inventory { host, servers: vec![server], ..Inventory::default() },
    }];
    let system = DeclaredSystem {
        name: "server".into(),
        hardware_available: Some("2026-11".into()),
        ..DeclaredSystem::default()
    };
    disclosure.stated = Some(DeclaredFacts {
        tester: Some("Ada".into()),
        system: vec![system],
        ..DeclaredFacts::default()
    });
    run
}

#[test]
fn changed_settings_stand_beside_default_and_meaning_and_what_nobody_stated_is_listed() {
    let run = disclosed();
    let text = plimsoll_report::markdown(&run).replace('\\', "");
    for part in [
        "net.core.somaxconn: 1024 connections (default 4096; longest queue)",
        "as the kernel has them: 89 of 90 settings that were compared",
        "net.ipv4.tcp_mem: 1 2 3 pages (default depends on the size of memory; memory of all",
        "clock of ssh://db: 1.50 ms ahead",
        "generator: gen1, 192.0.2.1",
        "System web1",
        "host of: http://192.0.2.17:8080/",
        "server nginx: nginx/1.28.0, on 0.0.0.0:80; nginx -g ",
        "; configuration file /etc/nginx.conf, SHA-256 00ff",
        "Kernel settings that differ from their defaults (web1)",
        "tester: Ada",
        "sponsor: not stated",
        "price: not stated",
        "Stated of server",
        "hardware available: 2026-11",
        "firmware: not stated",
        "cost of all monitors: ",
    ] {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
    assert!(!text.contains("Kernel tuning"), "the whole list is in disclosure.json");
    let page = plimsoll_report::html(&run).unwrap();
    assert!(page.contains("nginx -g &lt;b&gt;") && !page.contains("nginx -g <b>"));
}
