package decode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"strings"

	"unwire/captures"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// Limits of the statistics that NewPool collects, so that an exchange of a capture of any size is shown at once.
// The frames of the exchange itself count first, then those of its neighbours.
const (
	// poolFrames is the maximum number of frames of the exchange itself, for each direction.
	poolFrames = 256

	// poolNear is the maximum number of frames of other exchanges, for each direction.
	poolNear = 64

	// poolBytes is the maximum number of bytes of all these frames, for each direction.
	poolBytes = 1 << 20

	// poolRead is the maximum number of bytes that are read of other exchanges' bodies.
	poolRead = 2 << 20

	// maxDistance is how many exchanges before and after are considered.
	poolExchanges = 100

	// maxPoolNodes is the number of nodes of all trees, per direction.
	poolNodes = 40_000

	// maxNeighbourFrame is the size in bytes above which frames of other exchanges are ignored.
	poolOne = 64 << 10
)

// poolVersion must be incremented when the same exchanges yield a different Pool, so that cached ones are not
// used.
const poolVersion = 1

// A Pool has statistics of the fields in messages of one method, by direction, from which package kind infers
// types. Its JSON can be cached and read by the same version of this package.
type Pool struct {
	// roots are the statistics of the top-level messages by direction, derived from evidence.
	roots [2]*kind.Pooled

	// evidence are the statistics of all messages in the form in which they can be stored and merged.
	evidence *kind.Evidence

	// Frames is the number of frames, by direction, that the statistics cover.
	Frames [2]int
}

// poolDoc is the JSON form of a Pool.
type poolDoc struct {
	// Version is the version of the format; documents with another version are not read.
	Version int `json:"version"`

	// Frames is the number of frames, by direction, that the statistics cover.
	Frames [2]int `json:"frames"`

	// Evidence are the statistics of the fields in these frames.
	Evidence kind.Doc `json:"evidence"`
}

// MarshalJSON encodes a Pool. It must have been returned by NewPool.
func (p *Pool) MarshalJSON() ([]byte, error) {
	return json.Marshal(poolDoc{poolVersion, p.Frames, p.evidence.Doc()})
}

// UnmarshalJSON decodes the output of MarshalJSON. It validates everything, so the data may be untrusted.
func (p *Pool) UnmarshalJSON(data []byte) error {
	var doc poolDoc
	if err := json.Unmarshal(data, &doc); err != nil {
		return err
	}
	if doc.Version != poolVersion {
		return fmt.Errorf("the evidence has version %d, but this version of unwire reads version %d", doc.Version, poolVersion)
	}
	ev, err := doc.Evidence.Evidence()
	if err != nil {
		return err
	}
	*p = *newPool(ev, doc.Frames)
	return nil
}

// newPool returns a Pool with the statistics ev, which must not change afterwards. frames are the numbers of frames
// by direction.
func newPool(ev *kind.Evidence, frames [2]int) *Pool {
	p := &Pool{evidence: ev, Frames: frames}
	for dir := range p.roots {
		if m := ev.Root(captures.Direction(dir).String()); m != nil {
			p.roots[dir] = kind.NewPooled(m)
		}
	}
	return p
}

// Of returns the statistics of a direction's messages. It returns nil for a nil Pool and for a direction without
// messages.
func (p *Pool) Of(dir captures.Direction) *kind.Pooled {
	if p == nil {
		return nil
	}
	return p.roots[dir&1]
}

// A neighbourhood is a Source whose exchanges can be iterated starting at a given one.
type neighbourhood interface {
	captures.Source

	// ExchangesAfter yields the exchanges whose number is greater than number.
	ExchangesAfter(ctx context.Context, number int64) iter.Seq2[*captures.Exchange, error]
}

// MethodOf returns a key that the exchanges of one method share. For a call it is the service and the method.
// For other HTTP exchanges it is the HTTP method and the path, for a WebSocket the protocol and the path, and
// for other connections the protocol and the server's address.
func MethodOf(ex *captures.Exchange, c Call) string {
	if c.Service != "" && c.RPC != "" {
		return "/" + c.Service + "/" + c.RPC
	}
	path := "/"
	if u, err := url.Parse(ex.URL); err == nil && u.Path != "" {
		path = u.Path
	}
	switch {
	case ex.Transport == captures.HTTP:
		return ex.Method + " " + path
	case ex.Transport == captures.WebSocket:
		return string(ex.Transport) + " " + path
	}
	_, address, _ := strings.Cut(ex.URL, "://")
	return string(ex.Transport) + " " + address
}

