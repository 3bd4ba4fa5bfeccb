// Package budget limits what one command spends on foreign input, over all its files together.
//
// b := budget.New()
// ctx = budget.With(ctx, b)                 // the command, once
// b := budget.Of(ctx)                       // a reader; nil if there is no budget
// b.Input(size)                             // for each file that it opens
// err := b.Spend(budget.Decompressed, n)    // for what the file costs; stop at an error
//
// Each reader limits what one file may cost, relative to its size and with a minimum for small files. A command
// that opens a thousand small files would allow that minimum a thousand times. A Budget allows it once: its limits
// are a minimum for the command, and a multiple of the size of all inputs.
//
// Depth is not shared: it is a limit of each value, and freed when the value has been read. Rows of a capture are not
// shared either: their number is bounded by the size of the file.
package budget

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
)

// A Resource is something that foreign input can use up.
type Resource int

// The resources of a command.
const (
	// Decompressed counts bytes of decompressed input: bodies of captures, members of archives, compressed files.
	Decompressed Resource = iota
	// Parsed counts bytes of members of archives that were parsed. Parsing costs 30 times as much as decompressing.
	Parsed
	// Definitions counts the estimated bytes of memory for definitions: messages, enums, fields.
	Definitions
	// Members counts members of archives and files of folders.
	Members
	// Time counts nanoseconds spent in queries of captures.
	Time

	resources = iota
)

// A rule is the limit of a resource: a minimum for the command, and an amount for each byte of input.
type rule struct {
	name    string
	least   int64
	perByte float64
}

// rules returns the limits by resource. The amounts per byte are those that the readers allow one file.
func rules() [resources]rule {
	return [resources]rule{
		Decompressed: {"bytes of decompressed data", 2 << 30, 512},
		Parsed:       {"bytes of members of archives", 64 << 20, 32},
		Definitions:  {"bytes of memory for definitions", 256 << 20, 160},
		Members:      {"members of archives and folders", 1 << 20, 1. / 64},
		Time:         {"time in queries", int64(5 * time.Minute), float64(time.Second) / (128 << 10)},
	}
}

// ErrExceeded is wrapped by the error of Spend.
var ErrExceeded = errors.New("the files of this command together cost too much")

// A Budget is shared by all readers of a command, which may use it concurrently. A nil Budget allows everything.
type Budget struct {
	mu sync.Mutex
	// size is the size of all inputs in bytes.
	size int64
	// used is what was spent, by resource.
	used [resources]int64
	// allowed is added to the limits, by resource.
	allowed [resources]int64
}

// New returns a Budget of which nothing is spent.
func New() *Budget { return &Budget{} }

// Allow adds n to the limit of a resource. It is for limits of an input that the user has set.
func (b *Budget) Allow(r Resource, n int64) {
	if b == nil || n <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed[r] = addSaturated(b.allowed[r], n)
}

// Input adds an input of size bytes, which raises the limits.
func (b *Budget) Input(size int64) {
	if b == nil || size <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.size = addSaturated(b.size, size)
}

// Spend counts n of a resource. Negative amounts give some of it back.
//
// Errors: ErrExceeded if more is spent than allowed. What was spent counts nevertheless.
func (b *Budget) Spend(r Resource, n int64) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used[r] = addSaturated(b.used[r], n)

	if limit := b.limit(r); b.used[r] > limit {
		return fmt.Errorf("%w: more than %s %s", ErrExceeded, inWords(r, limit), rules()[r].name)
	}
	return nil
}

// limit returns the limit of a resource. The caller has locked mu.
func (b *Budget) limit(r Resource) int64 {
	rule := rules()[r]
	extra := rule.perByte * float64(b.size)
	if extra > math.MaxInt64/4 {
		return math.MaxInt64 / 4
	}
	return addSaturated(rule.least+int64(extra), b.allowed[r])
}

// addSaturated adds, and stays at half of the largest number instead of overflowing.
func addSaturated(a, n int64) int64 {
	if a > math.MaxInt64/2-max(n, 0) {
		return math.MaxInt64 / 2
	}
	return a + n
}

// inWords formats a limit.
func inWords(r Resource, n int64) string {
	if r == Time {
		return time.Duration(n).Round(time.Second).String()
	}
	return fmt.Sprint(n)
}

// contextKey is the key of a Budget in a context.
type contextKey struct{}

// With returns a context whose readers share b.
func With(ctx context.Context, b *Budget) context.Context {
	return context.WithValue(ctx, contextKey{}, b)
}

// Of returns the Budget of a context, or nil.
func Of(ctx context.Context) *Budget {
	b, _ := ctx.Value(contextKey{}).(*Budget)
	return b
}
