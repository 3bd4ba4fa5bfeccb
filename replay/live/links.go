package live

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/replay/credential"
	"unwire/replay/edit"
	"unwire/replay/live/values"
)

// A frame of at most heartbeatBytes that occurs at least heartbeatTimes is a heartbeat.
const (
	heartbeatBytes = 16
	heartbeatTimes = 3
)

// A Binding is a value of a client's frame that the server issued. It is replaced by the value that
// the live server issues in the corresponding frame.
type Binding struct {
	// Path is the place of the value in the client's frame.
	Path string `json:"path"`
	// From is the captured server frame that issued the value, such as "down/4".
	From string `json:"from"`
	// FromPath is the place of the value in the server's frame.
	FromPath string `json:"from_path"`
	// Part is the part of the server's value that the client sends, such as "json results[0].id", "word
	// 2" or "base64"; "" for the whole value.
	Part string `json:"part,omitempty"`
	// How is the encoding in which the client sends the value, such as "hex" or "sha256"; "" if it is
	// sent unchanged.
	How string `json:"how,omitempty"`

	// ByHand means that the user specified the mapping.
	ByHand bool `json:"by_hand,omitempty"`

	json  bool   // of the frame up
	value string // as captured, to see whether an edit has replaced it
	// token is the captured text of the ID if the ID is only a part of the text at Path; otherwise "".
	token  string
	source target
	// digest is the path in the question that has the value's SHA-256; "" if there is none.
	digest string
}

// A target describes a captured server frame so that the corresponding live frame can be found: it
// is the nth of its kind.
type target struct {
	// seq is the number of the server's frame in the capture.
	seq int
	// down is the index of the server's frame in Links.down.
	down  int
	shape values.Shape
	// nth counts, from 1, the captured frames of that shape.
	nth  int
	path string
	// nthAt counts, from 1, the captured frames that have path.
	nthAt int
}

// A parsedMessage is a message, or the headers of an answer, split into leaves.
type parsedMessage struct {
	frame     *decode.Frame
	leaves    []values.Leaf
	shape     values.Shape
	heartbeat bool

	// asks is the question type for which args were computed; nil for none.
	asks *questionType
	args arguments

	// undone is the message with edited values restored, once isUndone; nil if it repeats none.
	undone   *parsedMessage
	isUndone bool
}

// IsMessage reports whether a frame carries a complete message.
func IsMessage(f *decode.Frame) bool {
	return f.End == nil && !f.Partial && f.Opcode.Kind() < captures.OpClose && f.Flags&(envelope.EndStream|envelope.Trailer) == 0
}

// Links analyse a captured exchange: which of the client's frames answers which frame of the
// server, and which of its values the server issued.
type Links struct {
	// roles are the words for the two sides in texts.
	roles roles
	// captured is the exchange, and types are the message types by direction; nil if unknown.
	captured *decode.Exchange
	types    [2]protoreflect.MessageDescriptor
	down     []parsedMessage
	// first is the index in down of the first message that has a value.
	first map[string]int
	// issued are the values that a frame of the client had before the server did.
	issued map[string]bool
	// times counts how often each small frame occurs, by its bytes.
	times map[string]int
	// consistent caches the results of alwaysIssuedAt.
	consistent map[string]bool
	up         []parsedMessage
	// before has, for each client frame, the number of server frames before it.
	before []int
	pairs  []pair
	// tokens maps each spelling of an issued value to the place where it occurred first.
	tokens map[string]trace
	// own are words that the client sent before the server did.
	own map[string]bool
	// inside has, for each client frame, the issued values inside longer texts.
	inside    [][]innerBinding
	questions []question
	turns     []Turn            // computed on first use
	asked     map[int]*question // by number in down
	kinds     []*questionType
	budget    values.Budget // of what is inflated
	echo      editEcho
}

// A pair links a place at which the server issues small numbers to the place at which the client sends
// them back.
type pair struct{ path, from string }

// zero is the value of a number that is not on the wire.
const zero = "n0"

// NewLinks analyses a captured exchange. types are the types of its messages by direction, if
// known.
func NewLinks(ex *decode.Exchange, types [2]protoreflect.MessageDescriptor) *Links {
	return newLinks(ex, types, asClient)
}

// newLinks is NewLinks for one of the two sides.
func newLinks(ex *decode.Exchange, types [2]protoreflect.MessageDescriptor, r roles) *Links {
	l := &Links{roles: r, captured: ex, types: types, first: map[string]int{}, issued: map[string]bool{}, times: map[string]int{}, consistent: map[string]bool{}, tokens: map[string]trace{}, own: map[string]bool{}, asked: map[int]*question{}, budget: values.MaxInflated}
	for i := range ex.Frames {
		if f := &ex.Frames[i]; len(f.Data) <= heartbeatBytes {
			l.times[string(f.Data)]++
		}
	}
	heads := parseHeaders(ex.ResponseHeaders)
	if heads != nil && r.headersFirst {
		l.addServerMessage(*heads)
		heads = nil
	}
	for i := range ex.Frames {
		f := &ex.Frames[i]
		if !IsMessage(f) {
			continue
		}
		// Values in the client's first frame are the client's own.
		if heads != nil && len(l.up) > 0 {
			l.addServerMessage(*heads)
			heads = nil
		}
		h := l.parse(f)
		if f.Dir == captures.Up {
			l.up = append(l.up, h)
			l.before = append(l.before, len(l.down))
			l.inside = append(l.inside, l.search(&h))
		} else {
			l.addServerMessage(h)
		}
	}
	return l
}

