use std::path::Path;
use std::sync::mpsc::channel;

use plimsoll_fleet::controller::Settings;
use plimsoll_fleet::launcher::spec;

use super::*;

fn pump(value: &str) -> (Pump, Receiver<Event>, Receiver<News>) {
    let nothing = |_: &Path| Err(std::io::Error::other("no file"));
    let specs = spec::parse(&[value.to_owned()], &nothing).unwrap().agents;
    let (events, heard) = channel();
    let (tell, news) = channel();
    let settings = Settings::new("1.0", specs.len());
    let pump = Pump {
        controller: Controller::new(specs.len(), settings, clock::monotonic()),
        links: specs.iter().map(Link::new).collect(),
        gate: StartGate::new(&specs),
        program: PathBuf::from("plimsoll"),
        events,
        news: tell,
        endings: Vec::new(),
    };
    (pump, heard, news)
}

#[test]
fn that_an_agent_is_lost_is_known_before_what_follows_from_it() {
    let (pump, heard, news) = pump("exec:/nowhere/at/all");
    pump.run(&heard);
    let told: Vec<News> = news.iter().collect();
    let [News::AgentLost { .. }, News::TooFew(why), News::Finished] = &told[..] else {
        panic!("{told:?}");
    };
    assert!(why[0].1.to_string().contains("cannot run /nowhere/at/all"), "{why:?}");
}
