// Package gpu tells what the GPUs of a launch are doing, and never makes that
// anybody else's problem.
//
// A call into the NVIDIA driver may take minutes, may never come back, and may
// end the process that made it. So the driver is asked by a process of its own,
// the sampler (ServeSampler, reached by a hidden command of the same binary),
// and everybody else talks to a Source: the Client of such a process, Absent
// where there is no driver, or Fake in tests.
//
// What a Source promises:
//
//   - Its news come on one channel, in order, and the channel never blocks the
//     source: of samples that nobody took only the newest waits, Xid events
//     and changes of the source itself wait in a bounded queue.
//   - Every call on it returns at once or with its context.
//   - What the driver did not tell is unknown, and says so; nothing is invented.
//   - A sampler that hangs is reported as hanging, is never killed hard, and is
//     never joined by a second one: a client that dies inside a driver call can
//     take the GPU with it, and a second one would hang beside it.
//
// The rest of the package is pure: which GPUs a command will use (Devices),
// whether they came free after an attempt (Released), what an Xid means.
package gpu
