//! The agents of a run: connects their processes and the controller's state machine to the
//! coordinator.

use std::collections::{BTreeSet, VecDeque};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use plimsoll_engine::clock;
use plimsoll_fleet::clock::Reading;
use plimsoll_fleet::controller::{self, AgentId, Command, Controller, Loss, News, Settings};
use plimsoll_fleet::launcher::gate::StartGate;
use plimsoll_fleet::launcher::spec::{self, AgentSpec, PodQuery};
use plimsoll_fleet::message::{Greeting, NetworkRoute, PlanOrder};
use plimsoll_model::event::AgentOptions;
use plimsoll_model::target::TargetSpec;
use plimsoll_model::units::counted;

use super::allocation::{AgentAllocation, AllocationRequest, allocate};
use super::deploy::{Delivery, deliver};
use super::pump::{Event, Link, Pump};
use super::targets::{ServerEndpoint, chosen, distance, refuse_out_of_reach, refuse_unused};
use crate::failure::Failure;
use crate::host_inventory::boot_id;
use crate::progress::RunProgress;
use crate::signals::Signals;
use crate::text_file;

/// Longest wait for an event: the live line must be updated.
const LOOK_UP: Duration = Duration::from_millis(50);

/// The agents of a run.
pub struct Fleet {
    members: Vec<Member>,
    /// The run starts with at least this many.
    agents_min: usize,
    events: Sender<Event>,
    news: Receiver<News>,
    /// Serves the agents.
    pump: Option<JoinHandle<()>>,
    /// Writes a line for the user.
    note: fn(&str),
}

/// An agent.
pub struct Member {
    /// How the user named it and what it was given.
    pub spec: AgentSpec,
    /// Numbers of the servers that its clients use, from 0; empty for all.
    pub(crate) targets: Vec<usize>,
    /// The route of its clients to each of them.
    pub(crate) routes: Vec<NetworkRoute>,
    /// `None` until it has greeted.
    pub greeting: Option<Box<Greeting>>,
    /// It has greeted, and was not lost.
    is_there: bool,
    /// Why it was lost, or never came.
    pub loss: Option<Loss>,
    /// The first reading of its clock.
    pub clock: Option<Reading>,
    /// What it may use.
    pub(crate) allocation: AgentAllocation,
}

/// Agents that were started as a check.
pub struct Tried {
    /// The agents that were found, connected or not.
    pub fleet: Fleet,
    /// Requested pods that were not found: as on the command line, and why.
    pub missing_pods: Vec<(String, Failure)>,
}

impl Fleet {
    /// Starts the agents and waits until they are connected. `targets` are the servers of the run
    /// that agents can choose from; `None` without a run.
    pub fn launch(
        options: &AgentOptions,
        targets: Option<&[TargetSpec]>,
        (signals, live): (&Signals, &mut dyn RunProgress),
    ) -> Result<Self, Failure> {
        let ResolvedAgents { specs, missing_pods } = resolve_agents(options)?;
        if let Some((query, failure)) = missing_pods.into_iter().next() {
            return Err(Failure::unusable(format!("{query}: {failure}")));
        }
        let choices = specs.iter().map(|spec| choice(spec, targets));
        let choices = choices.collect::<Result<Vec<_>, Failure>>()?;
        refuse_unused(&choices, targets.unwrap_or_default())?;
        let mut fleet = Self::start(specs, options, (signals, live))?;
        let members = fleet.members.iter_mut().zip(choices);
        members.for_each(|(member, choice)| member.targets = choice);
        match fleet.gather(signals, live)? {
            Gathered::Enough => {
                for member in fleet.members.iter().filter(|member| !member.is_there) {
                    live.note(&member.loss_text());
                }
                live.line(&fleet.gathered_text());
                Ok(fleet)
            }
            Gathered::TooFew => Err(fleet.too_few()),
        }
    }

    /// Starts agents to check which of them work.
    pub fn try_out(
        options: &AgentOptions,
        signals: &Signals,
        live: &mut dyn RunProgress,
    ) -> Result<Tried, Failure> {
        let ResolvedAgents { specs, missing_pods } = resolve_agents(options)?;
        let one = AgentOptions { min: Some(1), ..options.clone() };
        let mut fleet = Self::start(specs, &one, (signals, live))?;
        fleet.gather(signals, live)?;
        Ok(Tried { fleet, missing_pods })
    }

