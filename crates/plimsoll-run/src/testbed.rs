//! `--testbed FILE.toml`: the hosts of a test, how each is monitored, and the agents that make the
//! load. The file has the tables of `--system` (`[[system]]`, here with `monitor`) and of
//! `--agents FILE` (`[[agent]]`), whose readers read them.

use std::path::{Path, PathBuf};

use plimsoll_model::disclosure::Setting;
use plimsoll_model::inventory::{DeclaredFacts, DeclaredSystem};
use plimsoll_model::monitored::SourceRole;

use crate::coordinator::sources::{self, RequestedMonitor};
use crate::failure::Failure;
use crate::systems;

/// A testbed that was read.
#[derive(Clone, Debug)]
pub struct Testbed {
    file: PathBuf,
    /// Its systems, and what only the user can state.
    pub facts: DeclaredFacts,
    monitors: Vec<RequestedMonitor>,
}

impl Testbed {
    /// Reads a testbed.
    ///
    /// # Errors
    /// With file and what to do next: text that cannot be read, a host that is monitored twice, a
    /// community in the open.
    pub fn read(file: &Path) -> Result<Self, Failure> {
        let wrong = |what: &str| Failure::wrong(format!("--testbed {}: {what}", file.display()));
        let facts = systems::declared("--testbed", file)?;
        if facts.system.iter().all(|system| system.monitor.is_none()) && facts.agent.is_empty() {
            return Err(wrong(
                "no [[system]] has monitor = \"…\", and there is no [[agent]]; for a file of \
                 statements alone write --system",
            ));
        }
        let monitor = |system: &DeclaredSystem| {
            let role = system.role.as_deref().and_then(SourceRole::from_given);
            let url = systems::monitor_url(system).transpose()?;
            Some(url.map(|url| RequestedMonitor { url, role }))
        };
        let monitors = facts.system.iter().filter_map(monitor).collect::<Result<Vec<_>, _>>();
        let monitors = monitors.map_err(|e| wrong(&e))?;
        sources::refuse_twice(&monitors).map_err(|e| wrong(&e.to_string()))?;
        Ok(Self { file: file.to_owned(), facts, monitors })
    }

    /// The file, and what it declares.
    pub fn declared(&self) -> (&Path, &DeclaredFacts) {
        (&self.file, &self.facts)
    }

    /// The values of `--monitor` with those of the testbed.
    ///
    /// # Errors
    /// A source that both have.
    pub fn monitors_with(
        &self,
        given: &[RequestedMonitor],
    ) -> Result<Vec<RequestedMonitor>, Failure> {
        let is_given =
            |own: &&RequestedMonitor| given.iter().any(|it| it.url.name() == own.url.name());
        match self.monitors.iter().find(is_given) {
            Some(twice) => Err(Failure::wrong(format!(
                "{} is in --monitor and in {}; leave one out",
                twice.url.name(),
                self.file.display()
            ))),
            None => {
                let all = [given, &self.monitors].concat();
                sources::refuse_twice(&all)?;
                Ok(all)
            }
        }
    }

    /// The values of `--agents` with those of the testbed.
    ///
    /// # Errors
    /// Agents in both.
    pub fn agents_with(&self, given: &[String]) -> Result<Vec<String>, Failure> {
        let file = self.file.display();
        match (self.facts.agent.is_empty(), given) {
            (true, given) => Ok(given.to_vec()),
            (false, []) => Ok(vec![file.to_string()]),
            (false, [first, ..]) => Err(Failure::wrong(format!(
                "--agents {first}, and {file} has [[agent]] too; write all agents into one of them"
            ))),
        }
    }

    /// The monitored hosts, each with the system's name.
    pub fn monitored(&self) -> impl Iterator<Item = (&str, &RequestedMonitor)> {
        let systems = self.facts.system.iter().filter(|system| system.monitor.is_some());
        systems.map(|system| system.name.as_str()).zip(&self.monitors)
    }
}

