//! What the program does with a controller: runs the load points that its journal has not, each
//! once more if it was lost, and stops at Ctrl-C.

use std::collections::BTreeMap;

use plimsoll_fleet::controller::{AgentId, Command, ControllerRequest, Failure, Loss, News};
use plimsoll_fleet::message::PlanOrder;
use plimsoll_model::assignment::Assignment;
use plimsoll_model::suite::ProfileName;

use super::random::Random;
use super::work::PointPlan;

/// Losses after which a run is given up, for `resume` to go on with.
const LOSSES_MAX: u32 = 2;

/// How often something happened: a simulation in which too little goes wrong shows nothing.
pub type Tally = BTreeMap<&'static str, u32>;

pub struct Coordinator {
    points: Vec<PointPlan>,
    /// Finished load points, and by which attempt.
    pub journal: BTreeMap<u32, u64>,
    attempts: u64,
    losses: u32,
    running: Option<RunningPoint>,
    is_interrupted: bool,
    pub is_finished: bool,
    pub tally: Tally,
}

/// The load point that runs.
pub struct RunningPoint {
    pub point: PointPlan,
    pub attempt: u64,
    pub assignments: Vec<(AgentId, Assignment)>,
}

/// Its next step.
pub enum NextStep {
    Nothing,
    Plan,
    Point,
    Finish,
}

impl Coordinator {
    pub fn any(random: &mut Random) -> Self {
        let points = 1..=random.between(1, 4) as u32;
        Self {
            points: points.map(|ordinal| PointPlan::any(random, ordinal)).collect(),
            journal: BTreeMap::new(),
            attempts: 0,
            losses: 0,
            running: None,
            is_interrupted: false,
            is_finished: false,
            tally: Tally::new(),
        }
    }

    /// A new process resumes from the journal.
    pub fn resume(&mut self) {
        self.count("controllers");
        (self.losses, self.running) = (0, None);
        (self.is_interrupted, self.is_finished) = (false, false);
    }

    pub fn is_done(&self) -> bool {
        self.journal.len() == self.points.len()
    }

    /// Takes in news, and gives a load point that has just been finished to `check`.
    pub fn hear(&mut self, news: News, check: impl FnOnce(&RunningPoint, &News)) -> NextStep {
        self.count(name(&news));
        match news {
            News::Gathered => NextStep::Plan,
            News::Planned => NextStep::Point,
            News::PlanFailed(_) => self.again(NextStep::Plan),
            News::PointFinished(_) => {
                let ended = self.running.take().expect("the end of a load point that runs");
                if self.is_interrupted {
                    return NextStep::Finish;
                }
                check(&ended, &news);
                let before = self.journal.insert(ended.point.ordinal, ended.attempt);
                assert_eq!(before, None, "a load point was finished twice");
                NextStep::Point
            }
            News::PointLost { .. } => {
                assert!(self.running.take().is_some(), "the loss of a load point that runs");
                self.again(NextStep::Point)
            }
            News::PointStopped => {
                assert!(self.running.take().is_some() && self.is_interrupted);
                NextStep::Finish
            }
            News::Finished => {
                self.is_finished = true;
                NextStep::Nothing
            }
            News::Refused(why) => panic!("a command was refused: {why}"),
            _ => NextStep::Nothing,
        }
    }

    pub fn count(&mut self, what: &'static str) {
        *self.tally.entry(what).or_default() += 1;
    }

    fn again(&mut self, next_step: NextStep) -> NextStep {
        self.losses += 1;
        match self.losses > LOSSES_MAX || self.is_interrupted {
            true => NextStep::Finish,
            false => next_step,
        }
    }

    /// Ctrl-C.
    pub fn interrupt(&mut self) -> Command {
        self.is_interrupted = true;
        self.count("interrupts");
        match self.running {
            Some(_) => Command::Stop,
            None => Command::Finish,
        }
    }

    /// The command for a step, with the remaining agents.
    pub fn command(&mut self, next_step: NextStep, living: &[AgentId]) -> Option<Command> {
        let next = self.points.iter().find(|point| !self.journal.contains_key(&point.ordinal));
        Some(match (next_step, next) {
            (NextStep::Nothing, _) => return None,
            (NextStep::Plan, _) if !living.is_empty() => {
                Command::Plan(vec![(living.to_vec(), Box::new(order()))])
            }
            (NextStep::Point, Some(point)) if !living.is_empty() && !self.is_interrupted => {
                self.attempts += 1;
                let share = |at| point.share(at, living.len(), self.attempts);
                let assignments: Vec<(AgentId, Assignment)> =
                    living.iter().enumerate().map(|(at, id)| (*id, share(at))).collect();
                let (point, attempt) = (*point, self.attempts);
                let command = Command::Point(assignments.clone());
                self.running = Some(RunningPoint { point, attempt, assignments });
                command
            }
            _ => Command::Finish,
        })
    }
}

fn name(news: &News) -> &'static str {
    match news {
        News::TooFew(_) => "runs with too few agents",
        News::PlanFailed(_) => "plans failed",
        News::PointFinished(_) => "points finished",
        News::PointLost { why: Failure::Lost(_), .. } => "points lost with an agent",
        News::PointLost { why: Failure::Refused(_), .. } => "points refused",
        News::PointStopped => "points stopped before their start",
        News::AgentLost { why: Loss::Silent(_), .. } => "agents lost silently",
        News::AgentLost { why: Loss::Ended(_), .. } => "agents ended",
        News::AgentLost {
            why: Loss::Overdue { request: ControllerRequest::Prepare, .. }, ..
        } => "agents hung",
        News::AgentLost { why: Loss::Overdue { .. }, .. } => "agents overdue",
        News::AgentLost { why: Loss::UnexpectedMessage { .. }, .. } => "agents out of turn",
        News::AgentLost { .. } => "agents lost otherwise",
        _ => "other news",
    }
}

fn order() -> PlanOrder {
    PlanOrder {
        suite: "suite".to_owned(),
        profile: ProfileName::Quick,
        seed: 1,
        highest_ops_per_s: None,
        targets: Vec::new(),
        run_urls: Vec::new(),
        sources: Vec::new(),
        file_set: None,
        files: Vec::new(),
        load_file: None,
        learnt: None,
        password: None,
        user: (0, 0),
    }
}
