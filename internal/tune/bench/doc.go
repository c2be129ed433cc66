// Package bench reads what the usual clients report about one run against a
// server: SGLang's bench_serving and bench_one_batch_server, and vllm bench
// serve, as JSON and as the table that they print.
//
// A result is believed only where it is complete: exactly one new object in the
// client's file, requests that were completed, and figures that are numbers. A
// run in which every request failed reports a latency of 0 ms with exit code 0;
// here it is a run without a result. The table on the screen is a second
// witness: where it disagrees, the result says so.
package bench
