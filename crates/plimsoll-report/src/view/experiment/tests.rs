use plimsoll_model::comparison::experiment::{
    AtLevel, Best, BestClaim, Factor, Hook, HookEnd, HookFailure, Interaction, Law, Level,
    MissingWhy, Response, Setting,
};
use plimsoll_model::comparison::{Group, RatioFigure};
use plimsoll_model::shape::Scalability;

use super::*;
use crate::{comparison_html, comparison_markdown, comparison_text};

fn factor(name: &str, levels: [&str; 2], has_size: bool) -> Factor {
    let level = |name: &&str| Level {
        name: (*name).to_owned(),
        value: name.parse().ok().filter(|_| has_size),
    };
    let levels = levels.iter().map(level).collect();
    Factor { name: name.to_owned(), unit: None, levels, set: Setting::ByProgram }
}

fn effect(factor: usize, at: &[(usize, usize)], ratio: f64, interval: [f64; 2]) -> Effect {
    let [low, high] = interval;
    let claim = match low <= 1.0 && high >= 1.0 {
        true => EffectClaim::Within,
        false => EffectClaim::Differs,
    };
    Effect {
        factor,
        from: 0,
        to: 1,
        at: at.iter().map(|(factor, level)| AtLevel { factor: *factor, level: *level }).collect(),
        ratio: Some(ratio),
        interval: Some(interval),
        detectable: Some(1.016),
        efficiency: (factor == 0).then_some(ratio / 2.0),
        claim,
        basis: Basis::Residual,
    }
}

fn experiment() -> Experiment {
    let cell = |levels: [usize; 2], mean: f64| Cell {
        levels: levels.to_vec(),
        group: Some(0),
        runs: 3,
        mean: Some(mean),
        interval: Some([mean * 0.98, mean * 1.02]),
        ratio: Some(mean / 10_000.0),
        ..Cell::default()
    };
    Experiment {
        factors: vec![factor("processors", ["1", "2"], true), factor("raid", ["0", "5"], false)],
        response: Response::default(),
        blocks: 3,
        cells: vec![
            cell([0, 0], 10_000.0),
            cell([0, 1], 9_960.0),
            cell([1, 0], 17_400.0),
            cell([1, 1], 15_820.0),
        ],
        effects: vec![
            effect(0, &[], 1.66, [1.61, 1.71]),
            effect(1, &[], 0.952, [0.94, 0.964]),
            effect(0, &[(1, 0)], 1.74, [1.69, 1.79]),
            effect(0, &[(1, 1)], 1.588, [1.55, 1.63]),
            effect(1, &[(0, 0)], 0.996, [0.988, 1.004]),
            effect(1, &[(0, 1)], 0.909, [0.90, 0.918]),
        ],
        interaction: Some(Interaction {
            f: 39.6,
            degrees: [1.0, 6.0],
            p: 0.000_75,
            found: true,
            detectable: 1.03,
        }),
        residual: None,
        between_blocks: None,
        laws: Vec::new(),
        best: Some(Best {
            cell: 2,
            ratio: 1.74,
            interval: Some([1.68, 1.8]),
            claim: BestClaim::Better,
        }),
    }
}

/// Without the contrasts that only an interaction brings.
fn additive() -> Experiment {
    let mut it = experiment();
    it.effects.truncate(2);
    it.interaction = Some(Interaction {
        f: 0.76,
        degrees: [1.0, 6.0],
        p: 0.417,
        found: false,
        detectable: 1.054,
    });
    it
}

fn comparison(experiment: Experiment) -> Comparison {
    let group =
        |cell: &Cell| Group { label: cell_name(&experiment, &cell.levels), ..Group::default() };
    Comparison {
        suite: "web-static".to_owned(),
        profile: "quick".to_owned(),
        unit: "ops/s".to_owned(),
        paired: true,
        groups: experiment.cells.iter().map(group).collect(),
        experiment: Some(experiment),
        ..Comparison::default()
    }
}

#[test]
fn effects_are_said_as_a_person_would() {
    assert_eq!(
        words::effects(&additive()),
        [
            "Twice the processors bring 1.66 x (1.61–1.71).",
            "Raid 5 costs 4.8 % (3.6–6.0), compared with raid 0.",
        ]
    );
}

#[test]
fn effects_that_depend_on_each_other_are_said_at_each_level() {
    assert_eq!(
        words::effects(&experiment()),
        [
            "Twice the processors bring 1.74 x (1.69–1.79) with raid 0, 1.59 x (1.55–1.63) with \
             raid 5.",
            "Raid 5 costs at most 1.2 % (or brings at most 0.4 %) with 1 processor, 9.1 % \
             (8.2–10.0) with 2 processors, compared with raid 0.",
        ]
    );
    let said = words::interaction(&experiment()).unwrap();
    assert!(said.contains("F(1, 6) = 39.6, p < 0.001"), "{said}");
    let said = words::interaction(&additive()).unwrap();
    assert!(said.contains("do not visibly depend") && said.contains("5.4 %"), "{said}");
}