// parse splits a frame into its values (leaves).
func (l *Links) parse(f *decode.Frame) parsedMessage {
	h := parsedMessage{frame: f, leaves: values.Leaves(f, l.types[f.Dir])}
	for i := range h.leaves {
		h.leaves[i].Budget = &l.budget
	}
	h.shape = values.ShapeOf(h.leaves)
	h.heartbeat = l.isHeartbeat(f, h.leaves, l.times[string(f.Data)])
	return h
}

// addServerMessage adds the next message, or the headers, of the captured answer.
func (l *Links) addServerMessage(h parsedMessage) {
	for k := range h.leaves {
		if _, ok := l.first[h.leaves[k].Value]; !ok {
			l.first[h.leaves[k].Value] = len(l.down)
		}
	}
	l.down = append(l.down, h)
	l.indexTokens(len(l.down) - 1)
}

// parseHeaders returns response headers as a message with one leaf per header; nil if there are none.
func parseHeaders(headers captures.Headers) *parsedMessage {
	byName := map[string]string{}
	for _, h := range headers {
		if name := strings.ToLower(h.Name); byName[name] == "" && !credential.IsRedacted(h.Value) {
			byName[name] = h.Value
		}
	}
	b, err := json.Marshal(byName)
	if err != nil || len(byName) == 0 {
		return nil
	}
	f := &decode.Frame{Dir: captures.Down, Seq: -1, Frame: envelope.Frame{Data: b}}
	return &parsedMessage{frame: f, leaves: values.Leaves(f, nil), shape: values.HeaderShape()}
}

// from describes the place of a server message.
func (l *Links) from(h *parsedMessage) string {
	if h.shape.IsHeaders() {
		return l.roles.headers
	}
	return fmt.Sprintf("%s/%d", l.roles.in, h.frame.Seq)
}

// isHeartbeat identifies frames that are sent periodically and answer nothing: by a field's name if
// names are known, otherwise by having only empty messages and occurring repeatedly.
func (l *Links) isHeartbeat(f *decode.Frame, leaves []values.Leaf, times int) bool {
	if len(leaves) == 0 {
		return false
	}
	for _, v := range leaves {
		if v.Number || v.Inner == 0 && v.Value != "t" && v.Value != "t{}" {
			return false
		}
	}
	md := l.types[f.Dir]
	if f.Tree == nil || md != nil {
		return strings.Contains(namesOf(leaves, md), "heartbeat")
	}
	return len(f.Data) <= heartbeatBytes && times >= heartbeatTimes
}

// namesOf returns the names of a message's fields, in lower case and joined.
func namesOf(leaves []values.Leaf, md protoreflect.MessageDescriptor) string {
	var b strings.Builder
	for _, v := range leaves {
		name := v.Last
		if md != nil {
			fd := edit.FieldOf(md, v.Last)
			if md = nil; fd != nil {
				name, md = string(fd.Name()), fd.Message()
			}
		}
		b.WriteString(strings.ToLower(name) + " ")
	}
	return b.String()
}

// cause returns the frame that the client's frame i waits for: the last one before it that is not a
// heartbeat. after is the number of such frames. A heartbeat of the client waits for nothing.
func (l *Links) cause(i int) (at *target, after int) {
	if l.up[i].heartbeat {
		return nil, 0
	}
	last := -1
	for j := range l.before[i] {
		if !l.down[j].heartbeat && !l.down[j].shape.IsHeaders() {
			after++
			last = j
		}
	}
	if last < 0 {
		return nil, 0
	}
	return l.target(last, ""), after
}

// target describes the captured server frame j, and a value at path in it.
func (l *Links) target(j int, path string) *target {
	t := &target{seq: l.down[j].frame.Seq, down: j, shape: l.down[j].shape, path: path}
	for k := 0; k <= j; k++ {
		if !l.down[k].heartbeat && l.down[k].shape.Matches(t.shape) {
			t.nth++
		}
		if path != "" && values.Has(l.down[k].leaves, path) {
			t.nthAt++
		}
	}
	return t
}

