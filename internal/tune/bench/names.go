package bench

import "strings"

// latencyNames are how clients spell a latency, longest first.
var latencyNames = []struct{ spelt, name string }{
	{"e2e_latency", "e2e"}, {"e2el", "e2e"}, {"latency", "e2e"}, {"e2e", "e2e"}, {"ttft", "ttft"}, {"tpot", "tpot"}, {"itl", "itl"},
}

// rateNames are spellings of a rate besides its own name.
var rateNames = map[string]string{
	"total_token_throughput": "total_throughput", "total_tput": "total_throughput", "overall_throughput": "total_throughput",
	"output_token_throughput": "output_throughput", "input_token_throughput": "input_throughput",
	"acc_length": "accept_length", "spec_decode_acceptance_length": "accept_length",
}

// canonical is the one name of a metric; ok is false for what is none.
func canonical(spelt string) (metric string, ok bool) {
	if HigherIsBetter(spelt) {
		return spelt, true
	}
	if rate, known := rateNames[spelt]; known {
		return rate, true
	}
	kind, rest, _ := strings.Cut(spelt, "_")
	rest, ms := strings.CutSuffix(rest, "_ms")
	for _, l := range latencyNames {
		if ms && rest == l.spelt {
			metric = kind + "_" + l.name + "_ms"
			return metric, Known(metric)
		}
	}
	return "", false
}
