use plimsoll_model::target::TargetUrl;

use super::*;

fn specs(texts: &[&str]) -> Vec<TargetSpec> {
    texts.iter().map(|text| TargetSpec::parse(text).unwrap()).collect()
}

#[test]
fn targets_are_chosen_by_number_or_url() {
    let targets = specs(&["http://ann:pw@a/", "builtin:", "http://b/", "http://b/"]);
    let url = |text: &str| TargetChoice::Url(text.to_owned());
    for (choices, numbers) in [
        (vec![], &[][..]),
        (vec![TargetChoice::Number(4), TargetChoice::Number(1)], &[0, 3]),
        (vec![url("http://b/"), TargetChoice::Number(3)], &[2, 3]),
        (vec![url("http://ann@a/"), url("builtin:")], &[0, 1]),
    ] {
        assert_eq!(chosen(&choices, &targets).unwrap(), numbers, "{choices:?}");
    }
}

#[test]
fn a_target_that_the_run_has_not_is_refused_with_those_it_has() {
    let targets = specs(&["http://ann:pw@a/", "http://b/"]);
    for (choice, part) in [
        (TargetChoice::Number(3), "no target 3; "),
        (TargetChoice::Number(0), "no target 0; "),
        (TargetChoice::Url("http://ann:pw@c/".to_owned()), "no target http://ann@c/; "),
        (TargetChoice::Url("pw pw".to_owned()), "cannot be read; "),
    ] {
        let refused = chosen(&[choice], &targets).unwrap_err();
        assert!(refused.contains(part), "{refused}");
        assert!(refused.ends_with("its targets are 1 = http://ann@a/, 2 = http://b/"));
        assert!(!refused.contains("pw"), "{refused}");
    }
}

#[test]
fn a_target_that_no_agent_uses_is_refused() {
    let targets = specs(&["http://a/", "http://b/"]);
    refuse_unused(&[vec![0], vec![1]], &targets).unwrap();
    refuse_unused(&[vec![0], vec![]], &targets).unwrap();
    let refused = refuse_unused(&[vec![0], vec![0]], &targets).unwrap_err().to_string();
    assert!(refused.starts_with("no agent uses target 2 = http://b/: give it to"), "{refused}");
}

#[test]
fn loopback_and_sockets_of_this_host_are_out_of_reach_elsewhere() {
    let (spec, url) = (TargetSpec::Builtin, || TargetUrl::parse("http://a/").unwrap());
    let at = |ip: &str| ResolvedTarget::new(url(), (ip.parse::<IpAddr>().unwrap(), 80).into());
    let unix = ResolvedTarget { unix: Some("/run/a.sock".into()), ..at("127.0.0.1") };
    let check = |server: ServerEndpoint<'_>, refused: [Option<&str>; 2]| {
        assert_eq!(out_of_reach(&server, Distance::Here), None);
        for (distance, part) in [Distance::OwnNetwork, Distance::Elsewhere].iter().zip(refused) {
            let why = out_of_reach(&server, *distance);
            assert_eq!(why.is_some(), part.is_some(), "{why:?}");
            assert!(why.unwrap_or_default().contains(part.unwrap_or_default()));
        }
    };
    for loopback in ["127.0.0.1", "127.1.2.3", "::1"] {
        let ip = loopback.parse().unwrap();
        check(ServerEndpoint::Listens(&spec, ip), [Some("--listen-on ADDR"); 2]);
    }
    let mapped = at("::ffff:127.0.0.1");
    check(ServerEndpoint::Runs(&mapped), [Some("by an address that agents reach"); 2]);
    check(ServerEndpoint::Listens(&spec, "192.0.2.1".parse().unwrap()), [None; 2]);
    check(ServerEndpoint::Runs(&at("192.0.2.1")), [None; 2]);
    check(ServerEndpoint::Runs(&unix), [None, Some("agents of this host alone")]);
}

#[test]
fn an_agent_needs_to_reach_the_targets_that_it_uses() {
    let url = || TargetUrl::parse("http://a/").unwrap();
    let near = ResolvedTarget::new(url(), ([127, 0, 0, 1], 80).into());
    let far = ResolvedTarget::new(url(), ([192, 0, 2, 1], 80).into());
    let servers = [ServerEndpoint::Runs(&near), ServerEndpoint::Runs(&far)];
    let agent = |targets: &'static [usize]| [("ssh://x", Distance::Elsewhere, targets)].into_iter();
    refuse_out_of_reach(agent(&[1]), &servers).unwrap();
    for targets in [&[][..], &[0, 1]] {
        let refused = refuse_out_of_reach(agent(targets), &servers).unwrap_err().to_string();
        assert!(refused.starts_with("agent ssh://x: it does not reach http://a/"), "{refused}");
    }
}