/// Reaches a monitored host once; what it reports about itself.
///
/// # Errors
/// It does not answer, or does not let this program in.
pub fn reach(monitor: &RequestedMonitor) -> Result<Vec<Setting>, Failure> {
    let opened = sources::open(std::slice::from_ref(monitor))?;
    let addresses = opened.iter().map(|it| it.host.disclosed().addresses.join(", "));
    let addresses = addresses.filter(|all| !all.is_empty());
    let addresses = addresses.map(|all| Setting::new("addresses", all));
    // A run has several sources, each of which is named with its facts.
    let of_source = format!(" of {}", monitor.url.name());
    let plain = |fact: &Setting| Setting::new(fact.name.replace(&of_source, ""), &fact.value);
    let facts = opened.iter().flat_map(|it| it.source.facts()).map(plain);
    Ok(facts.chain(addresses).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn testbed(text: &str) -> Result<Testbed, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lab.toml");
        std::fs::write(&file, text).unwrap();
        Testbed::read(&file).map_err(|e| e.to_string())
    }

    const LAB: &str = "sponsor = \"me\"\n\
        [[system]]\nname = \"nas\"\nrole = \"server\"\nmonitor = \"ssh://root@nas\"\n\
        raid_level = \"5\"\nsegments = [\"a\", \"b\"]\n\
        [[system]]\nname = \"core switch\"\nrole = \"switch\"\n\
        monitor = \"snmp://env:COMMUNITY@switch\"\n\
        [[system]]\nname = \"cabinet\"\nstorage = \"8 disks\"\n\
        [[agent]]\nat = \"ssh://gen1\"\nsegment = \"a\"\nworkers = 2\n";

    #[test]
    fn a_testbed_stands_for_its_monitors_and_agents() {
        let testbed = testbed(LAB).unwrap();
        let monitors = testbed.monitors_with(&[]).unwrap();
        let texts: Vec<String> = monitors.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["server=ssh://root@nas", "snmp://env:COMMUNITY@switch"]);
        let agents = testbed.agents_with(&[]).unwrap();
        assert!(agents[0].ends_with("lab.toml"), "{agents:?}");
        let names: Vec<&str> = testbed.monitored().map(|(name, _)| name).collect();
        assert_eq!(names, ["nas", "core switch"]);
        assert_eq!(testbed.facts.system[0].raid_level.as_deref(), Some("5"));
    }

    #[test]
    fn what_flags_and_testbed_both_name_is_refused_with_both_places() {
        let testbed = testbed(LAB).unwrap();
        let given = sources::parse(&["ssh://root@nas".to_owned()]).unwrap();
        let refusal = testbed.monitors_with(&given).unwrap_err().to_string();
        assert!(refusal.contains("ssh://root@nas is in --monitor and in"), "{refusal}");
        let refusal = testbed.agents_with(&["ssh://x".to_owned()]).unwrap_err().to_string();
        assert!(
            refusal.contains("--agents ssh://x, and") && refusal.contains("lab.toml"),
            "{refusal}"
        );
    }

    #[test]
    fn a_file_of_statements_may_name_a_monitor_and_no_secret() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("system.toml");
        let text = "[[system]]\nname = \"x\"\nmonitor = \"snmp://s3cret@switch\"\n";
        std::fs::write(&file, text).unwrap();
        let refusal = systems::read(&[file], None).err().unwrap().to_string();
        assert!(refusal.starts_with("--system ") && refusal.contains("[[system]] x"), "{refusal}");
        assert!(refusal.contains("snmp://env:VARIABLE@switch"), "{refusal}");
        assert!(!refusal.contains("s3cret"), "{refusal}");
    }

    #[test]
    fn a_wrong_testbed_is_refused_with_what_to_do() {
        let system = |lines: &str| format!("[[system]]\nname = \"x\"\n{lines}");
        for (text, parts) in [
            (String::new(), &["no [[system]] has monitor", "--system"][..]),
            (system("raid = \"5\""), &["unknown field `raid`", "raid_level"]),
            (system("monitor = \"nas\""), &["[[system]] x", "names no source"]),
            (system("monitor = \"local\""), &["[[system]] x", "leave its monitor out"]),
            (system("monitor = \"snmp://s3cret@switch\""), &["snmp://env:VARIABLE@switch"]),
            (system("disks = { dta = [\"sdb\"] }"), &["unknown variant `dta`", "data"]),
            (
                system("monitor = \"ssh://a\"") + "\n" + &system("monitor = \"ssh://a\""),
                &["ssh://a is given twice"],
            ),
        ] {
            let refusal = testbed(&text).unwrap_err();
            assert!(parts.iter().all(|part| refusal.contains(part)), "{text}: {refusal}");
            assert!(!refusal.contains("s3cret"), "{refusal}");
        }
    }
}
