// Package require ends tests whose preparation fails.
package require

import "testing"

// Value wraps a call f that returns a value and an error: Value(f())(t) returns the value, or ends the test if
// there is an error.
func Value[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		NoError(t, err)
		return v
	}
}

// NoError fails and ends the test if err is not nil.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// All collects the elements of an iterator, and ends the test if it yields an error.
func All[T any](t testing.TB, seq func(func(T, error) bool)) []T {
	t.Helper()
	var l []T
	for v, err := range seq {
		NoError(t, err)
		l = append(l, v)
	}
	return l
}
