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

// Bounds of what is pooled, so that one exchange of a capture of any size is
// shown at once. The exchange itself comes first, then those nearest to it.
const (
	poolFrames    = 256      // of the exchange itself, per direction
	poolNear      = 64       // of other exchanges, per direction
	poolBytes     = 1 << 20  // of frames, per direction
	poolRead      = 2 << 20  // of other exchanges' bodies
	poolExchanges = 100      // on either side that are looked at
	poolNodes     = 40_000   // of trees, per direction
	poolOne       = 64 << 10 // bytes of another exchange's frame
)

// poolVersion is raised when a Pool of the same exchanges becomes another.
const poolVersion = 1

// A Pool is the evidence of the messages of one method, by direction. As JSON it can be
// kept, and read again by the same version of this package.
type Pool struct {
	roots    [2]*kind.Pooled
	evidence *kind.Evidence
	Frames   [2]int // that it was drawn from
}

// poolDoc is a Pool as JSON.
type poolDoc struct {
	Version  int      `json:"version"`
	Frames   [2]int   `json:"frames"`
	Evidence kind.Doc `json:"evidence"`
}

// MarshalJSON writes a Pool that NewPool has made.
func (p *Pool) MarshalJSON() ([]byte, error) {
	return json.Marshal(poolDoc{poolVersion, p.Frames, p.evidence.Doc()})
}

// UnmarshalJSON reads what MarshalJSON has written. The bytes may come from anywhere.
func (p *Pool) UnmarshalJSON(data []byte) error {
	var doc poolDoc
	if err := json.Unmarshal(data, &doc); err != nil {
		return err
	}
	if doc.Version != poolVersion {
		return fmt.Errorf("evidence of version %d; this one reads %d", doc.Version, poolVersion)
	}
	ev, err := doc.Evidence.Evidence()
	if err != nil {
		return err
	}
	*p = *newPool(ev, doc.Frames)
	return nil
}

// newPool makes a Pool of evidence, which must not change any more.
func newPool(ev *kind.Evidence, frames [2]int) *Pool {
	p := &Pool{evidence: ev, Frames: frames}
	for dir := range p.roots {
		if m := ev.Root(captures.Direction(dir).String()); m != nil {
			p.roots[dir] = kind.NewPooled(m)
		}
	}
	return p
}

// Of is the evidence of a direction; a nil Pool, or one that has none, gives nil.
func (p *Pool) Of(dir captures.Direction) *kind.Pooled {
	if p == nil {
		return nil
	}
	return p.roots[dir&1]
}

// A neighbourhood is a Source whose exchanges can be walked from one of them.
type neighbourhood interface {
	captures.Source
	ExchangesAfter(ctx context.Context, number int64) iter.Seq2[*captures.Exchange, error]
}

// MethodOf names what the exchanges of one method have in common: its service and
// name, or of what is no RPC the HTTP method and the URL's path; of what has no HTTP in it
// the protocol and the path, or the server's address.
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

// NewPool draws evidence from the frames of an exchange and of its neighbours of the
// same method; src may be nil.
//
// Limits: 256 frames of the exchange and 64 of others per direction, 1 MiB of them,
// from 100 exchanges to either side, whose number decides, not what time it takes.
// Errors: none; what cannot be read is left out.
func NewPool(ctx context.Context, src neighbourhood, ex *Exchange) *Pool {
	p := &poolBuilder{ev: kind.NewEvidence()}
	for i := range ex.Frames {
		p.addFrame(&ex.Frames[i], poolFrames)
	}
	if src != nil && p.trees > 0 {
		p.near(ctx, src, ex)
	}
	return newPool(p.ev, p.frames)
}

// A poolBuilder accumulates a Pool.
type poolBuilder struct {
	ev     *kind.Evidence
	frames [2]int
	bytes  [2]int
	nodes  [2]int
	trees  int
	read   int
}

// addFrame enters a frame while there is room for it.
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

// near enters frames of the exchanges around ex that are of its method.
func (p *poolBuilder) near(ctx context.Context, src neighbourhood, ex *Exchange) {
	most := [2]int{p.frames[0] + poolNear, p.frames[1] + poolNear}
	method := MethodOf(&ex.Exchange, ex.Call)
	seen := 0
	for rec, err := range src.ExchangesAfter(ctx, ex.ID-poolExchanges-1) {
		if seen++; err != nil || seen > 2*poolExchanges || rec.ID > ex.ID+poolExchanges || p.read > poolRead {
			return
		}
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
