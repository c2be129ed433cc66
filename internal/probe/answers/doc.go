// Package answers judges what a language model says, without knowing what it
// should say: whether an answer fell into one repeated token, whether its
// probabilities are numbers, whether its text is text, and whether the answers
// as a whole are as long and as varied as those of a server that worked.
//
// # Why so many
//
// A wrong kernel may spoil only a few answers. Where a fault spoils a share r
// of all answers, n of them show it at least once with the chance 1-(1-r)^n: to
// see r = 4 % with 95 % takes 74 answers (Needed), to see 19 % takes 15. One
// answer misses a fault of 4 % in 96 cases of 100.
//
// The package is pure: no clock, no network, no randomness.
package answers
