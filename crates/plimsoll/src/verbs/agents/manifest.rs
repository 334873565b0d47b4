//! `plimsoll agents manifest`: an Indexed Job of Kubernetes whose pods wait for runs.

use crate::cli::AgentsManifestArgs;

/// Words in braces are replaced.
const JOB: &str = include_str!("job.yaml");
/// User and group of the pods: any number but root's, for images name theirs, which Kubernetes
/// cannot tell from root.
const USER: u32 = 10_001;

/// The manifest, with how it is used.
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

    /// The values of YAML as plain as ours, each with its path. `-` begins an item of a list, of
    /// which each here has one.
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
}