    fn start(
        mut specs: Vec<AgentSpec>,
        options: &AgentOptions,
        (signals, live): (&Signals, &mut dyn RunProgress),
    ) -> Result<Self, Failure> {
        let deliveries = match options.deploy {
            true => deliver(&mut specs, options.wait, signals, live)?,
            false => vec![Delivery::NotRequested; specs.len()],
        };
        let agent_count = specs.len();
        let agents_min = options.min.map_or(agent_count, |min| (min as usize).min(agent_count));
        let settings =
            Settings { wait: options.wait, ..Settings::new(env!("CARGO_PKG_VERSION"), agents_min) };
        let program = own_program()?;
        let (events, heard) = channel();
        let (news_sender, news) = channel();
        let links = specs.iter().map(Link::new).zip(deliveries);
        let pump = Pump {
            controller: Controller::new(agent_count, settings, clock::monotonic()),
            links: links.map(|(link, delivery)| link.with(delivery)).collect(),
            gate: StartGate::new(&specs),
            starting: VecDeque::new(),
            program,
            events: events.clone(),
            news: news_sender,
            endings: Vec::new(),
            note: live.note_writer(),
        };
        let pump = thread::Builder::new()
            .name("plimsoll-agents".into())
            .spawn(move || pump.run(&heard))
            .map_err(|e| Failure::unusable(format!("cannot start a thread: {e}")))?;
        let members = specs.into_iter().map(Member::new).collect();
        let note = live.note_writer();
        Ok(Self { members, agents_min, events, news, pump: Some(pump), note })
    }

    fn gather(
        &mut self,
        signals: &Signals,
        live: &mut dyn RunProgress,
    ) -> Result<Gathered, Failure> {
        loop {
            if signals.is_stop_requested() {
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
            live.passing(&self.gathering_text());
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
            if signals.is_stop_requested() {
                return Err(Failure::interrupted("while agents planned"));
            }
            match self.next() {
                Some(News::Routes(id, routes)) => self.members[id.0].routes = routes,
                Some(News::Planned) => return Ok(()),
                Some(News::PlanFailed(all)) => {
                    let line =
                        |(id, why): &(AgentId, _)| format!("{}: {why}", self.members[id.0].title());
                    let text = all.iter().map(line).collect::<Vec<_>>().join("\n");
                    // An agent that is lost by now counts like one that never came.
                    let left = Some(self.living().count()).filter(|_| are_losses(&all));
                    if left.is_none_or(|left| left < self.agents_min) {
                        return Err(Failure::unusable(text));
                    }
                    (self.note)(&text);
                    return Ok(());
                }
                Some(News::AgentLost { agent, .. }) => self.lose(agent),
                _ => {}
            }
        }
    }

    /// The order for each agent, with its own targets and sources if it has any.
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

    /// Refuses servers that an agent should use but cannot reach.
    pub(crate) fn refuse_out_of_reach(
        &self,
        servers: &[ServerEndpoint<'_>],
    ) -> Result<(), Failure> {
        let agents = self.living().filter_map(|(_, member)| {
            let greeting = member.greeting.as_ref()?;
            Some((&member.spec.name[..], distance(greeting), &member.targets[..]))
        });
        refuse_out_of_reach(agents, servers)
    }

    /// Sends a command to the controller; [`Self::next`] returns what follows.
    pub(crate) fn command(&mut self, command: Command) {
        // Without the pump nothing answers the command, and there is no news.
        let _ = self.events.send(Event::Command(command));
    }

    /// The next news, or `None` after a short wait.
    pub(crate) fn next(&mut self) -> Option<News> {
        match self.news.recv_timeout(LOOK_UP) {
            Ok(news) => Some(news),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                // The pump was not stopped, so it panicked: there would never be news again.
                if let Some(Err(panic)) = self.pump.take().map(JoinHandle::join) {
                    std::panic::resume_unwind(panic);
                }
                None
            }
        }
    }

    /// The connected agents, in their order.
    pub fn living(&self) -> impl Iterator<Item = (AgentId, &Member)> {
        let members = self.members.iter().enumerate();
        members.filter(|(_, member)| member.is_there).map(|(index, it)| (AgentId(index), it))
    }

    /// Divides the cores of the agents' hosts among them. `workers` is the requested number for
    /// each; `taken` are cores that others need on the host with this boot id.
    pub(crate) fn allocate_cores(&mut self, workers: Option<u32>, here: (&str, &[u32])) {
        let there: Vec<usize> = self.living().map(|(id, _)| id.0).collect();
        let request = |index: &usize| {
            let Member { spec, greeting, .. } = &self.members[*index];
            Some(AllocationRequest {
                greeting: greeting.as_ref()?,
                settings: &spec.settings,
                workers: spec.settings.workers.or(workers),
            })
        };
        let requests: Vec<AllocationRequest<'_>> = there.iter().filter_map(request).collect();
        let allocations = allocate(&requests, here);
        for (index, allocation) in there.into_iter().zip(allocations) {
            let member = &mut self.members[index];
            member.allocation = AgentAllocation { targets: member.targets.clone(), ..allocation };
        }
    }

    /// Number of hosts that the agents run on.
    pub(crate) fn hosts(&self) -> usize {
        let greetings = self.living().filter_map(|(_, member)| member.greeting.as_ref());
        greetings.map(|greeting| greeting.boot_id.as_str()).collect::<BTreeSet<_>>().len()
    }

    /// The hosts as text, for the table of the method.
    pub(crate) fn hosts_text(&self, server_is_here: bool) -> String {
        let own = boot_id();
        let mut greetings = self.living().filter_map(|(_, member)| member.greeting.as_ref());
        let servers = server_is_here && greetings.any(|greeting| greeting.boot_id == own);
        let at = if servers { ", the server's own among them" } else { "" };
        let agents = counted(self.living().count(), "generator");
        format!("{agents} on {}{at}", counted(self.hosts(), "host"))
    }

    /// All requested agents.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Marks an agent as lost.
    pub(crate) fn lose(&mut self, agent: AgentId) {
        self.members[agent.0].is_there = false;
    }
}

impl Drop for Fleet {
    /// Stops all agents.
    fn drop(&mut self) {
        self.command(Command::Finish);
        if let Some(pump) = self.pump.take() {
            let _ = pump.join();
        }
    }
}

impl Member {
    /// Name of its host, if it is known.
    pub(crate) fn host(&self) -> &str {
        self.greeting.as_ref().map_or("an unknown host", |greeting| &greeting.host)
    }

