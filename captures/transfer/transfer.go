// Package transfer contains what the import and export packages (har, jsonl, flow and others) share.
//
// A Source is a capture with everything that can be exported. Mask returns a view of it in which header values
// that may be secrets are masked; OnlyExchange is a view of one exchange. A Report counts what an import read,
// and lists its problems. JSONValues reads JSON values from a stream, each limited in size.
//
//	src := transfer.Mask(capture)
//	n, err := jsonl.Export(ctx, os.Stdout, src)
package transfer

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"unwire/captures"
)

// A Source is a capture with everything that can be exported.
type Source interface {
	captures.Capture

	// Relations returns the relations of exchange id, or those of all exchanges if id is 0.
	Relations(ctx context.Context, id int64) ([]captures.Relation, error)

	// Notes returns the notes of exchange id, or those of all exchanges if id is 0.
	Notes(ctx context.Context, id int64) ([]captures.Note, error)

	// Rewritten returns which rules changed exchange id, and which version of its bytes this source contains;
	// nil if no rule changed it.
	Rewritten(ctx context.Context, id int64) (*captures.Rewritten, error)
}

// OnlyExchange returns a view of src that contains a single exchange.
func OnlyExchange(src Source, id int64) Source { return singleExchange{src, id} }

// A singleExchange is a Source that contains only one exchange of another Source.
type singleExchange struct {
	// The embedded Source is the capture that contains the exchange.
	Source
	// id is the number of the only visible exchange.
	id int64
}

// Exchanges yields the one exchange.
func (o singleExchange) Exchanges(ctx context.Context) iter.Seq2[*captures.Exchange, error] {
	return func(yield func(*captures.Exchange, error) bool) { yield(o.Exchange(ctx, o.id)) }
}

// Relations returns nil, because the related exchanges are not in the view.
func (o singleExchange) Relations(context.Context, int64) ([]captures.Relation, error) {
	return nil, nil
}

// Notes returns the notes about the exchange.
func (o singleExchange) Notes(ctx context.Context, _ int64) ([]captures.Note, error) {
	return o.Source.Notes(ctx, o.id)
}

// maxProblems limits the number of problems that a Report describes in words.
const maxProblems = 100

// A Report describes what an import has read.
type Report struct {
	// Exchanges is the number of imported exchanges.
	Exchanges int
	// Skipped counts records in the input that were not exchanges, or could not be read.
	Skipped int
	// Problems describes data that was omitted or is doubtful, each with its position in the input.
	Problems []string
	// More counts the problems beyond those in Problems, which has at most 100.
	More int
}

// Problem adds a formatted problem to the report; place is its position in the input.
func (r *Report) Problem(place, format string, args ...any) {
	if len(r.Problems) == maxProblems {
		r.More++
		return
	}
	r.Problems = append(r.Problems, place+": "+fmt.Sprintf(format, args...))
}

// Clip truncates text from the input to 200 bytes, for use in a message.
func Clip(s string) string {
	const most = 200
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
