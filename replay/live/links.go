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
)

// A Binding is a value of a frame up that the server issued: it is replaced by
// the one that the live server issues in the frame that corresponds.
type Binding struct {
	Path string `json:"path"` // in the frame up
	// the captured frame that brought it: "down/4"
	From     string `json:"from"`
	FromPath string `json:"from_path"` // where in it
	// of what stands there, where it is not all: "json results[0].id", "word 2", "base64"
	Part string `json:"part,omitempty"`
	// how the frame up spells it: "hex", "sha256", …; "" as the server does
	How string `json:"how,omitempty"`

	json  bool   // of the frame up
	value string // as captured, to see whether an edit has replaced it
	// as captured, where it is a part of what stands at Path; "" for all of it
	token  string
	source target
	// path in the question of the value's SHA-256; "" if there is none
	digest string
}

// A target is a captured frame of the server, in terms that find the live
// frame that corresponds: the nth of its kind.
type target struct {
	seq   int // as captured
	down  int // which of Links.down
	shape shape
	nth   int // from 1, among the captured frames of that shape
	path  string
	nthAt int // from 1, among the captured frames that have path
}

// A parsedMessage is a message, or the headers of an answer, taken apart.
type parsedMessage struct {
	frame     *decode.Frame
	leaves    []leaf
	shape     shape
	heartbeat bool

	asks *questionType // of which args are known; nil: of none
	args arguments
}

// IsMessage reports whether a frame carries a message, and all of it.
func IsMessage(f *decode.Frame) bool {
	return f.End == nil && !f.Partial && f.Flags&(envelope.EndStream|envelope.Trailer) == 0
}

// Links read a captured exchange in the order in which its frames passed
// and finds out which frame up answers which frame down, and with which ids.
type Links struct {
	// by direction; nil where no schema knows them
	captured   *decode.Exchange
	types      [2]protoreflect.MessageDescriptor
	down       []parsedMessage
	first      map[string]int  // which of down was the first to have a value
	issued     map[string]bool // values that a frame up had before the server did
	times      map[string]int  // how often a small frame came, by its bytes
	consistent map[string]bool // cache of alwaysIssuedAt
	up         []parsedMessage
	before     []int // for each up: how many of down came before it
	pairs      []pair
	// spellings of what the server issued, by where they came first
	tokens    map[string]trace
	own       map[string]bool  // words that the client had first
	inside    [][]innerBinding // for each up
	questions []question
	turns     []Turn            // once they were asked for
	asked     map[int]*question // by number in down
	kinds     []*questionType
}

// A pair is a place where the server issues small numbers with the place where
// frames up carry them on.
type pair struct{ path, from string }

// zero is the value of a leaf that is a number and not on the wire.
const zero = "n0"

