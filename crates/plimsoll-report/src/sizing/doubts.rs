//! Unknowns and refusals of a sizing, as text.

use plimsoll_model::limit::LimitKind;
use plimsoll_model::size::{LOAD_MAX_RATIO, Refusal, Unknown};
use plimsoll_model::units::{Nanos, grouped, percent, three_digits, whole_percent};

fn time(ns: f64) -> Nanos {
    Nanos(ns.max(0.0) as u64)
}

#[allow(clippy::too_many_lines, reason = "a table: one text for each doubt")]
pub(super) fn unknown(unknown: &Unknown) -> String {
    match unknown {
        Unknown::HigherLoads { highest_ops_per_s } => format!(
            "A lock, a pool or a limit in software that shows only above {} ops/s: no use of \
             hardware tells of it before",
            grouped(*highest_ops_per_s)
        ),
        Unknown::HeldBack { limit, at_ops_per_s } => format!(
            "{} limited the server at {} ops/s, and not its hardware: more of that may bring \
             nothing, and every peak is *at most*",
            what(*limit),
            grouped(*at_ops_per_s)
        ),
        Unknown::Waits { response_ns, explained_ns } => format!(
            "What an op waits for: at the lowest load it takes {}, and its processors and disks \
             explain {} of that. Unless the rest is the network's, a pool or a lock may set the \
             limit, so that every peak is *at most*",
            time(*response_ns),
            time(*explained_ns)
        ),
        Unknown::Queue { from_ns, to_ns, explained_ns } => format!(
            "What ops queue for: the mean response time rises from {} to {}, and the use of the \
             processors explains {} of that. A lock or a pool may set the limit, so that every \
             peak is *at most*",
            time(*from_ns),
            time(*to_ns),
            time(*explained_ns)
        ),
        Unknown::Asleep { busy_ratio } => format!(
            "What an op costs a server that no longer sleeps between ops: the processors were {} \
             busy at most, and it may cost half, so that they may carry about twice as much. \
             Measure up to the peak and name that run too: plimsoll run … --peak auto",
            whole_percent(*busy_ratio)
        ),
        Unknown::FewThreads { share_ratio, cores: count } => format!(
            "What {} carries: one thread did {} of the server's work, and a thread uses one \
             processor at a time. Let the server have more threads or processes (nginx: \
             worker_processes) and measure again",
            cores(*count),
            whole_percent(share_ratio.min(1.0))
        ),
        Unknown::LittleUsed { busy_ratio } => format!(
            "Where the processors are full: the largest size was {} busy; measure a higher load",
            percent(*busy_ratio)
        ),
        Unknown::ProcessorsNotWatched => "How many processors: nobody watched the server's; \
            measure with --monitor, for example --monitor ssh://root@server"
            .to_owned(),
        Unknown::MoreProcessors { measured } => format!(
            "What further processors bring: only {} was measured, and each is taken to bring its \
             share; measure the server with another number of processors and name both runs",
            cores(*measured)
        ),
        Unknown::FewLoads { loads } => format!(
            "How the processor time of an op changes with the load: that takes three loads at least, \
             and {loads} differ"
        ),
        Unknown::DiskIdle { busy_ratio } => format!(
            "What a disk can do: it was {} busy; state it with --disk-iops and --disk-rate",
            percent(*busy_ratio)
        ),
        Unknown::AdapterSpeed => {
            "What an adapter can do: its link does not say; state it with --adapter-rate".to_owned()
        }
        Unknown::SharedHost => {
            "What an adapter can do: server and generator share a host, so that \
            bytes are those of the loopback interface; state it with --adapter-rate"
                .to_owned()
        }
        Unknown::AccessPattern => {
            "How many disks that memory needs: no load point has a predicted miss ratio. It needs \
             web-static or an NFS suite, and a monitored server"
                .to_owned()
        }
        Unknown::Errors => "How many ops fail: no law predicts errors".to_owned(),
        Unknown::Streams => {
            "Times within replies, and how many ops are good ones: the law is one of \
             response times"
                .to_owned()
        }
        Unknown::InvalidRun { bundle, rule } => {
            format!("Whether {bundle} can be trusted: the run is not valid ({rule})")
        }
        Unknown::Throttled { cores } => format!(
            "Response times near the quota: it kept the server from {} cores at times, and ops \
             that meet a used-up quota wait for its next period",
            three_digits(*cores)
        ),
    }
}

pub(super) fn refusal(refusal: &Refusal) -> String {
    match refusal {
        Refusal::NothingMeasured => {
            "no load point is valid and has throughput; see plimsoll analyse".to_owned()
        }
        Refusal::Different { first, other } => {
            format!("the runs are of different suites, {first} and {other}: an op is not the same")
        }
        Refusal::TooFar { highest_ops_per_s } => format!(
            "the load is more than {LOAD_MAX_RATIO} x the highest one measured, {} ops/s; measure \
             a higher load, or the server in two sizes (other processors or another quota) and \
             name both runs",
            grouped(*highest_ops_per_s)
        ),
        Refusal::HeldBack { limit, at_ops_per_s } => format!(
            "{} limited the server at {} ops/s; no hardware extends that",
            what(*limit),
            grouped(*at_ops_per_s)
        ),
        Refusal::TooSlow { figure, idle_ns, below_ns } => format!(
            "{} is {} without any queue, and the limit is {}: no size of server keeps it",
            figure.as_str(),
            time(*idle_ns),
            time(*below_ns)
        ),
        Refusal::NoNumber => "each further processor costs every op more than it brings before \
            the load is reached: no number of processors carries it"
            .to_owned(),
    }
}

fn what(limit: LimitKind) -> &'static str {
    match limit {
        LimitKind::Lock => "A lock",
        LimitKind::Pool => "A pool of threads or connections",
        LimitKind::Batch => "The batch of the server",
        LimitKind::KvCache => "Its KV cache",
        LimitKind::Gpu => "A GPU",
        _ => "Something that is not known",
    }
}

fn cores(count: f64) -> String {
    match count {
        1.0 => "1 processor".to_owned(),
        count if count < 1.0 => format!("{} of a processor", whole_percent(count)),
        count => format!("a server of {} processors", grouped(count)),
    }
}
