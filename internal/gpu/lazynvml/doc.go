// Package lazynvml lets a program that links go-nvml start everywhere.
//
// go-nvml leaves NVML's functions undefined and trusts the dynamic loader to
// look each up when it is first called. Where the loader looks all up at the
// start (LD_BIND_NOW=1, or a binary linked with -z now, as hardened
// distributions do) the whole program ends before its first instruction, with
// status 127; and where it does not, a function that an older driver lacks ends
// it later.
//
// This package defines the functions: each jumps to where Load found it in the
// driver's library, or answers that it was not found (code 13). It holds no
// more than that; what go-nvml does with the answers is go-nvml's.
package lazynvml

//go:generate sh names.sh
