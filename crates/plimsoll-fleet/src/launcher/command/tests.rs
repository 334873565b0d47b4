use super::super::spec;
use super::*;

fn spec(value: &str) -> AgentSpec {
    let nothing = |_: &Path| Err(std::io::Error::other("no file"));
    spec::parse(&[value.to_owned()], &nothing).unwrap().agents.remove(0)
}

fn query(value: &str) -> PodQuery {
    let nothing = |_: &Path| Err(std::io::Error::other("no file"));
    spec::parse(&[value.to_owned()], &nothing).unwrap().pods.remove(0)
}

/// As a person would type it.
fn typed(command: &LaunchCommand) -> String {
    let tokens: Vec<String> = std::iter::once(&command.program)
        .chain(&command.arguments)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    command_line::join(&tokens)
}

fn agent(spec: &AgentSpec) -> String {
    typed(&LaunchCommand::agent(spec, Path::new("/own/plimsoll")))
}

const FIRM: &str = "ssh -o BatchMode=yes -o ControlMaster=no -o ControlPath=none \
                    -o RequestTTY=no -o EscapeChar=none -o RemoteCommand=none \
                    -o ClearAllForwardings=yes -o PermitLocalCommand=no";
const LIVELY: &str = "-o ServerAliveInterval=2 -o ServerAliveCountMax=3 -o ConnectTimeout=10";

#[test]
fn every_launcher_has_its_command() {
    for (value, expected) in [
        ("local", "/own/plimsoll agent".to_owned()),
        ("exec:ip netns exec A", "ip netns exec A /own/plimsoll agent".to_owned()),
        ("slurm:4", "srun -N1 -n1 -u -Q -X --exact plimsoll agent".to_owned()),
        ("ssh://a", format!("{FIRM} {LIVELY} -- a 'exec plimsoll agent'")),
        (
            "ssh://ann@[::1]:2222*2",
            format!("{FIRM} {LIVELY} -p 2222 -l ann -- ::1 'exec plimsoll agent'"),
        ),
    ] {
        assert_eq!(agent(&spec(value)), expected, "{value}");
    }
}

#[test]
fn a_file_can_name_program_and_options() {
    let with = |value: &str, program: &str, option: &str| {
        let mut spec = spec(value);
        spec.settings.program = Some(program.to_owned());
        spec.settings.options = vec![option.to_owned()];
        agent(&spec)
    };
    assert_eq!(with("exec:env", "/opt/p", "-x"), "env /opt/p agent");
    assert_eq!(with("local", "/opt/p", "-x"), "/opt/p agent");
    assert_eq!(
        with("slurm:1", "/opt/p", "-pfast"),
        "srun -N1 -n1 -u -Q -X --exact -pfast /opt/p agent"
    );
    for (program, there) in [
        ("/opt/a b/p", r"exec '\''/opt/a b/p'\'' agent"),
        ("~/p", "exec ~/p agent"),
        ("~/a b", r"exec ~/'\''a b'\'' agent"),
        ("$HOME/p", r"exec '\''$HOME/p'\'' agent"),
    ] {
        assert_eq!(with("ssh://a", program, "-4"), format!("{FIRM} -4 {LIVELY} -- a '{there}'"));
    }
}

#[test]
fn a_script_runs_where_the_agent_would() {
    let script = |value: &str| typed(&LaunchCommand::script(&spec(value), "echo 'a b'"));
    assert_eq!(script("local"), r"sh -c 'echo '\''a b'\'''");
    assert_eq!(script("exec:env A=1"), r"env A=1 sh -c 'echo '\''a b'\'''");
    let by_ssh = LaunchCommand::script(&spec("ssh://a"), "echo 'a b'");
    let there = by_ssh.arguments.last().unwrap().to_str().unwrap();
    assert_eq!(command_line::split(there).unwrap(), ["exec", "sh", "-c", "echo 'a b'"]);
}

#[test]
fn each_pod_that_runs_is_an_agent() {
    let mut query = query("k8s:bench/job-name=plimsoll");
    query.settings.options = ["--context=c", "-c", "load"].map(str::to_owned).to_vec();
    assert!(
        typed(&query.command()).starts_with(
            "kubectl get pods --namespace=bench --context=c --selector=job-name=plimsoll \
             '-o=jsonpath={range .items[*]}{.metadata.name}{\"\\t\"}{.status.phase}"
        ),
        "{}",
        typed(&query.command())
    );
    let printed = "p-0\tRunning\t\np-1\tPending\t\np-2\tRunning\t2026-01-01T00:00:00Z\n\
                   p-3\tRunning\t\n";
    let agents = query.agents(printed).unwrap();
    let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(names, ["k8s:bench/p-0", "k8s:bench/p-3"]);
    assert_eq!(
        agent(&agents[0]),
        "kubectl exec -i --namespace=bench --context=c -c load p-0 -- plimsoll agent"
    );
}

#[test]
fn pods_that_do_not_run_are_named() {
    let query = query("k8s:app in (a,b)");
    let message = |printed: &str| query.agents(printed).unwrap_err().to_string();
    assert!(message("").contains("kubectl get pods -l 'app in (a,b)'"), "{}", message(""));
    let waiting = message("p-0\tPending\t\n");
    assert!(waiting.contains("none of 1 pods runs (p-0: Pending)"), "{waiting}");
}
