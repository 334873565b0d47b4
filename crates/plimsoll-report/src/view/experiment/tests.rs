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
        system: None,
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
        over: Vec::new(),
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
        peak_unknown: Vec::new(),
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
            again: None,
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
        wording::effects(&additive()),
        [
            "Twice the processors bring 1.66 x (1.61–1.71).",
            "Raid 5 costs 4.8 % (3.6–6.0), compared with raid 0.",
        ]
    );
}

#[test]
fn effects_that_depend_on_each_other_are_said_at_each_level() {
    assert_eq!(
        wording::effects(&experiment()),
        [
            "Twice the processors bring 1.74 x (1.69–1.79) with raid 0, 1.59 x (1.55–1.63) with \
             raid 5.",
            "Raid 5 costs at most 1.2 % (or brings at most 0.4 %) with 1 processor, 9.1 % \
             (8.2–10.0) with 2 processors, compared with raid 0.",
        ]
    );
    let sentence = wording::interaction(&experiment()).unwrap();
    assert!(sentence.contains("F(1, 6) = 39.6, p < 0.001"), "{sentence}");
    let sentence = wording::interaction(&additive()).unwrap();
    assert!(sentence.contains("do not visibly depend") && sentence.contains("5.4 %"), "{sentence}");
}

#[test]
fn what_has_no_interval_says_why() {
    let mut it = additive();
    for (effect, basis) in it.effects.iter_mut().zip([Basis::SetOnce, Basis::TooFewRuns]) {
        (effect.interval, effect.claim, effect.basis) = (None, EffectClaim::RatioOnly, basis);
    }
    let [once, few] = wording::effects(&it).try_into().unwrap();
    assert!(
        once.starts_with("Twice the processors bring 1.66 x, without an interval: each"),
        "{once}"
    );
    assert!(few.contains("raid 0") && few.contains("that takes three repeats"), "{few}");
    it.effects[1].claim = EffectClaim::AtLeast;
    let sentence = wording::effects(&it).remove(1);
    assert!(
        sentence.contains("costs at most 4.8 %, since the server may carry more"),
        "{sentence}"
    );
}

#[test]
fn times_rise_and_fall() {
    let mut it = additive();
    it.response = Response { figure: RatioFigure::P99, load: Some(4_000.0) };
    let [sizes, raid] = wording::effects(&it).try_into().unwrap();
    assert_eq!(sizes, "Twice the processors raise p99 to 1.66 x (1.61–1.71).");
    let response = |it: &Experiment| wording::response(&comparison(it.clone()), it);
    assert_eq!(response(&it).unwrap(), "The effects are those on p99 at 4,000.");
    assert_eq!(response(&additive()), None);
    assert_eq!(raid, "Raid 5 lowers p99 by 4.8 % (3.6–6.0), compared with raid 0.");
}

/// The text for compression that leaves 19,448 of 112,610 requests a second was *bring 0.16 x*.
#[test]
fn a_level_that_makes_a_figure_smaller_lowers_it() {
    let mut it = additive();
    let mut effect_text = |figure, claim, ratio: f64, interval: Option<[f64; 2]>| {
        it.response = Response { figure, load: None };
        let old = it.effects[1].clone();
        it.effects[1] = Effect { claim, ratio: Some(ratio), interval, ..old };
        wording::effects(&it).remove(1).replace(", compared with raid 0.", "")
    };
    let differs = EffectClaim::Differs;
    let large = effect_text(RatioFigure::Peak, differs, 0.16, Some([0.15, 0.17]));
    assert_eq!(large, "Raid 5 lowers the peak to 0.16 x (0.15–0.17)");
    let rate = effect_text(RatioFigure::AchievedOpsPerS, differs, 0.0123, Some([0.01, 0.02]));
    assert_eq!(rate, "Raid 5 lowers throughput to 0.01 x (0.01–0.02)");
    let few = effect_text(RatioFigure::Peak, EffectClaim::RatioOnly, 0.9, None);
    assert!(few.starts_with("Raid 5 lowers the peak to 0.900 x, without an interval"), "{few}");
    let bound = effect_text(RatioFigure::Peak, EffectClaim::AtMost, 0.252, None);
    assert!(bound.starts_with("Raid 5 lowers the peak to at most 0.252 x, since"), "{bound}");
    let faster = effect_text(RatioFigure::P99, differs, 0.4, Some([0.39, 0.41]));
    assert_eq!(faster, "Raid 5 lowers p99 to 0.40 x (0.39–0.41)");
    let slower = effect_text(RatioFigure::P99, differs, 3.1, Some([3.0, 3.2]));
    assert_eq!(slower, "Raid 5 raises p99 to 3.10 x (3.00–3.20)");
    let more = effect_text(RatioFigure::Peak, differs, 2.4, Some([2.3, 2.5]));
    assert_eq!(more, "Raid 5 brings 2.40 x (2.30–2.50)");
}

