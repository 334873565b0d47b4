//! The agents of a run: their processes between the controller's state machine and the coordinator.

use std::collections::{BTreeSet, VecDeque};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use plimsoll_engine::clock;
use plimsoll_fleet::clock::Reading;
use plimsoll_fleet::controller::{self, AgentId, Command, Controller, Loss, News, Settings};
use plimsoll_fleet::launcher::gate::StartGate;
use plimsoll_fleet::launcher::spec::{self, AgentSpec, PodQuery};
use plimsoll_fleet::message::{Greeting, PlanOrder, Way};
use plimsoll_model::event::AgentsAsked;
use plimsoll_model::target::TargetSpec;

use super::deploy::{Delivery, deliver};
use super::pump::{Event, Link, Pump};
use super::seats::{AgentSeat, SeatWish, seats};
use super::targets::{Whereabouts, chosen, distance, refuse_out_of_reach, refuse_unused};
use crate::exit::Failure;
use crate::host_inventory::boot_id;
use crate::signals::Signals;
use crate::terminal::{Live, counted, note};

/// Longest wait for something to happen: the live line is to go on.
const LOOK_UP: Duration = Duration::from_millis(50);

/// The agents of a run.
pub(crate) struct Fleet {
    members: Vec<Member>,
    /// The run starts with at least so many.
    agents_min: usize,
    events: Sender<Event>,
    news: Receiver<News>,
    /// Serves the agents.
    pump: Option<JoinHandle<()>>,
}

/// An agent.
pub(crate) struct Member {
    pub spec: AgentSpec,
    /// Numbers of the servers that its clients use, from 0; empty for all.
    pub targets: Vec<usize>,
    /// How its clients get to each of them.
    pub ways: Vec<Way>,
    /// `None` until it has greeted.
    pub greeting: Option<Box<Greeting>>,
    /// It has greeted, and was not lost.
    is_there: bool,
    /// Why it is not there any more, or never was.
    pub loss: Option<Loss>,
    /// The first reading of its clock.
    pub clock: Option<Reading>,
    /// What it may use.
    pub seat: AgentSeat,
}

/// Agents that were started to see whether they can be.
pub(crate) struct Tried {
    /// Those that were found, there or not.
    pub fleet: Fleet,
    /// Pods that were asked for and not found: as on the command line, and why.
    pub not_found: Vec<(String, Failure)>,
}

impl Fleet {
    /// Starts the agents and waits until they are there. `targets` are the servers of the run that
    /// agents can choose from; `None` where there is no run.
    pub(crate) fn launch(
        asked: &AgentsAsked,
        targets: Option<&[TargetSpec]>,
        (signals, live): (&Signals, &mut Live),
    ) -> Result<Self, Failure> {
        let Found { specs, not_found } = found(asked)?;
        if let Some((query, failure)) = not_found.into_iter().next() {
            return Err(Failure::unusable(format!("{query}: {failure}")));
        }
        let choices = specs.iter().map(|spec| choice(spec, targets));
        let choices = choices.collect::<Result<Vec<_>, Failure>>()?;
        refuse_unused(&choices, targets.unwrap_or_default())?;
        let mut fleet = Self::start(specs, asked, (signals, live))?;
        let members = fleet.members.iter_mut().zip(choices);
        members.for_each(|(member, choice)| member.targets = choice);
        match fleet.gather(signals, live)? {
            Gathered::Enough => {
                for member in fleet.members.iter().filter(|member| !member.is_there) {
                    note(&member.loss_text());
                }
                live.line(&fleet.gathered_text());
                Ok(fleet)
            }
            Gathered::TooFew => Err(fleet.too_few()),
        }
    }

    /// Starts agents to see which of them can be.
    pub(crate) fn try_out(
        asked: &AgentsAsked,
        signals: &Signals,
        live: &mut Live,
    ) -> Result<Tried, Failure> {
        let Found { specs, not_found } = found(asked)?;
        let one = AgentsAsked { min: Some(1), ..asked.clone() };
        let mut fleet = Self::start(specs, &one, (signals, live))?;
        fleet.gather(signals, live)?;
        Ok(Tried { fleet, not_found })
    }

