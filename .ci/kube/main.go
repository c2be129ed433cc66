// Command kube reads Kubernetes manifests as the API server would: every field
// known and of its type, nothing twice; and what else an example of ours must
// hold, such as probes that ask a port which the container has.
//
//	go run . FILE...
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	bad := false
	for _, path := range os.Args[1:] {
		n, err := lint(path)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
			bad = true
			continue
		}
		fmt.Printf("%s: %d documents\n", path, n)
	}
	if bad || len(os.Args) < 2 {
		os.Exit(1)
	}
}

func lint(path string) (n int, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	documents := yamlutil.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for ; ; n++ {
		doc, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err == nil {
			err = check(doc)
		}
		if err != nil {
			return n, fmt.Errorf("document %d: %w", n+1, err)
		}
	}
}

// check decodes one document strictly and looks at its pods.
func check(doc []byte) error {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(doc, &kind); err != nil {
		return err
	}
	switch kind.APIVersion + " " + kind.Kind {
	case "v1 ConfigMap":
		return yaml.UnmarshalStrict(doc, new(corev1.ConfigMap))
	case "v1 Service":
		return yaml.UnmarshalStrict(doc, new(corev1.Service))
	case "apps/v1 Deployment":
		var d appsv1.Deployment
		if err := yaml.UnmarshalStrict(doc, &d); err != nil {
			return err
		}
		for name, value := range d.Spec.Selector.MatchLabels {
			if d.Spec.Template.Labels[name] != value {
				return fmt.Errorf("the selector wants %s=%s, which the pods do not have", name, value)
			}
		}
		return pods(d.Spec.Template.Spec)
	case "leaderworkerset.x-k8s.io/v1 LeaderWorkerSet":
		var s lwsv1.LeaderWorkerSet
		if err := yaml.UnmarshalStrict(doc, &s); err != nil {
			return err
		}
		t := s.Spec.LeaderWorkerTemplate
		if !slices.Contains(restartPolicies, t.RestartPolicy) {
			return fmt.Errorf("restartPolicy %q is none", t.RestartPolicy)
		}
		if t.LeaderTemplate == nil {
			return pods(t.WorkerTemplate.Spec)
		}
		return errors.Join(pods(t.LeaderTemplate.Spec), pods(t.WorkerTemplate.Spec))
	}
	return fmt.Errorf("%s %s is not known to this check", kind.APIVersion, kind.Kind)
}

// restartPolicies are the published ones; their type takes any word.
var restartPolicies = []lwsv1.RestartPolicyType{
	"", lwsv1.NoneRestartPolicy, lwsv1.RecreateGroupOnPodRestart,
}

// pods looks at what a schema cannot say: ports that probes name, volumes that
// mounts name.
func pods(spec corev1.PodSpec) error {
	var wrong []error
	for _, c := range spec.Containers {
		for _, p := range []*corev1.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
			if p == nil || p.HTTPGet == nil {
				continue
			}
			if !slices.ContainsFunc(c.Ports, func(port corev1.ContainerPort) bool {
				return port.Name == p.HTTPGet.Port.StrVal || port.ContainerPort == p.HTTPGet.Port.IntVal
			}) {
				wrong = append(wrong, fmt.Errorf("container %s: a probe asks port %s, which it does not have", c.Name, p.HTTPGet.Port.String()))
			}
		}
		for _, m := range c.VolumeMounts {
			if !slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
				wrong = append(wrong, fmt.Errorf("container %s: there is no volume %s", c.Name, m.Name))
			}
		}
	}
	return errors.Join(wrong...)
}