// bindings returns the values of the client's frame i that the server issued.
func (l *Links) bindings(i int) []Binding {
	var out []Binding
	bound := map[string]bool{}
	leaves := l.up[i].leaves
	for k := 0; k < len(leaves); k++ {
		v := &leaves[k]
		j, from := l.source(i, v)
		if from == nil {
			continue
		}
		b := Binding{Path: v.Path, From: l.from(&l.down[j]), FromPath: from.Path, value: v.Value, source: *l.target(j, from.Path)}
		// the header's text, whatever the codec of the frame
		if l.down[j].shape.IsHeaders() {
			b.token = string(v.Data)
		}
		b.json = l.up[i].frame.Tree == nil
		out = append(out, b)
		if v.Number && v.Last == from.Last && !slices.Contains(l.pairs, pair{v.Path, from.Path}) {
			l.pairs = append(l.pairs, pair{v.Path, from.Path})
		}
		bound[v.Path] = true
		for in := 1; in <= v.Inner; in++ {
			bound[leaves[k+in].Path] = true
		}
		k += v.Inner
	}

	// Values of this frame that the server did not issue are the client's own from now on.
	out = append(out, l.nestedBindings(i, bound)...)
	for k := range leaves {
		if v := &leaves[k]; !l.wasIssued(v.Value, l.before[i]) {
			l.issued[v.Value] = true
		}
	}
	return out
}

// zeros returns the ids of the client's frame i that are zero, so that neither frame contains them:
// places where other frames send a number back. It needs the bindings of all frames.
func (l *Links) zeros(i int) []Binding {
	var out []Binding
	for _, p := range l.pairs {
		if values.Has(l.up[i].leaves, p.path) || !values.HasParent(l.up[i].leaves, p.path) {
			continue
		}
		for j := l.before[i] - 1; j >= 0; j-- {
			d := &l.down[j]
			if d.heartbeat || d.shape.IsHeaders() || !values.HasParent(d.leaves, p.from) {
				continue
			}
			if !values.Has(d.leaves, p.from) {
				out = append(out, Binding{
					Path: p.path, From: l.from(d), FromPath: p.from,
					json: l.up[i].frame.Tree == nil, value: zero, source: *l.target(j, ""),
				})
				break
			}
		}
	}
	return out
}

// source finds the last server frame before the client's frame i that issued value v: in any field
// if the value is long, otherwise in a field of the same number whose values the client always
// sends back. The depth must be the same, unless v is the frame's only value and other frames send
// back what is there.
func (l *Links) source(i int, v *values.Leaf) (at int, from *values.Leaf) {
	if v.Value == "t" || v.Value == zero || v.Value == "nfalse" || v.Value == "nnull" || !v.Small && l.issued[v.Value] || !l.wasIssued(v.Value, l.before[i]) {
		return 0, nil
	}
	alone := values.Scalars(l.up[i].leaves) == 1
	for j := l.before[i] - 1; j >= 0; j-- {
		for k := range l.down[j].leaves {
			d := &l.down[j].leaves[k]
			if d.Value != v.Value {
				continue
			}
			if !v.Small || d.Last == v.Last && (d.Depth == v.Depth || alone && l.issues(d.Path)) && l.alwaysIssuedAt(v, d) {
				return j, d
			}
		}
	}
	return 0, nil
}

// issues reports whether the client sends back numbers that occur at path.
func (l *Links) issues(path string) bool {
	return slices.ContainsFunc(l.pairs, func(p pair) bool { return p.from == path })
}

// alwaysIssuedAt reports whether every value that client frames contain at v's place was sent before by
// the server at d's place.
func (l *Links) alwaysIssuedAt(v, d *values.Leaf) bool {
	key := v.Path + "<" + d.Path
	if ok, known := l.consistent[key]; known {
		return ok
	}
	ok := true
	for i := range l.up {
		for k := range l.up[i].leaves {
			if u := &l.up[i].leaves[k]; u.Path == v.Path && l.before[i] > 0 && !l.wasIssuedAt(d.Path, u.Value, l.before[i]) {
				ok = false
			}
		}
	}
	l.consistent[key] = ok
	return ok
}

func (l *Links) wasIssuedAt(path, value string, before int) bool {
	for j := range before {
		for k := range l.down[j].leaves {
			if d := &l.down[j].leaves[k]; d.Path == path && d.Value == value {
				return true
			}
		}
	}
	return false
}

// wasIssued reports whether a value occurs in one of the first frames of the server; before is their
// number.
func (l *Links) wasIssued(value string, before int) bool {
	at, ok := l.first[value]
	return ok && at < before
}

// nestedBindings returns the bindings of parts of leaves of the client's frame i. bound are the
// paths whose whole value is bound.
func (l *Links) nestedBindings(i int, bound map[string]bool) (out []Binding) {
	for _, n := range l.inside[i] {
		leaf := &l.up[i].leaves[n.leaf]
		if bound[leaf.Path] {
			continue
		}
		d := &l.down[n.down]
		out = append(out, Binding{
			Path: leaf.Path, From: l.from(d), FromPath: n.path, Part: n.part, How: string(n.how),
			json: l.up[i].frame.Tree == nil, value: leaf.Value, token: n.token, source: *l.target(n.down, n.path),
		})
	}
	return out
}
