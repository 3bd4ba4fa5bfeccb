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

// A Capture is a capture file that questions are asked about. It is for any number of
// goroutines.
type Capture struct {
	*store.Store

	// Splitting says how the bytes of exchanges without HTTP divide into messages; it is
	// not changed once something was asked.
	Splitting decode.Splitting

	mu       sync.Mutex
	evidence map[string][]byte // as storedEvidence has it, by name
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

// List lists the exchanges. What it has to derive is stored for the next time.
//
// Errors: all that could not be read; what could be is listed.
func (c *Capture) List(ctx context.Context) (*conversation.List, error) {
	list, err := conversation.ListExchanges(ctx, c.Store)
	if err == nil {
		// What can be listed without is no reason to fail.
		_ = list.Save(ctx, c.Store)
	}
	return list, err
}

// Related returns the relations of the exchanges, by the numbers of both that they are
// between.
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

// maxJoined bounds the exchanges of a timeline.
const maxJoined = 1000

// Joined returns an exchange, the upstream's streams that answered it, and all other
// requests that these streams answered, by number.
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

// Resolve decodes what the number of an exchange stands for: the stream that was
// carried in several calls if the number names its head, unless part is set; else the
// exchange.
//
// Errors: of a damaged capture, with what is readable of the exchange.
func (c *Capture) Resolve(ctx context.Context, id int64, part bool) (conversation.Resolved, error) {
	return conversation.Resolve(ctx, c.Store, id, part, decode.Options{Split: c.Splitting})
}
