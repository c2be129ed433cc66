package bench

import (
	"slices"
	"strings"
)

// rates are the metrics of which more is better.
var rates = []string{
	"request_throughput", "request_goodput", "input_throughput", "output_throughput", "total_throughput",
	"last_gen_throughput", "accept_length", "cache_hit_rate",
}

// latencies are measured per request, in milliseconds; each comes as mean,
// median and percentiles.
var latencies = []string{"ttft", "tpot", "itl", "e2e"}

// percentiles of a latency, as clients print them.
var percentiles = []string{"mean", "median", "std", "p90", "p95", "p99", "max"}

// Metrics lists every metric that a study may name, sorted. Latencies are in
// milliseconds, rates in units a second.
func Metrics() []string {
	all := slices.Clone(rates)
	for _, l := range latencies {
		for _, p := range percentiles {
			all = append(all, p+"_"+l+"_ms")
		}
	}
	slices.Sort(all)
	return all
}

// Known reports whether a study may name the metric. Percentiles that some
// clients can be asked for (p50, p99.9) are among them.
func Known(metric string) bool {
	if slices.Contains(Metrics(), metric) {
		return true
	}
	p, rest, ok := strings.Cut(metric, "_")
	return ok && isPercentile(p) && slices.Contains(latencies, strings.TrimSuffix(rest, "_ms")) && strings.HasSuffix(rest, "_ms")
}

// HigherIsBetter tells which way a metric improves.
func HigherIsBetter(metric string) bool { return slices.Contains(rates, metric) }

// isPercentile reports whether a word is p and a number from 1 to 99.999.
func isPercentile(word string) bool {
	digits, ok := strings.CutPrefix(word, "p")
	whole, part, _ := strings.Cut(digits, ".")
	return ok && len(whole) >= 1 && len(whole) <= 2 && len(part) <= 3 && isDigits(whole+part)
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