// NewLinks reads a captured exchange. The types are those of its messages, by
// direction, where a schema knows them.
func NewLinks(ex *decode.Exchange, types [2]protoreflect.MessageDescriptor) *Links {
	l := &Links{captured: ex, types: types, first: map[string]int{}, issued: map[string]bool{}, times: map[string]int{}, consistent: map[string]bool{}, tokens: map[string]trace{}, own: map[string]bool{}, asked: map[int]*question{}}
	for i := range ex.Frames {
		if f := &ex.Frames[i]; len(f.Data) <= heartbeatBytes {
			l.times[string(f.Data)]++
		}
	}
	heads := parseHeaders(ex.ResponseHeaders)
	for i := range ex.Frames {
		f := &ex.Frames[i]
		if !IsMessage(f) {
			continue
		}
		// what the first frame up has is the client's own
		if heads != nil && len(l.up) > 0 {
			l.addServerMessage(*heads)
			heads = nil
		}
		h := parsedMessage{frame: f, leaves: leavesOf(f, l.types[f.Dir])}
		h.shape = shapeOf(h.leaves)
		h.heartbeat = l.isHeartbeat(f, h.leaves, l.times[string(f.Data)])
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

// addServerMessage adds the next message, or the headers, of the captured answer.
func (l *Links) addServerMessage(h parsedMessage) {
	for k := range h.leaves {
		if _, ok := l.first[h.leaves[k].value]; !ok {
			l.first[h.leaves[k].value] = len(l.down)
		}
	}
	l.down = append(l.down, h)
	l.indexTokens(len(l.down) - 1)
}

// parseHeaders takes the headers of an answer apart as if they were a message, by
// their names; nil where there are none.
func parseHeaders(headers captures.Headers) *parsedMessage {
	values := map[string]string{}
	for _, h := range headers {
		if name := strings.ToLower(h.Name); values[name] == "" && !credential.IsRedacted(h.Value) {
			values[name] = h.Value
		}
	}
	b, err := json.Marshal(values)
	if err != nil || len(values) == 0 {
		return nil
	}
	f := &decode.Frame{Dir: captures.Down, Seq: -1, Frame: envelope.Frame{Data: b}}
	return &parsedMessage{frame: f, leaves: leavesOf(f, nil), shape: shape{top: []string{headerShape}}}
}

// from names where a server said something.
func (h *parsedMessage) from() string {
	if h.shape.isHeaders() {
		return "the response's headers"
	}
	return fmt.Sprintf("%s/%d", captures.Down, h.frame.Seq)
}

// isHeartbeat tells frames that come by the clock and answer nothing: by a
// field's name where there are names, else by being nothing but empty messages
// that come again and again.
func (l *Links) isHeartbeat(f *decode.Frame, leaves []leaf, times int) bool {
	if len(leaves) == 0 {
		return false
	}
	for _, v := range leaves {
		if v.number || v.inner == 0 && v.value != "t" && v.value != "t{}" {
			return false
		}
	}
	md := l.types[f.Dir]
	if f.Tree == nil || md != nil {
		return strings.Contains(namesOf(leaves, md), "heartbeat")
	}
	return len(f.Data) <= heartbeatBytes && times >= heartbeatTimes
}

// namesOf joins the names of a message's fields, in lower case.
func namesOf(leaves []leaf, md protoreflect.MessageDescriptor) string {
	var b strings.Builder
	for _, v := range leaves {
		name := v.last
		if md != nil {
			fd := edit.FieldOf(md, v.last)
			if md = nil; fd != nil {
				name, md = string(fd.Name()), fd.Message()
			}
		}
		b.WriteString(strings.ToLower(name) + " ")
	}
	return b.String()
}

// cause returns the frame that up frame i waits for: the last one that came
// before it and was not a heartbeat. after is how many such frames there were.
// A heartbeat of the client's own waits for nothing.
func (l *Links) cause(i int) (at *target, after int) {
	if l.up[i].heartbeat {
		return nil, 0
	}
	last := -1
	for j := range l.before[i] {
		if !l.down[j].heartbeat && !l.down[j].shape.isHeaders() {
			after++
			last = j
		}
	}
	if last < 0 {
		return nil, 0
	}
	return l.target(last, ""), after
}

// target describes captured frame j of the server, and a value in it.
func (l *Links) target(j int, path string) *target {
	t := &target{seq: l.down[j].frame.Seq, down: j, shape: l.down[j].shape, path: path}
	for k := 0; k <= j; k++ {
		if !l.down[k].heartbeat && l.down[k].shape.matches(t.shape) {
			t.nth++
		}
		if path != "" && has(l.down[k].leaves, path) {
			t.nthAt++
		}
	}
	return t
}

func has(leaves []leaf, path string) bool {
	for i := range leaves {
		if leaves[i].path == path {
			return true
		}
	}
	return false
}

// bindings returns the values of up frame i that the server had issued.
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
		b := Binding{Path: v.path, From: l.down[j].from(), FromPath: from.path, value: v.value, source: *l.target(j, from.path)}
		if l.down[j].shape.isHeaders() { // which is of another codec
			b.token = string(v.data)
		}
		b.json = l.up[i].frame.Tree == nil
		out = append(out, b)
		if v.number && v.last == from.last && !slices.Contains(l.pairs, pair{v.path, from.path}) {
			l.pairs = append(l.pairs, pair{v.path, from.path})
		}
		bound[v.path] = true
		for in := 1; in <= v.inner; in++ {
			bound[leaves[k+in].path] = true
		}
		k += v.inner
	}
	out = append(out, l.nestedBindings(i, bound)...)
	for k := range leaves {
		if v := &leaves[k]; !l.wasIssued(v.value, l.before[i]) {
			l.issued[v.value] = true
		}
	}
	return out
}