    fn start(
        mut specs: Vec<AgentSpec>,
        asked: &AgentsAsked,
        (signals, live): (&Signals, &mut Live),
    ) -> Result<Self, Failure> {
        let deliveries = match asked.deploy {
            true => deliver(&mut specs, asked.wait, signals, live)?,
            false => vec![Delivery::NotAsked; specs.len()],
        };
        let wanted = specs.len();
        let agents_min = asked.min.map_or(wanted, |min| (min as usize).min(wanted));
        let settings =
            Settings { wait: asked.wait, ..Settings::new(env!("CARGO_PKG_VERSION"), agents_min) };
        let program = own_program()?;
        let (events, heard) = channel();
        let (tell, news) = channel();
        let links = specs.iter().map(Link::new).zip(deliveries);
        let pump = Pump {
            controller: Controller::new(wanted, settings, clock::monotonic()),
            links: links.map(|(link, delivery)| link.with(delivery)).collect(),
            gate: StartGate::new(&specs),
            starting: VecDeque::new(),
            program,
            events: events.clone(),
            news: tell,
            endings: Vec::new(),
        };
        let pump = thread::Builder::new()
            .name("plimsoll-agents".into())
            .spawn(move || pump.run(&heard))
            .map_err(|e| Failure::unusable(format!("cannot start a thread: {e}")))?;
        let members = specs.into_iter().map(Member::new).collect();
        Ok(Self { members, agents_min, events, news, pump: Some(pump) })
    }

    fn gather(&mut self, signals: &Signals, live: &mut Live) -> Result<Gathered, Failure> {
        loop {
            if signals.is_asked() {
                return Err(Failure::interrupted("while agents were started"));
            }
            match self.next() {
                Some(News::Greeted(id, greeting)) => {
                    let member = &mut self.members[id.0];
                    (member.greeting, member.is_there) = (Some(greeting), true);
                }
                Some(News::Clock(id, reading)) => self.members[id.0].clock = Some(reading),
                Some(News::AgentLost { agent, why }) => {
                    self.members[agent.0].loss = Some(why);
                    self.lose(agent);
                }
                Some(News::Gathered) => return Ok(Gathered::Enough),
                Some(News::TooFew(_)) => return Ok(Gathered::TooFew),
                _ => {}
            }
            live.passing(|| self.gathering_text());
        }
    }

    fn gathering_text(&self) -> String {
        let lost = self.members.iter().filter(|member| member.loss.is_some()).count();
        let lost = if lost > 0 { format!(", {lost} failed") } else { String::new() };
        format!("agents: {} of {} are there{lost}", self.living().count(), self.members.len())
    }

    /// `4 agents on 2 hosts, clocks within 45 µs`.
    fn gathered_text(&self) -> String {
        let (there, all) = (self.living().count(), self.members.len());
        let bound = self.living().filter_map(|(_, member)| Some(member.clock?.bound)).max();
        let bound = bound.map_or(String::new(), |bound| format!(", clocks within {bound}"));
        let of_all = if there < all { format!(" of {all}") } else { String::new() };
        let (agents, hosts) = (counted(there, "agent"), counted(self.hosts(), "host"));
        format!("{agents}{of_all} on {hosts}{bound}")
    }

    fn too_few(&self) -> Failure {
        let lines: Vec<String> = self
            .members
            .iter()
            .filter(|member| member.loss.is_some())
            .map(Member::loss_text)
            .collect();
        let (missing, all) = (lines.len(), counted(self.members.len(), "agent"));
        let are = if missing == 1 { "is" } else { "are" };
        Failure::unusable(format!("{missing} of {all} {are} not there\n{}", lines.join("\n")))
    }

    /// Has the agents make their workloads.
    pub(crate) fn plan(&mut self, order: &PlanOrder, signals: &Signals) -> Result<(), Failure> {
        self.command(Command::Plan(self.orders(order)));
        loop {
            if signals.is_asked() {
                return Err(Failure::interrupted("while agents planned"));
            }
            match self.next() {
                Some(News::Ways(id, ways)) => self.members[id.0].ways = ways,
                Some(News::Planned) => return Ok(()),
                Some(News::PlanFailed(all)) => {
                    let line =
                        |(id, why): &(AgentId, _)| format!("{}: {why}", self.members[id.0].title());
                    let text = all.iter().map(line).collect::<Vec<_>>().join("\n");
                    // One that is lost by now is as good as one that did not come.
                    let left = Some(self.living().count()).filter(|_| are_losses(&all));
                    if left.is_none_or(|left| left < self.agents_min) {
                        return Err(Failure::unusable(text));
                    }
                    note(&text);
                    return Ok(());
                }
                Some(News::AgentLost { agent, .. }) => self.lose(agent),
                _ => {}
            }
        }
    }

