package infer

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"path/filepath"
	"slices"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/kind"
	"unwire/schema/infer/jsonshape"
	"unwire/schema/infer/sources"
)

// maxRoots is the maximum number of RPC methods in an Evidence. Package kind has the same limit for root types.
const maxRoots = 4096

// Evidence is a bounded summary of recorded messages: for each field of some root types (the types of whole
// messages) statistics of its values, and for each method how it was called. It grows with the number of
// distinct fields, not with the number of messages. Adding messages in any order, or merging evidence in any
// order, gives the same result. Make one with NewEvidence.
//
// Limits: those of kind.Evidence, and 4,096 methods.
type Evidence struct {
	// kinds has the statistics of field values, by root type (type of whole messages).
	kinds *kind.Evidence
	// methods has the evidence of each method's calls, by "service/rpc".
	methods map[string]*methodEvidence
	// sources are the inputs that were counted, so that none is counted twice.
	sources sources.Set
	// parts are the segments of recordings that were counted, if a pipeline computed the evidence.
	parts sources.Parts
	// json summarizes the structure of messages in JSON.
	json *jsonshape.Set
}

// NewEvidence returns an Evidence without any messages.
func NewEvidence() *Evidence {
	return &Evidence{kinds: kind.NewEvidence(), methods: map[string]*methodEvidence{}, json: jsonshape.NewSet()}
}

// Add adds one serialized message. root is the name of its type.
//
// Errors: data that is not a protobuf message. It is not added; the error has the offset at which parsing
// failed.
func (e *Evidence) Add(root string, data []byte) error {
	if err := e.kinds.Add(root, data); err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	return nil
}

// Merge adds the evidence of o to e; o is unchanged. Merging is commutative and associative.
//
// Limits: as for Evidence. Above 4,096 methods, those that are last by name are dropped.
func (e *Evidence) Merge(o *Evidence) {
	e.kinds.Merge(o.kinds)
	e.mergeMethods(o)
}

// Absorb adds the evidence of o to e as Merge does, but without copying all of it. o must not be used afterwards.
func (e *Evidence) Absorb(o *Evidence) {
	if len(e.kinds.Roots()) == 0 {
		e.kinds = o.kinds
	} else {
		e.kinds.Merge(o.kinds)
	}
	e.mergeMethods(o)
}

// mergeMethods adds the evidence of o to e, except that about fields of protobuf messages.
func (e *Evidence) mergeMethods(o *Evidence) {
	e.sources.Merge(&o.sources)
	e.parts = e.parts.Merge(o.parts)
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

// method returns the evidence of the RPC method called name ("service/rpc"), which is created if needed. It
// fails beyond maxRoots.
func (e *Evidence) method(name string) (*methodEvidence, error) {
	m := e.methods[name]
	if m == nil {
		if len(e.methods) >= maxRoots {
			return nil, fmt.Errorf("schema: the evidence has more than %d methods; %s is left out", maxRoots, name)
		}
		m = newMethodEvidence()
		e.methods[name] = m
	}
	return m, nil
}

// AddExchange adds the protobuf messages of an exchange to those of its method. Requests and responses are two
// root types. An exchange that is not an RPC, or is not encoded in protobuf, is ignored.
//
// Errors: frames that are not protobuf messages are left out. The error names the first of them; the others are
// added.
func (e *Evidence) AddExchange(ex *decode.Exchange) error {
	c := e.beginCall(ex)
	for i := range ex.Frames {
		c.Add(ex, &ex.Frames[i])
	}
	return c.End(ex)
}

// A callEvidence adds the messages of one exchange to an Evidence frame by frame, so that the exchange need not
// be in memory.
type callEvidence struct {
	// e is the Evidence to which the messages are added.
	e *Evidence
	// m is the evidence of the method; nil if the exchange is ignored.
	m *methodEvidence
	// roots are the names of the root types, indexed by captures.Direction.
	roots [2]string
	// count is the number of messages so far, indexed by captures.Direction.
	count [2]int64
	// err is the first error of adding the call's messages.
	err error
}

// beginCall begins to add an exchange whose frames arrive one by one. Call callEvidence.Add for each frame, and
// callEvidence.End after the last.
func (e *Evidence) beginCall(ex *decode.Exchange) *callEvidence {
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

// Add adds a frame of the exchange if it is a message.
func (c *callEvidence) Add(ex *decode.Exchange, f *decode.Frame) {
	if c.m == nil || !ex.IsMessage(f) {
		return
	}
	c.count[f.Dir]++
	if err := c.e.addFrame(c.roots[f.Dir], f); err != nil && c.err == nil {
		c.err = fmt.Errorf("%w (exchange %d, frame %s/%d)", err, ex.ID, f.Dir, f.Seq)
	}
}

// End adds information that is known only at the end of the call, such as the number of messages. It
// returns the same errors as AddExchange.
func (c *callEvidence) End(ex *decode.Exchange) error {
	if c.m != nil {
		c.m.addExchange(ex, c.count[captures.Up], c.count[captures.Down])
	}
	return c.err
}

// addFrame adds a message to the evidence of a root type. It uses f.Tree if the message was parsed already.
func (e *Evidence) addFrame(root string, f *decode.Frame) error {
	if f.Tree == nil {
		return e.Add(root, f.Data)
	}
	if err := e.kinds.AddTree(root, f.Tree); err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	return nil
}

// JSON returns the summary of messages in JSON. The caller may add to it.
func (e *Evidence) JSON() *jsonshape.Set { return e.json }

// Roots returns the names of the root types (the types of whole messages), sorted.
func (e *Evidence) Roots() []string { return e.kinds.Roots() }

// Root returns the evidence about the messages of the root type called name, or nil.
func (e *Evidence) Root(name string) *kind.Message { return e.kinds.Root(name) }

// MergeIfNew merges o unless all inputs of o were counted in e before. It returns the share of o's inputs, from
// 0 to 1, that e had before; if it is between 0 and 1, their messages are now counted twice. Above 1,024 inputs
// the share is an estimate, unless both have parts, whose segments are compared exactly.
func (e *Evidence) MergeIfNew(o *Evidence) (shared float64) {
	if len(e.parts) > 0 && len(o.parts) > 0 {
		shared = e.parts.Share(o.parts)
	} else {
		shared = e.sources.Share(&o.sources)
	}
	if shared < 1 {
		e.Merge(o)
	}
	return shared
}

// fileHash returns a hash that identifies an input by path and content. The same content in two files is two
// inputs; standard input is identified by content alone.
func fileHash(name string, data []byte) uint64 {
	if abs, err := filepath.Abs(name); err == nil && name != "-" {
		name = abs
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(name + "\x00"))
	_, _ = h.Write(data)
	return h.Sum64()
}

// exchangeHash returns a hash that identifies an exchange by start time, number, method and URL.
func exchangeHash(ex *decode.Exchange) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(ex.Started.UnixNano())))
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(ex.ID)))
	_, _ = h.Write([]byte(ex.Method + " " + ex.URL))
	return h.Sum64()
}
