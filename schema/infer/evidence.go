package infer

import (
	"fmt"
	"maps"
	"slices"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/kind"
	"unwire/schema/infer/jsonshape"
	"unwire/schema/infer/sources"
)

// maxRoots bounds the methods of evidence, as kind bounds its root types.
const maxRoots = 4096

// Evidence is what was seen of every field of some root types, and of the
// methods that they belong to, pooled over all samples: a value that merges.
// Adding samples in any order, or merging the evidence of parts in any order,
// gives the same evidence.
//
// Limits: those of kind.Evidence, and 4,096 methods.
type Evidence struct {
	kinds   *kind.Evidence
	methods map[string]*methodEvidence
	sources sources.Set
	json    *jsonshape.Set
}

// NewEvidence returns evidence of nothing.
func NewEvidence() *Evidence {
	return &Evidence{kinds: kind.NewEvidence(), methods: map[string]*methodEvidence{}, json: jsonshape.NewSet()}
}

// Add enters one serialized message of the named root type.
//
// Errors: data that is no protobuf message is not entered, and the error says
// where it stopped being one.
func (e *Evidence) Add(root string, data []byte) error {
	if err := e.kinds.Add(root, data); err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	return nil
}

// Merge adds what o has seen to e; o stays as it is. It commutes and
// associates: the evidence of the parts of a corpus, merged in any order, is
// that of the whole.
//
// Limits: as for Evidence; of more than 4,096 roots or methods the last by name are left out.
func (e *Evidence) Merge(o *Evidence) {
	e.kinds.Merge(o.kinds)
	e.sources.Merge(&o.sources)
	e.json.Merge(o.json)
	for name, om := range o.methods {
		if m := e.methods[name]; m != nil {
			m.merge(om)
		} else {
			e.methods[name] = om.clone()
		}
	}
	if len(e.methods) > maxRoots {
		for _, name := range slices.Sorted(maps.Keys(e.methods))[maxRoots:] {
			delete(e.methods, name)
		}
	}
}

// method makes room for the named method.
func (e *Evidence) method(name string) (*methodEvidence, error) {
	m := e.methods[name]
	if m == nil {
		if len(e.methods) >= maxRoots {
			return nil, fmt.Errorf("schema: more than %d methods: %s is left out", maxRoots, name)
		}
		m = newMethodEvidence()
		e.methods[name] = m
	}
	return m, nil
}

// AddExchange enters the protobuf messages of an exchange under its method:
// requests and responses are two root types. An exchange that is no RPC, or
// whose codec is not protobuf, is none of evidence's business.
//
// Errors: frames that are no protobuf message are left out and the first is
// named by the error; the others count.
func (e *Evidence) AddExchange(ex *decode.Exchange) error {
	c := e.begin(ex)
	for i := range ex.Frames {
		c.Add(ex, &ex.Frames[i])
	}
	return c.End(ex)
}

// A callEvidence enters an exchange frame by frame.
type callEvidence struct {
	e     *Evidence
	m     *methodEvidence // nil where the exchange is none of evidence's business
	roots [2]string
	count [2]int64
	err   error
}

// begin is AddExchange for frames that come one by one: callEvidence.Add takes each, and
// callEvidence.End what is known of the exchange behind the last.
func (e *Evidence) begin(ex *decode.Exchange) *callEvidence {
	c := &callEvidence{e: e}
	if ex.Transport != captures.HTTP || ex.Service == "" || ex.RPC == "" || ex.Codec != "proto" {
		return c
	}
	name := ex.Service + "/" + ex.RPC
	if c.m, c.err = e.method(name); c.m != nil {
		c.roots = [2]string{captures.Up: methodRoot(name, captures.Up), captures.Down: methodRoot(name, captures.Down)}
	}
	return c
}

// Add enters a frame of the exchange, if it is a message.
func (c *callEvidence) Add(ex *decode.Exchange, f *decode.Frame) {
	if c.m == nil || !ex.IsMessage(f) {
		return
	}
	c.count[f.Dir]++
	if err := c.e.addFrame(c.roots[f.Dir], f); err != nil && c.err == nil {
		c.err = fmt.Errorf("%w (exchange %d, frame %s/%d)", err, ex.ID, f.Dir, f.Seq)
	}
}

// End enters what is known of the exchange as a whole. Its errors are those of AddExchange.
func (c *callEvidence) End(ex *decode.Exchange) error {
	if c.m != nil {
		c.m.addExchange(ex, c.count[captures.Up], c.count[captures.Down])
	}
	return c.err
}

func (e *Evidence) addFrame(root string, f *decode.Frame) error {
	if f.Tree == nil {
		return e.Add(root, f.Data)
	}
	if err := e.kinds.AddTree(root, f.Tree); err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	return nil
}

// JSON returns what was seen of messages in JSON, to which others may be added.
func (e *Evidence) JSON() *jsonshape.Set { return e.json }

// Roots returns the names of the root types, sorted.
func (e *Evidence) Roots() []string { return e.kinds.Roots() }

// Root returns the evidence of the named root type, or nil.
func (e *Evidence) Root(name string) *kind.Message { return e.kinds.Root(name) }