    /// The order for each agent: with its targets and sources, where it has some of its own.
    fn orders(&self, order: &PlanOrder) -> Vec<(Vec<AgentId>, Box<PlanOrder>)> {
        let mut orders: Vec<(&[usize], &[IpAddr], Vec<AgentId>)> = Vec::new();
        for (id, Member { targets, spec, .. }) in self.living() {
            let sources = &spec.settings.sources;
            match orders.iter_mut().find(|it| (it.0, it.1) == (&targets[..], &sources[..])) {
                Some((_, _, agents)) => agents.push(id),
                None => orders.push((targets, sources, vec![id])),
            }
        }
        let of = |(targets, sources, agents): (&[usize], &[IpAddr], _)| {
            let mut order = PlanOrder { sources: sources.to_vec(), ..order.clone() };
            if !targets.is_empty() {
                let own = targets.iter().filter_map(|at| order.targets.get(*at).cloned());
                order.targets = own.collect();
            }
            (agents, Box::new(order))
        };
        orders.into_iter().map(of).collect()
    }

    /// Refuses servers that an agent which is to use them does not reach.
    pub(crate) fn refuse_out_of_reach(&self, servers: &[Whereabouts<'_>]) -> Result<(), Failure> {
        let agents = self.living().filter_map(|(_, member)| {
            let greeting = member.greeting.as_ref()?;
            Some((&member.spec.name[..], distance(greeting), &member.targets[..]))
        });
        refuse_out_of_reach(agents, servers)
    }

    /// Asks the controller for something; what comes of it is in [`Self::next`].
    pub(crate) fn command(&mut self, command: Command) {
        // Without the pump there is nobody left to ask, and no news.
        let _ = self.events.send(Event::Command(command));
    }

    /// The next news, or `None` after a short wait.
    pub(crate) fn next(&mut self) -> Option<News> {
        match self.news.recv_timeout(LOOK_UP) {
            Ok(news) => Some(news),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                // Nobody has sent it away: it panicked, and nothing would ever be heard again.
                if let Some(Err(panic)) = self.pump.take().map(JoinHandle::join) {
                    std::panic::resume_unwind(panic);
                }
                None
            }
        }
    }

    /// Agents that are there, in their order.
    pub(crate) fn living(&self) -> impl Iterator<Item = (AgentId, &Member)> {
        let members = self.members.iter().enumerate();
        members.filter(|(_, member)| member.is_there).map(|(index, it)| (AgentId(index), it))
    }

    /// Divides the cores of the agents' hosts among them. `workers` is what the user wants of each,
    /// `taken` are cores that others need on the host with this boot id.
    pub(crate) fn take_seats(&mut self, workers: Option<u32>, here: (&str, &[u32])) {
        let there: Vec<usize> = self.living().map(|(id, _)| id.0).collect();
        let wish = |index: &usize| {
            let Member { spec, greeting, .. } = &self.members[*index];
            Some(SeatWish {
                greeting: greeting.as_ref()?,
                settings: &spec.settings,
                workers: spec.settings.workers.or(workers),
            })
        };
        let wishes: Vec<SeatWish<'_>> = there.iter().filter_map(wish).collect();
        let seats = seats(&wishes, here);
        for (index, seat) in there.into_iter().zip(seats) {
            let member = &mut self.members[index];
            member.seat = AgentSeat { targets: member.targets.clone(), ..seat };
        }
    }

    /// How many hosts the agents run on.
    pub(crate) fn hosts(&self) -> usize {
        let greetings = self.living().filter_map(|(_, member)| member.greeting.as_ref());
        greetings.map(|greeting| greeting.boot_id.as_str()).collect::<BTreeSet<_>>().len()
    }