// NewPool collects statistics from the frames of ex and of neighbouring exchanges of the same method. src may be
// nil, and then only ex counts.
//
// Limits: per direction 256 frames of ex, 64 of others and 1 MiB in total, from the 100 exchanges before and
// after. These are counts, not times, so the result does not depend on the machine's speed.
//
// Errors: none. Exchanges that cannot be read are ignored.
func NewPool(ctx context.Context, src neighbourhood, ex *Exchange) *Pool {
	p := &poolBuilder{ev: kind.NewEvidence()}
	for i := range ex.Frames {
		p.addFrame(&ex.Frames[i], poolFrames)
	}
	if src != nil && p.trees > 0 {
		p.addNeighbours(ctx, src, ex)
	}
	return newPool(p.ev, p.frames)
}

// A poolBuilder accumulates the statistics for a Pool from the frames of a method.
type poolBuilder struct {
	// ev has the statistics collected so far.
	ev *kind.Evidence

	// frames is the number of collected frames, by direction.
	frames [2]int

	// bytes is the number of bytes in the collected frames, by direction.
	bytes [2]int

	// nodes is the number of fields in the collected frames, by direction, with those of nested messages.
	nodes [2]int

	// trees is the number of frames seen that have decoded fields, including those that were not collected.
	trees int

	// read is the number of bytes read from other exchanges.
	read int
}

// addFrame adds a sound message to the statistics, unless a limit is reached. most is the maximum number of frames
// in its direction.
func (p *poolBuilder) addFrame(f *Frame, most int) {
	d := f.Dir & 1
	if f.Tree == nil || f.End != nil || f.Err != nil {
		return
	}
	p.trees++
	if p.frames[d] >= most || p.bytes[d]+len(f.Data) > poolBytes || p.nodes[d]+len(f.Tree.Nodes) > poolNodes {
		return
	}
	if p.ev.AddTree(f.Dir.String(), f.Tree) == nil {
		p.frames[d]++
		p.bytes[d] += len(f.Data)
		p.nodes[d] += len(f.Tree.Nodes)
	}
}

// addNeighbours adds frames of the exchanges around ex that have the same method.
func (p *poolBuilder) addNeighbours(ctx context.Context, src neighbourhood, ex *Exchange) {
	most := [2]int{p.frames[0] + poolNear, p.frames[1] + poolNear}
	method := MethodOf(&ex.Exchange, ex.Call)
	seen := 0
	for rec, err := range src.ExchangesAfter(ctx, ex.ID-poolExchanges-1) {
		if seen++; err != nil || seen > 2*poolExchanges || rec.ID > ex.ID+poolExchanges || p.read > poolRead {
			return
		}

		// Only exchanges of the same method are evidence.
		if call := Classify(rec); rec.ID == ex.ID || MethodOf(rec, call) != method {
			continue
		}
		s := NewStream(rec, Options{Split: ex.Split, MaxFrame: poolRead, MaxInflated: poolRead, MaxNodes: poolNodes, Wire: wire.Options{MaxDepth: kind.MaxDepth}})
		enter := func(frames []Frame) {
			for i := range frames {
				if f := &frames[i]; len(f.Data) <= poolOne {
					p.addFrame(f, most[f.Dir&1])
				}
			}
		}

		// The frames of an exchange that exceeds the limits count as far as they are read.
		whole := true
		for chunk, err := range src.Chunks(ctx, rec.ID, 0) {
			if errors.Is(err, ctx.Err()) && err != nil {
				return
			}
			if p.read += len(chunk.Data); err != nil || p.read > poolRead || p.frames[0] >= most[0] && p.frames[1] >= most[1] {
				whole = false
				break
			}
			enter(s.Feed(chunk))
		}
		if whole {
			enter(s.Close())
		}
	}
}
