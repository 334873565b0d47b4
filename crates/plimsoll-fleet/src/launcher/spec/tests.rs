use proptest::prelude::*;

use super::*;

fn read(values: &[&str]) -> Result<RequestedAgents, SpecError> {
    let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
    parse(&values, &|path| Err(io::Error::other(format!("{} is not read", path.display()))))
}

fn names(values: &[&str]) -> Vec<String> {
    read(values).unwrap().agents.into_iter().map(|agent| agent.name).collect()
}

fn of_file(text: &str) -> Result<RequestedAgents, SpecError> {
    parse(&["fleet.toml".to_owned()], &|_| Ok(text.to_owned()))
}

#[test]
fn every_launcher_is_read_and_named() {
    for (values, expected) in [
        (&["local"][..], &["local"][..]),
        (&["ssh://a"], &["ssh://a"]),
        (&["ssh://ann@a.example:2222"], &["ssh://ann@a.example:2222"]),
        (&["ssh://[fe80::1%eth0]:22"], &["ssh://[fe80::1%eth0]:22"]),
        (&["ssh://a*3"], &["ssh://a#1", "ssh://a#2", "ssh://a#3"]),
        (&["ssh://a:22*2"], &["ssh://a:22#1", "ssh://a:22#2"]),
        (&["ssh://a", "ssh://b", "ssh://a"], &["ssh://a#1", "ssh://b", "ssh://a#2"]),
        (&["slurm:1"], &["slurm:1"]),
        (&["slurm:2"], &["slurm:2#1", "slurm:2#2"]),
        (&["exec:ip netns exec A"], &["exec:ip netns exec A"]),
        (&["exec:env", "exec:env"], &["exec:env#1", "exec:env#2"]),
        (&["exec:a 'b c'"], &["exec:a 'b c'"]),
    ] {
        assert_eq!(names(values), expected, "{values:?}");
    }
}

#[test]
fn commas_separate_only_before_a_launcher() {
    assert_eq!(
        names(&["ssh://a,ssh://b*2,local,slurm:1,exec:docker exec -e A=1,local x"]),
        [
            "ssh://a",
            "ssh://b#1",
            "ssh://b#2",
            "local",
            "slurm:1",
            "exec:docker exec -e A=1,local x"
        ]
    );
    let requested = read(&["local,k8s:bench/app in (a,b),local"]).unwrap();
    assert_eq!(requested.agents.len(), 1);
    assert_eq!(requested.pods[0].selector, "app in (a,b),local");
    let error = read(&["ssh://a,b"]).unwrap_err().to_string();
    assert!(error.contains("write ssh://a,ssh://b"), "{error}");
}

#[test]
fn a_namespace_is_not_the_domain_of_a_label() {
    for (value, namespace, selector) in [
        ("k8s:job-name=plimsoll", None, "job-name=plimsoll"),
        ("k8s:bench/job-name=plimsoll", Some("bench"), "job-name=plimsoll"),
        ("k8s:batch.kubernetes.io/job-name=p", None, "batch.kubernetes.io/job-name=p"),
        ("k8s:b/app.kubernetes.io/name=p", Some("b"), "app.kubernetes.io/name=p"),
    ] {
        let pods = &read(&[value]).unwrap().pods[0];
        assert_eq!((pods.namespace.as_deref(), pods.selector.as_str()), (namespace, selector));
    }
}

#[test]
fn what_names_no_agent_is_refused_with_what_to_write() {
    for (value, part) in [
        ("", "write ssh://[user@]host"),
        ("db", "names no launcher; write ssh://"),
        ("local,", "names no launcher"),
        ("http://a", "names no launcher"),
        ("ssh://", "no host"),
        ("ssh://a:0", "no host and port"),
        ("ssh://a:99999", "no host and port"),
        ("ssh://-oProxyCommand=x", "alias"),
        ("ssh://-a", "alias"),
        ("ssh://-l@a", "user's name"),
        ("ssh://a;b", "alias"),
        ("ssh://a/dir", "no path"),
        ("ssh://a*0", "\"0\" is no number of agents"),
        ("ssh://a*x", "\"x\" is no number of agents"),
        ("ssh://a*1025", "from 1 to 1024"),
        ("slurm:", "is no number of agents"),
        ("slurm:-1", "is no number of agents"),
        ("k8s:", "selects no pods"),
        ("k8s:bench/", "selects no pods"),
        ("exec:", "names no command"),
        ("exec:''", "names no command"),
        ("exec:a 'b", "the quote ' is not closed"),
        ("absent.toml", "absent.toml is not read"),
    ] {
        let error = read(&[value]).unwrap_err().to_string();
        assert!(error.contains(part), "{value}: {error}");
    }
    let error = read(&["slurm:1000", "ssh://a*25"]).unwrap_err();
    assert!(matches!(error, SpecError::TooMany), "{error}");
}

