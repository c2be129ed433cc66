// Package sglangcmd reads a command line and says whether it starts an SGLang
// server, with which interpreter, and what the server was asked for.
//
// It looks through the wrappers that people put in front (env, numactl, uv run,
// conda run, nsys, sh -c, small start scripts) by looking for the interpreter
// or the sglang program behind them, not by knowing each wrapper's options. It
// runs nothing and reads at most a start script and a --config file.
//
// What it cannot see, it does not guess: such a command has Form Unknown, and
// such a flag is absent.
package sglangcmd