// zeros returns the ids of up frame i that are zero, so that neither it nor the
// server's frame has them: where other frames carry a number on. It follows
// bindings of all frames.
func (l *Links) zeros(i int) []Binding {
	var out []Binding
	for _, p := range l.pairs {
		if l.up[i].frame.Tree == nil || has(l.up[i].leaves, p.path) || !hasParent(l.up[i].leaves, p.path) {
			continue
		}
		for j := l.before[i] - 1; j >= 0; j-- {
			d := &l.down[j]
			if d.heartbeat || d.shape.isHeaders() || !hasParent(d.leaves, p.from) {
				continue
			}
			if !has(d.leaves, p.from) {
				out = append(out, Binding{
					Path: p.path, From: fmt.Sprintf("down/%d", d.frame.Seq), FromPath: p.from,
					value: zero, source: *l.target(j, ""),
				})
				break
			}
		}
	}
	return out
}

// hasParent reports whether the message is there that a path's last step is in.
func hasParent(leaves []leaf, path string) bool {
	dot := strings.LastIndexByte(path, '.')
	return dot < 0 || has(leaves, path[:dot])
}

// source finds the last frame down before up frame i that had value v in the
// place of an id: anywhere if it is long, else in a field of the same number
// that the frames up follow throughout. That is at the same depth, unless v is
// all that its frame says, and other frames carry on what stands there.
func (l *Links) source(i int, v *leaf) (at int, from *leaf) {
	if v.value == "t" || v.value == zero || v.value == "nfalse" || v.value == "nnull" || !v.small && l.issued[v.value] || !l.wasIssued(v.value, l.before[i]) {
		return 0, nil
	}
	alone := scalars(l.up[i].leaves) == 1
	for j := l.before[i] - 1; j >= 0; j-- {
		for k := range l.down[j].leaves {
			d := &l.down[j].leaves[k]
			if d.value != v.value {
				continue
			}
			if !v.small || d.last == v.last && (d.depth == v.depth || alone && l.issues(d.path)) && l.alwaysIssuedAt(v, d) {
				return j, d
			}
		}
	}
	return 0, nil
}

// scalars counts the values of a message that hold no others.
func scalars(leaves []leaf) int {
	n := 0
	for i := range leaves {
		if leaves[i].inner == 0 {
			n++
		}
	}
	return n
}

// issues reports whether frames up carry on numbers that stand at path.
func (l *Links) issues(path string) bool {
	return slices.ContainsFunc(l.pairs, func(p pair) bool { return p.from == path })
}

// alwaysIssuedAt reports whether every value that frames up have where v stands had
// come before from the server where d stands.
func (l *Links) alwaysIssuedAt(v, d *leaf) bool {
	key := v.path + "<" + d.path
	if ok, known := l.consistent[key]; known {
		return ok
	}
	ok := true
	for i := range l.up {
		for k := range l.up[i].leaves {
			if u := &l.up[i].leaves[k]; u.path == v.path && l.before[i] > 0 && !l.wasIssuedAt(d.path, u.value, l.before[i]) {
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
			if d := &l.down[j].leaves[k]; d.path == path && d.value == value {
				return true
			}
		}
	}
	return false
}

// wasIssued reports whether one of the first frames down had a value.
func (l *Links) wasIssued(value string, before int) bool {
	at, ok := l.first[value]
	return ok && at < before
}