#[test]
fn a_password_is_refused_and_not_shown() {
    for value in ["ssh://ann:s3cret@a", "ssh://ann:s3cret@a*2", "ssh://ann:s3cret@a*x", "s3cret@a"]
    {
        let error = read(&[value]).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{value}: {error}");
    }
}

#[test]
fn a_file_says_more_of_each_agent() {
    let requested = of_file(
        "[[agent]]\nat = \"ssh://a*2\"\nprogram = \"/opt/plimsoll\"\noptions = [\"-i\", \"key\"]\n\
         cores = [2, 3]\nworkers = 2\nsources = [\"10.0.0.1\", \"::1\"]\n\
         targets = [1, \"http://10.0.0.9/\"]\n\
         [[agent]]\nat = \"exec:ip netns exec A,B\"\n\
         [[agent]]\nat = \"k8s:app=x\"\nworkers = 1\n",
    )
    .unwrap();
    let settings = Settings {
        program: Some("/opt/plimsoll".to_owned()),
        options: vec!["-i".to_owned(), "key".to_owned()],
        cores: vec![2, 3],
        workers: Some(2),
        sources: vec!["10.0.0.1".parse().unwrap(), "::1".parse().unwrap()],
        targets: vec![TargetChoice::Number(1), TargetChoice::Url("http://10.0.0.9/".to_owned())],
    };
    assert_eq!(requested.agents[0].name, "ssh://a#1");
    assert_eq!(requested.agents[1].settings, settings);
    assert_eq!(requested.agents[2].name, "exec:ip netns exec A,B");
    assert_eq!(requested.agents[2].settings, Settings::default());
    assert_eq!(requested.pods[0].settings.workers, Some(1));
}

#[test]
fn the_file_of_a_testbed_is_one_of_agents() {
    let text = "sponsor = \"a\"\ntester = \"b\"\nplace = \"c\"\nprice = \"EUR 1\"\n\
                price_file = \"d\"\nnotes = [\"e\"]\n[[system]]\nname = \"nas\"\n\
                [[agent]]\nat = \"local\"\nsegment = \"lan\"\n";
    assert_eq!(of_file(text).unwrap().agents[0].name, "local");
}

#[test]
fn a_file_that_says_something_else_is_refused() {
    for (text, parts) in [
        ("", &["fleet.toml", "has no agent"][..]),
        ("[[agent]]\nat = \"local\"\nprogramm = \"x\"\n", &["line 3", "programm", "program"]),
        ("[[agents]]\nat = \"local\"\n", &["unknown field", "agents"]),
        ("[[agent]]\nworkers = 1\n", &["missing field `at`"]),
        ("[[agent]]\nat = \"local\"\nworkers = 0\n", &["agent 1", "workers = 0"]),
        ("[[agent]]\nat = \"local\"\nprogram = \"-x\"\n", &["agent 1", "is no path"]),
        ("[[agent]]\nat = \"local\"\ntargets = [0]\n", &["agent 1", "targets"]),
        ("[[agent]]\nat = \"local\"\nsources = [\"x\"]\n", &["line 3", "IP"]),
        (
            "[[agent]]\nat = \"local\"\n[[agent]]\nat = \"x\"\n",
            &["agent 2 of fleet.toml", "names no launcher"],
        ),
        ("[[agent]]\nat = \"other.toml\"\n", &["names no launcher"]),
    ] {
        let error = of_file(text).unwrap_err().to_string();
        for part in parts {
            assert!(error.contains(part), "{part:?} is not in:\n{error}");
        }
    }
}

#[test]
fn the_example_of_the_documentation_is_read() {
    let page = include_str!("../../../../../docs/fleet.md");
    let example = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let requested = of_file(example).unwrap();
    assert!(requested.agents.len() >= 3, "{requested:?}");
}

fn launchers() -> impl Strategy<Value = Launcher> {
    let ssh = (
        proptest::option::of("[a-z][a-z0-9._]{0,8}"),
        "[a-z][a-z0-9.-]{0,12}|fe80::[0-9a-f]{1,4}",
        proptest::option::of(1_u16..),
    );
    prop_oneof![
        Just(Launcher::Local),
        ssh.prop_map(|(user, host, port)| Launcher::Ssh { user, host, port }),
        Just(Launcher::Slurm { agents: 1 }),
        proptest::collection::vec("[^\0]{1,8}", 1..4)
            .prop_map(|command| Launcher::Exec { command }),
    ]
}

proptest! {
    #[test]
    fn a_name_is_read_back(launcher in launchers()) {
        let again = read(&[&launcher.to_string()]).unwrap();
        prop_assert_eq!(&again.agents[0].launcher, &launcher);
        prop_assert_eq!(&again.agents[0].name, &launcher.to_string());
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".*") {
        for scheme in ["", "ssh://", "slurm:", "k8s:", "exec:", "ssh://a,"] {
            let _ = read(&[&format!("{scheme}{text}")]);
        }
    }

    #[test]
    fn any_file_is_read_or_refused(text in ".*") {
        let _ = of_file(&text);
        let _ = of_file(&format!("[[agent]]\nat = {text:?}\n"));
    }
}
