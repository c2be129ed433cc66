package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"sglaunch/internal/serve"
)

// Handler answers with the metrics of a launch. status may be called from
// several goroutines at a time.
func Handler(status func() serve.Status) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector{status})
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4, Timeout: 5 * time.Second,
	})
}

// metric is one row of the table: what it is called, and how it is read off a
// status.
type metric struct {
	name   string
	kind   prometheus.ValueType
	labels []string
	help   string
	read   func(s serve.Status, emit func(value float64, labels ...string))
}

func (m metric) desc() *prometheus.Desc { return prometheus.NewDesc(m.name, m.help, m.labels, nil) }

// collector implements prometheus.Collector.
type collector struct{ status func() serve.Status }

// Describe implements prometheus.Collector.
func (c collector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range table {
		out <- m.desc()
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	s := c.status()
	for _, m := range table {
		desc := m.desc()
		m.read(s, func(value float64, labels ...string) {
			for i := range labels {
				labels[i] = serve.Plain(labels[i])
			}
			if metric, err := prometheus.NewConstMetric(desc, m.kind, value, labels...); err == nil {
				out <- metric
			}
		})
	}
}

func truth(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