    /// The same in words, for the table of the method.
    pub(crate) fn hosts_text(&self, server_is_here: bool) -> String {
        let own = boot_id();
        let mut greetings = self.living().filter_map(|(_, member)| member.greeting.as_ref());
        let servers = server_is_here && greetings.any(|greeting| greeting.boot_id == own);
        let at = if servers { ", the server's own among them" } else { "" };
        let agents = counted(self.living().count(), "generator");
        format!("{agents} on {}{at}", counted(self.hosts(), "host"))
    }

    /// All that were asked for.
    pub(crate) fn members(&self) -> &[Member] {
        &self.members
    }

    /// An agent is gone.
    pub(crate) fn lose(&mut self, agent: AgentId) {
        self.members[agent.0].is_there = false;
    }
}

impl Drop for Fleet {
    /// Sends all agents away.
    fn drop(&mut self) {
        self.command(Command::Finish);
        if let Some(pump) = self.pump.take() {
            let _ = pump.join();
        }
    }
}

impl Member {
    /// Name of its host, as far as it is known.
    pub(crate) fn host(&self) -> &str {
        self.greeting.as_ref().map_or("an unknown host", |greeting| &greeting.host)
    }

    fn new(spec: AgentSpec) -> Self {
        Self {
            spec,
            targets: Vec::new(),
            ways: Vec::new(),
            greeting: None,
            is_there: false,
            loss: None,
            clock: None,
            seat: AgentSeat::default(),
        }
    }

    /// For a person: `agent ssh://a on node1`.
    pub(crate) fn title(&self) -> String {
        let host = self.greeting.as_ref().map(|greeting| format!(" on {}", greeting.host));
        format!("agent {}{}", self.spec.name, host.unwrap_or_default())
    }

    /// Why it is not there.
    pub(crate) fn loss_text(&self) -> String {
        let why = self.loss.as_ref().map_or_else(|| "it is gone".to_owned(), Loss::to_string);
        format!("{}: {why}", self.title())
    }
}

/// Nobody refused to make a plan.
fn are_losses(failures: &[(AgentId, controller::Failure)]) -> bool {
    failures.iter().all(|(_, why)| matches!(why, controller::Failure::Lost(_)))
}

/// Whether a run can begin.
enum Gathered {
    Enough,
    TooFew,
}

/// What was asked for.
struct Found {
    specs: Vec<AgentSpec>,
    /// Pods that cannot be agents.
    not_found: Vec<(String, Failure)>,
}

/// The agents that were asked for; pods are asked for by name.
fn found(asked: &AgentsAsked) -> Result<Found, Failure> {
    let read = |path: &Path| std::fs::read_to_string(path);
    let wanted = spec::parse(&asked.at, &read).map_err(|e| Failure::wrong(e.to_string()))?;
    let (mut specs, mut not_found) = (wanted.agents, Vec::new());
    for query in &wanted.pods {
        match pods(query) {
            Ok(agents) => specs.extend(agents),
            Err(failure) => not_found.push((query.to_string(), failure)),
        }
    }
    spec::name_apart(&mut specs);
    Ok(Found { specs, not_found })
}

/// The file of this program, which launchers of this host start.
pub(crate) fn own_program() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|e| Failure::unusable(format!("cannot find this program's file: {e}")))
}

/// The servers that a file says an agent's clients use.
fn choice(spec: &AgentSpec, targets: Option<&[TargetSpec]>) -> Result<Vec<usize>, Failure> {
    let Some(targets) = targets else { return Ok(Vec::new()) };
    let wrong = |why: String| Failure::wrong(format!("agent {}: targets: {why}", spec.name));
    chosen(&spec.settings.targets, targets).map_err(wrong)
}

fn pods(query: &PodQuery) -> Result<Vec<AgentSpec>, Failure> {
    let output = query.command().command().stdin(Stdio::null()).output().map_err(|e| {
        Failure::unusable(format!(
            "cannot run kubectl: {e}; install it, or give its folder in PATH"
        ))
    })?;
    if !output.status.success() {
        // What precedes it are lines of its log.
        let words = String::from_utf8_lossy(&output.stderr);
        let last = words.trim().lines().next_back().unwrap_or("it says nothing");
        return Err(Failure::unusable(format!("kubectl cannot list the pods: {last}")));
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    query.agents(&printed).map_err(|e| Failure::unusable(e.to_string()))
}