/// Where *2 processors, raid 5* has no run, the effect of the processors is one with raid 0.
#[test]
fn a_missing_combination_comes_first_and_an_effect_names_those_that_it_is_of() {
    let mut it = additive();
    it.cells[3].mean = None;
    it.effects[0].over = vec![vec![AtLevel { factor: 1, level: 0 }]];
    let all = comparison(it.clone());
    let sentences = ExperimentView::new(&all, &it).sentences;
    assert_eq!(
        sentences[..2],
        [
            "Missing: no run of 2 processors, raid 5 has the figure. What follows leaves it out.",
            "Twice the processors bring 1.66 x (1.61–1.71) with raid 0.",
        ]
    );
    let level = |level| vec![AtLevel { factor: 0, level }];
    it.effects[1].over = vec![level(0), level(1)];
    it.cells[2].mean = None;
    let sentences = ExperimentView::new(&all, &it).sentences;
    assert!(
        sentences[0].contains("2 processors, raid 0; 2 processors, raid 5 has the"),
        "{sentences:?}"
    );
    let average = "(3.6–6.0) on average with 1 processor; and with 2 processors, compared";
    assert!(sentences[2].contains(average), "{sentences:?}");
}

#[test]
fn a_peak_that_no_run_shows_is_said_before_the_effects_on_another_figure() {
    let mut it = additive();
    it.response = Response { figure: RatioFigure::AchievedOpsPerS, load: Some(32.0) };
    it.peak_unknown = vec![1];
    let all = comparison(it.clone());
    let expected = "The peak of 1 processor, raid 5 is not known. The effects are those on throughput \
                at 32.";
    assert_eq!(ExperimentView::new(&all, &it).sentences[0], expected);
    it.peak_unknown = vec![0, 1];
    let several = wording::response(&all, &it).unwrap();
    assert!(several.starts_with("The peaks of 1 processor, raid 0; 1 processor, raid 5 are"));
    it.response = Response::default();
    let none = wording::response(&all, &it).unwrap();
    assert!(none.ends_with("are not known."), "{none}");
}

#[test]
fn servers_are_called_by_their_software() {
    let mut it = of_one_factor();
    let names = ["nginx 1.22.1", "Caddy 2.6.2"];
    for (level, name) in it.factors[0].levels.iter_mut().zip(names) {
        (level.value, level.system) = (None, Some(name.to_owned()));
    }
    it.effects[0] = effect(0, &[], 0.23, [0.22, 0.24]);
    let mut all = comparison(it);
    for (group, name) in all.groups.iter_mut().zip(names) {
        (group.label, group.system) = (format!("http://{name}/"), name.to_owned());
    }
    let text = comparison_text(&all);
    assert!(text.starts_with("Caddy 2.6.2 compared with nginx 1.22.1 ("), "{text}");
    let expected = "Caddy 2.6.2 lowers the peak to 0.23 x (0.22–0.24), compared with nginx 1.22.1.";
    assert!(text.contains(expected), "{text}");
    assert!(!comparison_html(&all).unwrap().contains("http:"), "labels are for files");
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
        for expected in
            ["Twice the processors bring", "by an interval that holds", "repeat 2", "degraded"]
        {
            assert!(shown.contains(expected), "{expected}: {shown}");
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
    let results = it.experiment.as_mut().unwrap();
    results.factors[0].set = Setting::ByHand;
    assert!(comparison_html(&it).unwrap().contains("What a person sets differs"));
}
