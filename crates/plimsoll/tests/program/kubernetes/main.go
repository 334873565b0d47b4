// Decodes the Job on standard input as an API server of Kubernetes does with
// --validate=strict: names of fields are compared letter by letter, unknown and doubled ones are
// refused. Prints the Job as Kubernetes understands it.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	batch "k8s.io/api/batch/v1"
	strict "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := decode(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func decode() error {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	content, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return err
	}
	var job batch.Job
	unknown, err := strict.UnmarshalStrict(content, &job)
	if err != nil {
		return err
	}
	if len(unknown) > 0 {
		return unknown[0]
	}
	if job.APIVersion != "batch/v1" || job.Kind != "Job" {
		return errors.New("not a Job of batch/v1")
	}
	return json.NewEncoder(os.Stdout).Encode(job)
}