#[test]
fn what_has_no_interval_says_why() {
    let mut it = additive();
    for (effect, basis) in it.effects.iter_mut().zip([Basis::SetOnce, Basis::TooFewRuns]) {
        (effect.interval, effect.claim, effect.basis) = (None, EffectClaim::RatioOnly, basis);
    }
    let [once, few] = words::effects(&it).try_into().unwrap();
    assert!(
        once.starts_with("Twice the processors bring 1.66 x, without an interval: each"),
        "{once}"
    );
    assert!(few.contains("raid 0") && few.contains("that takes three repeats"), "{few}");
    it.effects[1].claim = EffectClaim::AtLeast;
    let said = words::effects(&it).remove(1);
    assert!(
        said.contains("brings at least 0.952 x, since the server would have carried more"),
        "{said}"
    );
}

#[test]
fn times_rise_and_fall() {
    let mut it = additive();
    it.response = Response { figure: RatioFigure::P99, load: Some(4_000.0) };
    let [sizes, raid] = words::effects(&it).try_into().unwrap();
    assert_eq!(sizes, "Twice the processors bring p99 to 1.66 x (1.61–1.71).");
    assert_eq!(words::response(&it).unwrap(), "The effects are those on p99 at 4,000.");
    assert_eq!(words::response(&additive()), None);
    assert_eq!(raid, "Raid 5 lowers p99 by 4.8 % (3.6–6.0), compared with raid 0.");
}

#[test]
fn the_page_the_text_and_the_markdown_hold_sentences_tables_and_what_is_missing() {
    let mut it = experiment();
    it.cells[3].missing = vec![Missing {
        block: 1,
        why: MissingWhy::Hook(HookFailure {
            factor: "raid".to_owned(),
            level: "5".to_owned(),
            hook: Hook::Verify,
            command: "get-raid <5>".to_owned(),
            end: HookEnd::Exit(3),
            output: "degraded".to_owned(),
        }),
    }];
    let it = comparison(it);
    let page = comparison_html(&it).unwrap();
    let shown = [page.clone(), comparison_text(&it), comparison_markdown(&it)];
    for shown in shown {
        for said in
            ["Twice the processors bring", "by an interval that holds", "repeat 2", "degraded"]
        {
            assert!(shown.contains(said), "{said}: {shown}");
        }
        assert!(shown.contains("web-static over processors and raid"), "{shown}");
        assert!(shown.contains("3 repeats of 4 combinations"), "{shown}");
    }
    assert!(page.contains("get-raid &lt;5&gt;") && page.contains("Peak, ops/s"), "{page}");
    assert!(page.contains("<details>") && page.matches("class=\"whisker s1\"").count() >= 4);
    assert!(page.contains("3, 1 missing"), "{page}");
}

#[test]
fn sizes_are_drawn_with_their_law() {
    let mut it = of_one_factor();
    let third = Cell { levels: vec![2], mean: None, ..it.cells[0].clone() };
    it.cells.push(third);
    let fit = Scalability {
        gamma: 10_000.0,
        alpha: 0.15,
        alpha_interval: [0.12, 0.17],
        beta: 0.0,
        beta_interval: [0.0, 0.01],
        measured_to: 2.0,
        past_peak: false,
    };
    it.laws = vec![Law { factor: 0, at: Vec::new(), one: 1.0, fit }];
    let page = comparison_html(&comparison(it)).unwrap();
    assert!(page.contains("curve dashed s1") && page.contains("class=\"guide\""), "{page}");
    assert!(page.contains("α = 0.150 (0.120–0.170), coherency β = 0 (0–0.0100)"), "{page}");
}

/// Of the first factor's levels alone, as `versus` and `scale` make them.
fn of_one_factor() -> Experiment {
    let mut it = additive();
    it.factors.truncate(1);
    it.cells.retain(|cell| cell.levels[1] == 0);
    it.cells.iter_mut().for_each(|cell| cell.levels.truncate(1));
    it.effects.truncate(1);
    (it.interaction, it.best) = (None, None);
    it
}

#[test]
fn two_combinations_stay_a_comparison_of_two_groups() {
    let sized = comparison_text(&comparison(of_one_factor()));
    assert!(sized.starts_with("web-static over processors"), "{sized}");
    assert!(sized.contains("\n  Twice the processors bring 1.66 x (1.61–1.71).\n"), "{sized}");
    let mut it = of_one_factor();
    it.factors[0].levels.iter_mut().for_each(|level| level.value = None);
    let mut it = comparison(it);
    let text = comparison_text(&it);
    assert!(text.starts_with("processors 2 compared with processors 1 (web-static"), "{text}");
    let page = comparison_html(&it).unwrap();
    assert!(page.contains("Plimsoll compare") && !page.contains(PAIRS), "{page}");
    let found = it.experiment.as_mut().unwrap();
    found.factors[0].set = Setting::ByHand;
    assert!(comparison_html(&it).unwrap().contains("What a person sets differs"));
}