    fn new(spec: AgentSpec) -> Self {
        Self {
            spec,
            targets: Vec::new(),
            routes: Vec::new(),
            greeting: None,
            is_there: false,
            loss: None,
            clock: None,
            allocation: AgentAllocation::default(),
        }
    }

    /// For a person: `agent ssh://a on node1`.
    pub(crate) fn title(&self) -> String {
        let host = self.greeting.as_ref().map(|greeting| format!(" on {}", greeting.host));
        format!("agent {}{}", self.spec.name, host.unwrap_or_default())
    }

    /// Why it is not connected.
    pub(crate) fn loss_text(&self) -> String {
        let why = self.loss.as_ref().map_or_else(|| "it is gone".to_owned(), Loss::to_string);
        format!("{}: {why}", self.title())
    }
}

/// Whether every failure is a lost agent: none refused to make a plan.
fn are_losses(failures: &[(AgentId, controller::Failure)]) -> bool {
    failures.iter().all(|(_, why)| matches!(why, controller::Failure::Lost(_)))
}

/// Whether a run can begin.
enum Gathered {
    Enough,
    TooFew,
}

/// The requested agents.
struct ResolvedAgents {
    specs: Vec<AgentSpec>,
    /// Pods that cannot be agents.
    missing_pods: Vec<(String, Failure)>,
}

/// The requested agents; kubectl lists the pods.
fn resolve_agents(options: &AgentOptions) -> Result<ResolvedAgents, Failure> {
    let parsed =
        spec::parse(&options.at, &text_file::read).map_err(|e| Failure::wrong(e.to_string()))?;
    let (mut specs, mut missing_pods) = (parsed.agents, Vec::new());
    for query in &parsed.pods {
        match pods(query) {
            Ok(agents) => specs.extend(agents),
            Err(failure) => missing_pods.push((query.to_string(), failure)),
        }
    }
    spec::name_apart(&mut specs);
    Ok(ResolvedAgents { specs, missing_pods })
}

/// The file of this program, which launchers of this host start.
pub fn own_program() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|e| Failure::unusable(format!("cannot find this program's file: {e}")))
}

/// The servers that an agent's clients use according to a file.
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
        // Lines before the last are kubectl's log.
        let stderr = String::from_utf8_lossy(&output.stderr);
        let last = stderr.trim().lines().next_back().unwrap_or("it says nothing");
        return Err(Failure::unusable(format!("kubectl cannot list the pods: {last}")));
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    query.agents(&printed).map_err(|e| Failure::unusable(e.to_string()))
}
