// Package query answers questions about captures. Every surface asks here: the
// command line now, the workbench and agents later. The address of a capture, an
// exchange or a frame goes in; results of the libraries and objects of the contract
// come out.
//
// A Capture keeps the evidence that is costly to derive, and stores it in the file,
// so that it is derived once. Views are how the frames of a method are read: by
// definitions, by evidence, and by the choices of a user. Documents are files of
// messages without a capture, which are read the same way.
//
// What can be asked: which frame or exchange is at an address, where something occurs
// (search), why a field is read as it is (explain), what differs between two things
// (diff) or varies over many (series), who said what (transcript), what definitions
// cover (coverage), what messages are inferred from (inference), what a replay would
// send (replay plan), and at which address a finding is.
//
// Frames that leave for files, such as the page of a check, are handed out without
// secrets (RedactedFrames). The package knows no flags and prints nothing.
package query

import (
	"context"
	"slices"
	"sync"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/decode"
	"unwire/decode/conversation"
)

// A Capture is an open capture file, with the questions that can be asked about it as methods. It is safe
// for concurrent use.
type Capture struct {
	// Store is the open capture file.
	*store.Store

	// Splitting selects how the bytes of connections without HTTP are split into messages. It must not
	// change after the first question.
	Splitting decode.Splitting

	// mu guards evidence.
	mu sync.Mutex

	// evidence caches encoded evidence by name; see keepEvidence.
	evidence map[string][]byte
}

// Open opens a capture for reading.
//
// Errors: those of store.Open.
func Open(path string, o store.ReadOptions) (*Capture, error) {
	s, err := store.Open(path, o)
	if err != nil {
		return nil, err
	}
	return &Capture{Store: s, evidence: map[string][]byte{}}, nil
}

// List returns the exchanges of the capture. Derived data, such as status codes, is stored in the capture
// for the next time.
//
// Errors: all parts that could not be read; the list has the others.
func (c *Capture) List(ctx context.Context) (*conversation.List, error) {
	list, err := conversation.ListExchanges(ctx, c.Store)
	if err == nil {
		// What can be listed without is no reason to fail.
		_ = list.Save(ctx, c.Store)
	}
	return list, err
}

// Related returns the relations between exchanges. Each is listed under the numbers of both of its
// exchanges.
func (c *Capture) Related(ctx context.Context) (map[int64][]captures.Relation, error) {
	list, err := c.Relations(ctx, 0)
	by := map[int64][]captures.Relation{}
	for _, r := range list {
		by[r.Exchange] = append(by[r.Exchange], r)
		if r.Capture == "" && r.Target != r.Exchange {
			by[r.Target] = append(by[r.Target], r)
		}
	}
	return by, err
}

// maxJoined is the largest number of exchanges in a timeline.
const maxJoined = 1000

// Joined returns the numbers of the exchanges that 'unwire serve' linked to an exchange: the upstream
// streams that answered a client's request, and all other requests that these streams answered.
func (c *Capture) Joined(ctx context.Context, id int64) ([]int64, error) {
	related, err := c.Related(ctx)
	if err != nil {
		return nil, err
	}
	ids := []int64{id}
	for i := 0; i < len(ids) && len(ids) < maxJoined; i++ {
		for _, r := range related[ids[i]] {
			if r.Kind != captures.FrontEndOf || r.Capture != "" {
				continue
			}
			for _, other := range []int64{r.Exchange, r.Target} {
				if !slices.Contains(ids, other) {
					ids = append(ids, other)
				}
			}
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// Resolve decodes the exchange with a number. If a conversation was split over several exchanges and the
// number is that of the first, Resolve decodes the whole conversation, unless part is set.
//
// Errors: for a damaged capture, the damage together with what is readable.
func (c *Capture) Resolve(ctx context.Context, id int64, part bool) (conversation.Resolved, error) {
	return conversation.Resolve(ctx, c.Store, id, part, decode.Options{Split: c.Splitting})
}
