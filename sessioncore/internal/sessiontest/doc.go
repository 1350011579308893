// Package sessiontest has what the tests of the model and of the packages above it share: sample sessions and the
// paths of more, files to change from outside, and comparisons.
//
// It does not import the model, so that the model's own tests can use it.
package sessiontest
