use super::*;

fn shape(text: &str) -> LoadShape {
    LoadShape::parse(text, None).unwrap()
}

fn error(text: &str) -> String {
    LoadShape::parse(text, None).unwrap_err().to_string()
}

#[test]
fn a_shape_is_a_list_of_ramps_holds_and_pulses() {
    let shape = shape("ramp 0..500 in 1m, hold 5m, pulse 3x for 10s, hold 5m, ramp to 1k in 30s");
    let phases: Vec<_> =
        shape.phases.iter().map(|it| (&it.name[..], it.from, it.to, it.mean)).collect();
    assert_eq!(
        phases,
        [
            ("ramp 0..500", 0.0, 500.0, 250.0),
            ("hold 500", 500.0, 500.0, 500.0),
            ("pulse 1,500", 1_500.0, 1_500.0, 1_500.0),
            ("hold 500", 500.0, 500.0, 500.0),
            ("ramp 500..1,000", 500.0, 1_000.0, 750.0),
        ]
    );
    assert_eq!(shape.length(), Nanos::from_secs(700));
    assert_eq!((shape.max(), shape.first_load()), (1_500.0, 0.0));
}

#[test]
fn a_load_may_be_given_apart() {
    let shape = LoadShape::parse("hold 10s, pulse 2x for 2s, hold 10s", Some(40.0)).unwrap();
    assert_eq!(shape.phases.iter().map(|it| it.mean).collect::<Vec<_>>(), [40.0, 80.0, 40.0]);
    assert!(error("hold 10s").contains("no load before"));
}

#[test]
fn a_shape_that_falls_below_zero_or_never_ends_is_refused_with_its_piece() {
    let below = error("hold 5 for 10s, ramp 5..-1 in 10s");
    assert!(below.contains("piece 2") && below.contains("below zero"), "{below}");
    for text in ["hold 5 for 10s, hold", "ramp 0..5", "pulse 3"] {
        assert!(error(text).contains("never ends"), "{text}: {}", error(text));
    }
    assert!(error("hold 5 for 25h").contains("24 h") || error("hold 5 for 25h").contains("86400s"));
    assert!(error("hold 0 for 5s").contains("no load"));
    assert!(error("climb 3").contains("a ramp, a hold or a pulse"));
    assert!(error("hold 5 for 500ms").contains("too short"));
    assert!(error("hold x for 5s").contains("no load"));
    assert!(error(&vec!["hold 1 for 1s"; 61].join(", ")).contains("61 pieces"));
}

#[test]
fn points_of_a_file_are_joined_by_lines_and_two_at_one_instant_are_a_jump() {
    let shape =
        LoadShape::from_points("s.csv", "seconds,load\n0,10\n10,10\n10,40\n20,0\n").unwrap();
    let phases: Vec<_> = shape.phases.iter().map(|it| (it.kind, it.from, it.to)).collect();
    assert_eq!(phases, [(PhaseKind::Hold, 10.0, 10.0), (PhaseKind::Ramp, 40.0, 0.0)]);
    let wrong = |text: &str| LoadShape::from_points("s.csv", text).unwrap_err().to_string();
    assert!(wrong("0,10\n5,10").starts_with("s.csv:1: the first line"));
    assert!(wrong("seconds,load\n0,10\n9,-1").starts_with("s.csv:3: the load falls below zero"));
    assert!(wrong("seconds,load\n0,10\n9,1\n8,1").starts_with("s.csv:4: 8 comes after"));
    assert!(wrong("seconds,load\n0,10").contains("never ends"));
    assert!(wrong("seconds,load\n0,ten").contains("not two numbers"));
    assert!(wrong("").contains("names the columns"));
}

#[test]
fn a_log_is_played_at_its_rates_in_the_time_given_and_cut_into_parts() {
    let mut text = "seconds,rate_per_s\n".to_owned();
    (0..=1_440).for_each(|minute| text.push_str(&format!("{},{}\n", minute * 60, minute % 7)));
    let shape = LoadShape::from_log("rate.csv", &text, Some(Nanos::from_secs(600))).unwrap();
    assert_eq!(shape.phases.len(), 24);
    assert!(shape.length().0.abs_diff(Nanos::from_secs(600).0) < 2_000, "{:?}", shape.length());
    assert_eq!(shape.max(), 6.0);
    assert!(shape.text.contains("86400 s played in"), "{}", shape.text);
    assert_eq!(shape.phases[23].end(), shape.length());
}

#[test]
fn a_user_is_there_while_the_load_is_above_its_number() {
    let shape = shape("ramp 0..10 in 10s, hold 10s, ramp to 0 in 10s, hold 3 for 5s");
    let from = |client, seconds| shape.next_presence(client, Nanos::from_secs(seconds));
    let at = |seconds: u64, after: u64| Some(Nanos(Nanos::from_secs(seconds).0 + after));
    assert_eq!(from(0, 0), at(0, 1));
    assert_eq!(from(4, 0), at(4, 1));
    assert_eq!(from(4, 12), at(12, 0));
    assert_eq!(from(2, 29), at(30, 0), "it comes back");
    assert_eq!((from(4, 27), from(10, 0)), (None, None));
}
