//! `plimsoll agents manifest`: an Indexed Job of Kubernetes whose pods wait for runs.

use crate::cli::AgentsManifestArgs;

/// User and group of the pods: any number but root's, for images name theirs, which Kubernetes
/// cannot tell from root.
const USER: u32 = 10_001;

/// The manifest, with how it is used.
pub(super) fn text(args: &AgentsManifestArgs) -> String {
    let AgentsManifestArgs { replicas, image, name, namespace, cpus } = args;
    let of_namespace = namespace.as_ref().map(|namespace| format!(" -n {namespace}"));
    let of_namespace = of_namespace.unwrap_or_default();
    let place = namespace.as_ref().map(|namespace| format!("\n  namespace: \"{namespace}\""));
    let place = place.unwrap_or_default();
    let pods = namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
    format!(
        r#"# Pods that wait for runs of Plimsoll.
# To start them:   plimsoll agents manifest … | kubectl apply -f -
# To try them:     plimsoll agents check k8s:{pods}job-name={name}
# To use them:     plimsoll run … --agents k8s:{pods}job-name={name}
# To remove them:  kubectl delete job{of_namespace} {name}
apiVersion: batch/v1
kind: Job
metadata:
  name: "{name}"{place}
  labels:
    app.kubernetes.io/name: plimsoll
    app.kubernetes.io/component: agent
spec:
  completionMode: Indexed
  completions: {replicas}
  parallelism: {replicas}
  template:
    metadata:
      labels:
        app.kubernetes.io/name: plimsoll
        app.kubernetes.io/component: agent
    spec:
      restartPolicy: OnFailure
      # The pods only sleep: nothing has to be put in order at their end.
      terminationGracePeriodSeconds: 1
      automountServiceAccountToken: false
      enableServiceLinks: false
      # Each on another node, as far as there are nodes; then a second one on each.
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: DoNotSchedule
          nodeTaintsPolicy: Honor
          labelSelector:
            matchLabels:
              job-name: "{name}"
      securityContext:
        runAsNonRoot: true
        runAsUser: {USER}
        runAsGroup: {USER}
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: agent
          image: "{image}"
          imagePullPolicy: IfNotPresent
          # A run starts `plimsoll agent` beside it, with kubectl exec.
          command: ["sleep", "infinity"]
          env:
            # Where --deploy puts the program.
            - name: XDG_CACHE_HOME
              value: /cache
          resources:
            requests:
              cpu: "{cpus}"
              memory: 512Mi
            # No limit of the CPU: a pod that is held back now and then looks like a slow server.
            limits:
              memory: 2Gi
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: ["ALL"]
          volumeMounts:
            - name: cache
              mountPath: /cache
      volumes:
        - name: cache
          emptyDir:
            sizeLimit: 1Gi
"#
    )
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
        let without = text(&AgentsManifestArgs { namespace: None, ..args() });
        assert!(without.contains("--agents k8s:job-name=load\n"), "{without}");
        assert_eq!(values(&without).get("metadata.namespace"), None);
    }
}
