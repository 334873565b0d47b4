//! Servers of language models: the slots of the batch, the memory for tokens, GPUs. They report
//! these themselves, whoever monitors their host.

use plimsoll_model::event::ResourceUse;
use plimsoll_model::limit::{Evidence, Limit, LimitFacts};
use plimsoll_model::result::PointResult;

use super::cpu::SLOWER_MIN_RATIO;
use super::{FULL_MIN_RATIO, QUEUE_MIN, limit};
use crate::limit::monitored::Scene;

/// A batch that always has a request for a free slot is this full at all times. One whose size
/// follows from the speed of prefill goes up and down.
const PINNED_MIN_RATIO: f64 = 0.9;

/// A server's own figures, over the window.
struct Engine {
    running: f64,
    running_max: f64,
    waiting: f64,
    kv_cache: Option<f64>,
    preemptions: Option<f64>,
}

impl Engine {
    fn from_point(point: &PointResult) -> Option<Self> {
        let uses = |column| model_uses(&point.resources, column);
        let sum = |column: &'static str, of: fn(&ResourceUse) -> f64| {
            uses(column).map(of).reduce(|all, one| all + one)
        };
        let engines = uses("kv_cache").count() as f64;
        Some(Self {
            running: sum("running", |it| it.mean)?,
            running_max: sum("running", |it| it.max)?,
            waiting: sum("waiting", |it| it.mean)?,
            kv_cache: sum("kv_cache", |it| it.mean).map(|all| all / engines),
            preemptions: sum("preemptions", |it| it.mean),
        })
    }

    /// There is no memory for one more request like the running ones.
    fn has_no_room(&self) -> bool {
        let room_for_one = self.running / (self.running + 1.0);
        self.running >= 1.0
            && self.kv_cache.is_some_and(|used| used > room_for_one.min(FULL_MIN_RATIO))
    }
}

/// Uses of a column of `model`, for each server that reports it; from the first source that does.
pub(crate) fn model_uses<'p>(
    resources: &'p [ResourceUse],
    column: &'static str,
) -> impl Iterator<Item = &'p ResourceUse> {
    let is_it = move |resource: &&ResourceUse| {
        let rest = resource.name.strip_prefix("model.");
        rest.is_some_and(|rest| rest.rsplit('.').next() == Some(column))
    };
    let source = resources.iter().find(&is_it).map(|resource| &resource.source);
    let of_source = move |resource: &&ResourceUse| Some(&resource.source) == source;
    resources.iter().filter(is_it).filter(of_source)
}

/// The most requests that were ever running while others waited, at any load.
pub(in crate::limit) fn most_running(points: &[&PointResult]) -> Option<f64> {
    let engines = points.iter().filter_map(|point| Engine::from_point(point));
    engines.filter(|it| it.waiting >= QUEUE_MIN).map(|it| it.running_max).reduce(f64::max)
}

fn waits(scene: &Scene<'_>) -> bool {
    scene.rose(|observed| Engine::from_point(observed.point).map(|it| it.waiting), QUEUE_MIN)
}

/// All slots of the batch are taken while there is memory for the tokens of more.
pub(super) fn batch(scene: &Scene<'_>) -> Option<Limit> {
    let Engine { running, waiting, .. } =
        Engine::from_point(scene.now.point).filter(|now| !now.has_no_room())?;
    let running_max = scene.most_running?;
    (running >= PINNED_MIN_RATIO * running_max && waits(scene)).then(|| {
        let evidence = [
            evidence(scene, "model.running", Some(running_max)),
            evidence(scene, "model.waiting", None),
            evidence(scene, "model.kv_cache", Some(1.0)),
        ];
        limit(LimitFacts::Batch { running, running_max, waiting }, evidence)
    })
}

/// Requests wait, or lose their slot, for want of memory for their tokens.
pub(super) fn kv_cache(scene: &Scene<'_>) -> Option<Limit> {
    let now = Engine::from_point(scene.now.point).filter(Engine::has_no_room)?;
    let preempts =
        scene.rose(|observed| Engine::from_point(observed.point)?.preemptions, f64::MIN_POSITIVE);
    (preempts || waits(scene)).then(|| {
        let evidence = [
            evidence(scene, "model.kv_cache", Some(1.0)),
            evidence(scene, "model.waiting", None),
            evidence(scene, "model.preemptions", None),
            evidence(scene, "model.running", None),
        ];
        let facts = LimitFacts::KvCache {
            used_ratio: now.kv_cache.unwrap_or_default(),
            waiting: now.waiting,
            preempted_per_s: now.preemptions,
        };
        limit(facts, evidence)
    })
}

/// A GPU that is always busy while requests wait or take longer than at low load.
pub(super) fn gpu(scene: &Scene<'_>) -> Option<Limit> {
    let uses = || scene.now.point.resources.iter();
    let busiest = uses().filter_map(|it| Some((it.key("gpu", "busy")?.to_owned(), it)));
    let (gpu, busy) = busiest.max_by(|(_, a), (_, b)| a.mean.total_cmp(&b.mean))?;
    let slower = scene.slower().is_some_and(|slower| slower >= SLOWER_MIN_RATIO);
    (busy.mean >= FULL_MIN_RATIO && (slower || waits(scene))).then(|| {
        let memory = format!("gpu.{gpu}.memory_busy");
        let of_it =
            |resource: &&ResourceUse| resource.source == busy.source && resource.name == memory;
        let facts = LimitFacts::Gpu {
            busy_ratio: busy.mean,
            memory_busy_ratio: uses().find(of_it).map(|resource| resource.mean),
            gpu,
        };
        let evidence = [
            evidence(scene, &busy.name, Some(1.0)),
            evidence(scene, &memory, Some(1.0)),
            evidence(scene, "model.waiting", None),
        ];
        limit(facts, evidence)
    })
}

/// A figure wherever it was read, with its value at low load.
fn evidence(scene: &Scene<'_>, name: &str, ceiling: Option<f64>) -> Option<Evidence> {
    let find = |point: &PointResult| point.resources.iter().find(|it| it.name == name).cloned();
    let resource = find(scene.now.point)?;
    Some(Evidence {
        value: resource.mean,
        ceiling,
        low_load_value: scene.low.and_then(|low| find(low.point)).map(|low| low.mean),
        name: resource.name,
        unit: resource.unit,
    })
}
