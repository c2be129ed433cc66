// Package metrics tells a launch's status in Prometheus' form. Every value is
// computed from a serve.Status when it is asked for: nothing is counted twice,
// and nothing can disagree with `sglaunch status`.
//
// Names begin with sglaunch_, units are seconds and bytes, counters end in
// _total. What is not known is absent. Counters begin anew with the launch, and
// some with its supervisor, as Prometheus expects of a process.
//
// docs/metrics.md is written from the table in table.go; the dashboard in
// examples/grafana may use no other names. Tests hold both against it.
package metrics
