// Package jitlock knows the locks that compilers of kernels put into their
// caches, and which of them a dead process has left behind.
//
// There are two kinds. A file baton (torch's extensions and what is built with
// them, FlashInfer's older releases) is a file named "lock": it is held as long
// as it exists, by whoever has it open, and a holder that is killed leaves it to
// stand for ever. A file lock (the filelock package: FlashInfer, Hugging Face,
// Triton's helpers) is an flock on a file that stays: the kernel takes it back at
// the holder's death, and a file that is removed breaks it for those who wait.
//
// So file locks are told and never touched. A baton is removed only where it is
// proven to be of the attempt that has ended, on a local disk, and held by nobody.
package jitlock
