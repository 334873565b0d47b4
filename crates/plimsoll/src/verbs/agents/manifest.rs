//! `plimsoll agents manifest`: an Indexed Job of Kubernetes whose pods wait for runs.

use clap::Args;
use plimsoll_fleet::launcher::spec::{self, AGENTS_MAX};

/// Names in braces are replaced.
const JOB: &str = include_str!("job.yaml");
/// User and group of the pods: any number but root's. Images give user names, which Kubernetes
/// cannot distinguish from root.
const USER: u32 = 10_001;
/// What packaging/Containerfile makes, with a tag of its own for each release.
const IMAGE: &str = concat!("plimsoll:", env!("CARGO_PKG_VERSION"));
/// A pod's host name is that of the job with the pod's number: a label of 63 characters at most.
const JOB_NAME_CHARS_MAX: usize = 58;

/// `plimsoll agents manifest`.
#[derive(Clone, Debug, Args)]
pub(crate) struct AgentsManifestArgs {
    /// How many pods, each of which is an agent
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(AGENTS_MAX)))]
    pub replicas: u32,
    /// Image with this release of plimsoll or, for --deploy, any that has a shell
    #[arg(long, value_name = "IMAGE", default_value = IMAGE, value_parser = parse_image)]
    pub image: String,
    /// Name of the job
    #[arg(long, value_name = "NAME", default_value = "plimsoll", value_parser = parse_job_name)]
    pub name: String,
    /// Namespace of the job [default: left to kubectl]
    #[arg(long, value_name = "NS", value_parser = parse_namespace)]
    pub namespace: Option<String>,
    /// Cores that each pod requests
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub cpus: u32,
}

fn parse_image(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
    let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    match begins && text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err("no image is called that; write for example registry/plimsoll:TAG".to_owned()),
    }
}

fn parse_namespace(text: &str) -> Result<String, String> {
    match spec::is_label(text) {
        true => Ok(text.to_owned()),
        false => Err("Kubernetes wants small letters, digits and -, 63 at most".to_owned()),
    }
}

fn parse_job_name(text: &str) -> Result<String, String> {
    match spec::is_label(text) && text.len() <= JOB_NAME_CHARS_MAX {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "Kubernetes wants small letters, digits and -, here {JOB_NAME_CHARS_MAX} at most"
        )),
    }
}

/// The manifest with instructions.
pub(super) fn text(args: &AgentsManifestArgs) -> String {
    let of_namespace = |text: &dyn Fn(&str) -> String| args.namespace.as_deref().map(text);
    let values = [
        ("{NAME}", Some(args.name.clone())),
        ("{NAMESPACE}", of_namespace(&|it| format!("\n  namespace: \"{it}\""))),
        ("{OF_NAMESPACE}", of_namespace(&|it| format!(" -n {it}"))),
        ("{PODS}", of_namespace(&|it| format!("{it}/"))),
        ("{REPLICAS}", Some(args.replicas.to_string())),
        ("{IMAGE}", Some(args.image.clone())),
        ("{CPUS}", Some(args.cpus.to_string())),
        ("{USER}", Some(USER.to_string())),
    ];
    values
        .into_iter()
        .fold(JOB.to_owned(), |text, (word, value)| text.replace(word, &value.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn args() -> AgentsManifestArgs {
        AgentsManifestArgs {
            replicas: 3,
            image: "registry.example/plimsoll:1.2.3".to_owned(),
            name: "load".to_owned(),
            namespace: Some("bench".to_owned()),
            cpus: 4,
        }
    }

    /// The values of simple YAML, each with its path. `-` begins an item of a list; each list here
    /// has one.
    fn values(text: &str) -> BTreeMap<String, String> {
        let mut values = BTreeMap::new();
        let mut path: Vec<(usize, String)> = Vec::new();
        for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
            let item = line.replacen("- ", "  ", usize::from(line.trim_start().starts_with("- ")));
            let depth = item.len() - item.trim_start().len();
            assert_eq!(depth % 2, 0, "{line}");
            path.retain(|(of, _)| *of < depth);
            let (key, value) = item.trim().split_once(':').expect(line);
            path.push((depth, key.to_owned()));
            if !value.is_empty() {
                let keys: Vec<&str> = path.iter().map(|(_, key)| key.as_str()).collect();
                let old = values.insert(keys.join("."), value.trim().replace('"', ""));
                assert_eq!(old, None, "{line}");
            }
        }
        values
    }

    #[test]
    fn the_pods_of_the_job_wait_apart_from_each_other() {
        let values = values(&text(&args()));
        let pod = "spec.template.spec";
        for (path, value) in [
            ("apiVersion".to_owned(), "batch/v1"),
            ("kind".to_owned(), "Job"),
            ("metadata.name".to_owned(), "load"),
            ("metadata.namespace".to_owned(), "bench"),
            ("spec.completionMode".to_owned(), "Indexed"),
            ("spec.completions".to_owned(), "3"),
            ("spec.parallelism".to_owned(), "3"),
            (format!("{pod}.restartPolicy"), "OnFailure"),
            (format!("{pod}.terminationGracePeriodSeconds"), "1"),
            (format!("{pod}.topologySpreadConstraints.topologyKey"), "kubernetes.io/hostname"),
            (format!("{pod}.topologySpreadConstraints.labelSelector.matchLabels.job-name"), "load"),
            (format!("{pod}.securityContext.runAsNonRoot"), "true"),
            (format!("{pod}.containers.image"), "registry.example/plimsoll:1.2.3"),
            (format!("{pod}.containers.command"), "[sleep, infinity]"),
            (format!("{pod}.containers.resources.requests.cpu"), "4"),
            (format!("{pod}.containers.resources.limits.memory"), "2Gi"),
            (format!("{pod}.containers.securityContext.readOnlyRootFilesystem"), "true"),
        ] {
            assert_eq!(values.get(&path).map(String::as_str), Some(value), "{path}");
        }
    }

    #[test]
    fn the_manifest_says_how_its_pods_are_used() {
        let with = text(&args());
        assert!(with.contains("--agents k8s:bench/job-name=load\n"), "{with}");
        assert!(with.contains("kubectl delete job -n bench load\n"), "{with}");
        assert!(!with.contains(['{', '}']), "{with}");
        let without = text(&AgentsManifestArgs { namespace: None, ..args() });
        assert!(without.contains("--agents k8s:job-name=load\n"), "{without}");
        assert_eq!(values(&without).get("metadata.namespace"), None);
    }

    #[test]
    fn what_goes_into_a_manifest_cannot_change_its_meaning() {
        for image in ["plimsoll:1.2.3", "r.example:5000/a/b@sha256:0a"] {
            assert!(parse_image(image).is_ok(), "{image}");
        }
        for image in ["", "-x", "a b", "a\"b", "a\nb", "é"] {
            assert!(parse_image(image).is_err(), "{image}");
        }
        for (name, is_one) in [("load-1", true), ("Load", false), ("a\nb", false), ("", false)] {
            assert_eq!(
                (parse_job_name(name).is_ok(), parse_namespace(name).is_ok()),
                (is_one, is_one)
            );
        }
        assert!(
            parse_job_name(&"a".repeat(59)).is_err() && parse_namespace(&"a".repeat(59)).is_ok()
        );
    }
}
