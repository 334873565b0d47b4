//! Is what was written down whole and right?

use plimsoll_model::finding::{CountRecord, Progress, Rule};

use super::{Text, advised, count};

pub(super) fn text(rule: &Rule) -> Option<Text> {
    Some(match rule {
        Rule::Panic { message } => advised(
            format!("a worker of the generator panicked: {message}"),
            "this is a bug, please report it",
        ),
        Rule::EndedEarly { cause } => advised(
            format!("the point was ended before its time: {cause}"),
            "mend that and run the point again",
        ),
        Rule::Intervals { files } => advised(
            format!("the interval logs of {files} are missing, so its times cannot be checked"),
            "restore them, or run the point again",
        ),
        Rule::NothingDone { progress: Progress::NoneDue } => {
            advised("no op was due in the window", "measure longer, or ask for more load")
        }
        Rule::NothingDone { progress: Progress::NoReply } => {
            advised("no op had a reply in the window", "see whether the server answers at all")
        }
        Rule::NothingDone { progress: Progress::AllFailed } => {
            advised("no op finished without error in the window", "see the error samples")
        }
        Rule::Corrupt { replies } => Text::from(format!(
            "{} replies contained other data than was written or requested (limit 0)",
            count(*replies)
        ))
        .advise(
            "where a file set is read, remove it with plimsoll clean and prepare it again with the \
             run's seed, else look for the fault in the server",
        ),
        Rule::Counts { record, recorded_ops, total_ops, without_reply_ops } => {
            let [recorded, totals, without_reply] =
                [*recorded_ops, *total_ops, *without_reply_ops].map(count);
            advised(
                match record {
                    CountRecord::IntervalLogs => format!(
                        "the interval logs hold {recorded} ops and the totals {totals}, \
                         {without_reply} of them without a reply"
                    ),
                    CountRecord::Seconds => format!(
                        "the seconds of the window hold {recorded} ops done and the totals {totals}"
                    ),
                },
                "the bundle is damaged or this is a bug: run the point again and report it",
            )
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    const SENTENCES: &[(&str, &str)] = &[
        (
            r#"{"kind": "panic", "message": "index out of bounds"}"#,
            "a worker of the generator panicked: index out of bounds; this is a bug, please \
             report it",
        ),
        (
            r#"{"kind": "ended_early", "cause": "agent a was lost"}"#,
            "the point was ended before its time: agent a was lost; mend that and run the point \
             again",
        ),
        (
            r#"{"kind": "intervals", "files": "point 1"}"#,
            "the interval logs of point 1 are missing, so its times cannot be checked; restore \
             them, or run the point again",
        ),
        (
            r#"{"kind": "nothing_done", "progress": "none_due"}"#,
            "no op was due in the window; measure longer, or ask for more load",
        ),
        (
            r#"{"kind": "nothing_done", "progress": "no_reply"}"#,
            "no op had a reply in the window; see whether the server answers at all",
        ),
        (
            r#"{"kind": "nothing_done", "progress": "all_failed"}"#,
            "no op finished without error in the window; see the error samples",
        ),
        (
            r#"{"kind": "corrupt", "replies": 1200}"#,
            "1,200 replies contained other data than was written or requested (limit 0); where a \
             file set is read, remove it with plimsoll clean and prepare it again with the run's \
             seed, else look for the fault in the server",
        ),
        (
            r#"{"kind": "counts", "record": "interval_logs", "recorded_ops": 9990,
               "total_ops": 10000, "without_reply_ops": 4}"#,
            "the interval logs hold 9,990 ops and the totals 10,000, 4 of them without a reply; \
             the bundle is damaged or this is a bug: run the point again and report it",
        ),
        (
            r#"{"kind": "counts", "record": "seconds", "recorded_ops": 9990, "total_ops": 10000,
               "without_reply_ops": 4}"#,
            "the seconds of the window hold 9,990 ops done and the totals 10,000; the bundle is \
             damaged or this is a bug: run the point again and report it",
        ),
    ];

    #[test]
    fn each_rule_has_its_sentence() {
        check(SENTENCES);
    }
}
