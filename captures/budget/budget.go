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

// A Resource is a cost, such as memory or time, that untrusted input files can drive up and that a Budget
// limits.
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

// A rule defines the limit of a resource for one command: least, plus perByte for each byte of all input files.
type rule struct {
	// name describes the resource and its unit in error messages.
	name string
	// least is the limit of the resource that applies even without any input, in bytes, elements or
	// nanoseconds, depending on the resource.
	least int64
	// perByte is the amount by which the limit of the resource rises for each byte of the command's input
	// files.
	perByte float64
}

// rules returns the rule of each Resource, indexed by it.
func rules() [resources]rule {
	return [resources]rule{
		Decompressed: {"bytes of decompressed data", 2 << 30, 512},
		Parsed:       {"bytes of members of archives", 64 << 20, 32},
		Definitions:  {"bytes of memory for definitions", 256 << 20, 160},
		Members:      {"members of archives and folders", 1 << 20, 1. / 64},
		Time:         {"time in queries", int64(5 * time.Minute), float64(time.Second) / (128 << 10)},
	}
}

// ErrExceeded is wrapped by errors of Spend: the input files of one command need more than the Budget allows.
var ErrExceeded = errors.New("the input files of this command together need too many resources")

// A Budget counts and limits the resources that one command spends on untrusted input files. All readers of the
// command share it; it is safe for concurrent use. A nil Budget has no limits.
type Budget struct {
	// mu guards all other fields.
	mu sync.Mutex
	// size is the total size of all input files in bytes.
	size int64
	// used is the amount spent of each resource, indexed by Resource; in bytes, elements or nanoseconds,
	// depending on the resource.
	used [resources]int64
	// allowed is the amount by which the limit of each resource was raised explicitly, indexed by Resource.
	allowed [resources]int64
}

// New returns a Budget with the default limits, of which nothing has been spent.
func New() *Budget { return &Budget{} }

// Allow raises the limit of a resource by n, for an input whose own limit the user has raised.
func (b *Budget) Allow(r Resource, n int64) {
	if b == nil || n <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed[r] = addSaturated(b.allowed[r], n)
}

// Input registers an input file of size bytes, which raises the limits in proportion.
func (b *Budget) Input(size int64) {
	if b == nil || size <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.size = addSaturated(b.size, size)
}

// Spend adds n to the amount used of a resource. A negative n returns some of it.
//
// Errors: ErrExceeded if more is used than the limit. n is counted even then.
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

// limit returns the current limit of a resource, in its unit. The caller must have locked mu.
func (b *Budget) limit(r Resource) int64 {
	rule := rules()[r]
	extra := rule.perByte * float64(b.size)
	if extra > math.MaxInt64/4 {
		return math.MaxInt64 / 4
	}
	return addSaturated(rule.least+int64(extra), b.allowed[r])
}

// addSaturated returns a + n, or half of the largest int64 if the sum is larger, so that sums never overflow.
func addSaturated(a, n int64) int64 {
	if a > math.MaxInt64/2-max(n, 0) {
		return math.MaxInt64 / 2
	}
	return a + n
}

// inWords formats an amount of a resource for error messages: a duration for Time, otherwise a plain number.
func inWords(r Resource, n int64) string {
	if r == Time {
		return time.Duration(n).Round(time.Second).String()
	}
	return fmt.Sprint(n)
}

// contextKey is the key of a Budget in a context.
type contextKey struct{}

// With returns a context that carries b, so that readers called with the context spend from b (see Of).
func With(ctx context.Context, b *Budget) context.Context {
	return context.WithValue(ctx, contextKey{}, b)
}

// Of returns the Budget that With stored in the context, or nil, which has no limits.
func Of(ctx context.Context) *Budget {
	b, _ := ctx.Value(contextKey{}).(*Budget)
	return b
}
