// Package stat holds the few statistics of a night, over gonum. The unit is the
// launch: what is measured twice on one server is one sample. All of it works
// on logarithms, so that an effect is a ratio and a rate and its inverse give
// the same answer.
package stat
