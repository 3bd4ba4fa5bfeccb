// Package transfer is what the foreign formats have in common, for packages such as
// har and jsonl: what may leave a capture, and what became of what came in.
//
// Mask returns a view of a capture in which header values that may be secrets are
// masked. One is the view of a single exchange. A Report counts what an import made
// of its input, and lists problems. Values reads JSON values from a stream, each
// within a limit.
package transfer

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"unwire/captures"
)

// A Source is a capture with all that leaves it.
type Source interface {
	captures.Capture

	// Relations returns how exchange id is related to others, or with an id of 0 the
	// relations of all exchanges.
	Relations(ctx context.Context, id int64) ([]captures.Relation, error)

	// Notes returns the notes of exchange id, or with an id of 0 those of all exchanges.
	Notes(ctx context.Context, id int64) ([]captures.Note, error)
}

// One is the part of a capture that is a single exchange.
func One(src Source, id int64) Source { return singleExchange{src, id} }

type singleExchange struct {
	Source
	id int64
}

func (o singleExchange) Exchanges(ctx context.Context) iter.Seq2[*captures.Exchange, error] {
	return func(yield func(*captures.Exchange, error) bool) { yield(o.Exchange(ctx, o.id)) }
}

// Relations returns none: the other exchanges are no part of it.
func (o singleExchange) Relations(context.Context, int64) ([]captures.Relation, error) {
	return nil, nil
}

// Notes returns those of the exchange.
func (o singleExchange) Notes(ctx context.Context, _ int64) ([]captures.Note, error) {
	return o.Source.Notes(ctx, o.id)
}

// maxProblems bounds what a Report says in words.
const maxProblems = 100

// A Report is what an import made of its input.
type Report struct {
	Exchanges int      // recorded
	Skipped   int      // records that were no exchange, or could not be read
	Problems  []string // what was left out or doubtful, each with its place
	More      int      // problems that are not in Problems: there are at most 100
}

// Problem adds what was found at a place.
func (r *Report) Problem(place, format string, args ...any) {
	if len(r.Problems) == maxProblems {
		r.More++
		return
	}
	r.Problems = append(r.Problems, place+": "+fmt.Sprintf(format, args...))
}

// Clip shortens foreign text for a message.
func Clip(s string) string {
	const most = 200
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
