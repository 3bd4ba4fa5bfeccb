package replay

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/replay/live"
)

// issuersWord stands for the exchanges that issued what a request carries.
const issuersWord = "auto"

// ErrAfter is the error for a name that stands for no other exchange.
var ErrAfter = errors.New("--after wants the numbers of other exchanges, or " + issuersWord)

// ExchangesBefore are the exchanges that names stand for, to be sent before exchange
// id: numbers, or "auto" for those that issued what it carries.
//
// Errors: ErrAfter; of reading the capture.
func ExchangesBefore(ctx context.Context, store *store.Store, id int64, names []string) (first []int64, err error) {
	for _, name := range names {
		if name == issuersWord {
			found, err := live.Issuers(ctx, store, id)
			if err != nil {
				return nil, err
			}
			first = append(first, found...)
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(name), 10, 64)
		if err != nil || n < 1 || n == id {
			return nil, fmt.Errorf("%w, not %q", ErrAfter, name)
		}
		first = append(first, n)
	}
	return first, nil
}

// SendBefore plans exchanges in their order, unedited, each with what those before it
// issued, and has send send them. It returns what the server issued in all of them,
// for Changes.Issued of the request that is sent after them.
//
// Errors: of reading and planning; those of send, which ends it.
func SendBefore(ctx context.Context, src captures.Source, first []int64, c Changes, o Options, send func(id int64, p *Plan) (*Result, error)) (*live.IDs, error) {
	c.Issued = &live.IDs{}
	c.Edits, c.Editor, c.Codec, c.Message = nil, nil, "", nil
	for _, id := range first {
		request, err := NewRequest(ctx, src, id, c)
		if err != nil {
			return nil, err
		}
		plan, err := request.Plan(ctx, o)
		if err != nil {
			return nil, err
		}
		result, err := send(id, plan)
		if err != nil {
			return nil, err
		}
		result.learnIDs(c.Issued)
	}
	return c.Issued, nil
}
