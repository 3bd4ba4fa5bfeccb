package live

import (
	"encoding/json"
	"fmt"
	"maps"
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

// The number of bindings for absent numbers is at most maxZeros and zerosPerMessage for each message of the client.
const (
	maxZeros        = 20_000
	zerosPerMessage = 4
)

// fewLeaves is the number of values up to which a message is searched without an index.
const fewLeaves = 16

// A Binding is a value in a client's frame that the server issued in an earlier frame. When the
// client's frame is sent again, the value is replaced by the one that the live server issues in the
// corresponding frame.
type Binding struct {
	// Path is the path of the value in the client's frame.
	Path string `json:"path"`
	// From is the captured server frame that issued the value, such as "down/4".
	From string `json:"from"`
	// FromPath is the path of the value in the server's frame.
	FromPath string `json:"from_path"`
	// Part is the part of the server's value that the client sends, such as "json results[0].id", "word
	// 2" or "base64"; "" means the whole value.
	Part string `json:"part,omitempty"`
	// How is the encoding in which the client sends the value, such as "hex" or "sha256"; "" if it is
	// sent unchanged.
	How string `json:"how,omitempty"`

	// ByHand means that the user specified the mapping.
	ByHand bool `json:"by_hand,omitempty"`

	// json means that the client's frame is JSON.
	json bool

	// value is the captured value, to detect whether an edit has replaced it.
	value string
	// redacted is the captured text if it contains a placeholder for a secret; otherwise "".
	redacted string
	// token is the captured identifier if it is only a part of the text at Path; otherwise "".
	token string

	// word is the captured identifier if it is a short word at the position wordAt of the text at Path;
	// otherwise "".
	word, wordAt string

	// also are further encodings with the same result as How.
	also []values.Spelling

	// order is the order in which the client sends the values of the server's list to which the value
	// belongs, and rank the value's place in it; nil if it sends them by their places in the list.
	order *ordering
	rank  int

	// source describes the server's frame and the path in it.
	source target
	// digest is the path, in the frame that the client's frame responds to, of the value's SHA-256; ""
	// if there is none.
	digest string
}

// A target describes a captured server frame in such a way that the corresponding live frame can be
// found: as the nth frame of its shape.
type target struct {
	// seq is the number of the server's frame in the capture.
	seq int
	// down is the index of the server's frame in Links.down.
	down int

	// shape distinguishes kinds of messages without a schema, by the paths of their fields.
	shape values.Shape
	// nth is the position of the frame, from 1, among the captured frames of that shape.
	nth int

	// path is the path of a value in the frame; "" if only the frame matters.
	path string
	// nthAt is the position of the frame, from 1, among the captured frames that have path.
	nthAt int
}

// A parsedMessage is a message, or the headers of a response, divided into its values (leaves).
type parsedMessage struct {
	// frame is the frame with the message; a made-up one for headers.
	frame *decode.Frame

	// leaves are the values in the message.
	leaves []values.Leaf

	// shape is the shape of the message, by which corresponding messages are found.
	shape values.Shape

	// heartbeat means that the message is sent periodically and responds to nothing.
	heartbeat bool

	// asks is the question type for which args were computed; nil if they were not computed yet.
	asks *questionType

	// args are the values in the message that characterise it as a question.
	args arguments

	// firstSeq is the number of the first of the frames whose texts are joined in this message.
	firstSeq int

	// terms are the values and words in the message that are unlikely to be in it by chance, by termsOf; nil
	// if they were not computed yet.
	terms map[string]string

	// undone is the message with values from edits replaced by the captured ones; nil if it contains
	// none, or until isUndone.
	undone *parsedMessage

	// isUndone means that undone was computed.
	isUndone bool

	// byPath maps the path of each value to its index in leaves; nil until find needs it.
	byPath map[string]int32
}

// termsOf returns the terms of a message; see values.Terms.
func (h *parsedMessage) termsOf() map[string]string {
	if h.terms == nil {
		h.terms = values.Terms(h.leaves)
	}
	return h.terms
}

// find returns the index of the first value of the message at a path; -1 if there is none.
func (h *parsedMessage) find(path string) int {
	if len(h.leaves) <= fewLeaves {
		return slices.IndexFunc(h.leaves, func(v values.Leaf) bool { return v.Path == path })
	}
	if h.byPath == nil {
		h.byPath = make(map[string]int32, len(h.leaves))
		for k := range h.leaves {
			if _, known := h.byPath[h.leaves[k].Path]; !known {
				h.byPath[h.leaves[k].Path] = int32(k)
			}
		}
	}
	if k, ok := h.byPath[path]; ok {
		return int(k)
	}
	return -1
}

// listed returns the values of the message whose path without the indexes of lists is path.
func (h *parsedMessage) listed(path string) (list []*values.Leaf) {
	for k := range h.leaves {
		if values.WithoutIndexes(h.leaves[k].Path) == path {
			list = append(list, &h.leaves[k])
		}
	}
	return list
}

// has reports whether the message has a value at a path.
func (h *parsedMessage) has(path string) bool { return h.find(path) >= 0 }

// hasParent reports whether the message contains the message in which a path's last step would be.
func (h *parsedMessage) hasParent(path string) bool {
	parent, nested := values.Parent(path)
	return !nested || h.has(parent)
}

// IsMessage reports whether a frame carries a complete message, and is not an end of stream or a
// WebSocket control frame.
func IsMessage(f *decode.Frame) bool {
	return f.End == nil && !f.Partial && f.Opcode.Kind() < captures.OpClose && f.Flags&(envelope.EndStream|envelope.Trailer) == 0
}

// Links are the relations between the frames of a captured exchange: which server frame each of the
// client's frames responds to, and which values in the client's frames the server issued.
type Links struct {
	// roles are the names of the two sides in messages for the user.
	roles roles
	// captured is the exchange.
	captured *decode.Exchange

	// types are the message types by direction; nil if unknown.
	types [2]protoreflect.MessageDescriptor

	// down are the server's messages, including its headers and joined texts.
	down []parsedMessage
	// run are the last messages, whose texts may be pieces of one text.
	run run
	// first maps each value to the index in down of the first message that has it.
	first map[string]int
	// issued are the values that a client frame had before any server frame did.
	issued map[string]bool

	// times is the number of occurrences of each small frame, by its bytes. A frame that has only empty messages
	// and occurs repeatedly is a heartbeat.
	times map[string]int

	// consistent caches, for the histories of a pair of field paths, whether the server sent every value that client
	// frames have at the one path before, at the other path.
	consistent map[histories]bool

	// ownPlaces are the paths, without indexes, for which isOwnPlace is true; nil until they are needed.
	ownPlaces map[string]bool
	// vocabularies caches isVocabulary.
	vocabularies map[histories]bool
	// ranks caches rank.
	ranks map[int]int
	// shapes counts the server's messages by their shapes, without heartbeats; nil until it is needed.
	shapes *values.ShapeIndex
	// upIndex and downIndex are the results of index; nil until they are needed.
	upIndex, downIndex *values.PathIndex
	// sources are the values that the server has issued before the client's message that is examined.
	sources values.SourceIndex
	// causes are, for each client message, the server messages before it; nil until they are needed.
	causes []causes
	// firstTerm maps each term to the index in down of the first message that has it; nil until it is needed.
	firstTerm map[string]int

	// up are the client's messages.
	up []parsedMessage
	// before is the number of messages in down that precede each client message.
	before []int

	// pairs are the paths at which the server issues small numbers and the client sends them back.
	pairs []pair
	// zeroCount is the number of bindings that zeros has found.
	zeroCount int
	// isPair has the elements of pairs, and isIssuing the paths of the server's frames in them.
	isPair    map[pair]bool
	isIssuing map[string]bool
	// tokens maps each issued identifier, in each encoding, to the position where it occurred first.
	tokens map[string]trace
	// own are words that the client sent before the server did.
	own map[string]bool
	// inside are, for each client message, the issued identifiers that are parts of longer texts.
	inside [][]innerBinding

	// questions are the server messages to which client messages respond.
	questions []question

	// turns has, for each message of the client, when a replay may send it (after which server messages) and which
	// identifiers in it must be replaced by those of the live server. nil until the method Turns computes it.
	turns []Turn

	// asked are the questions by their index in down.
	asked map[int]*question

	// kinds are the types of questions.
	kinds []*questionType

	// budget limits how many bytes are decompressed.
	budget values.Budget

	// echo restores captured values in live messages that repeat edits.
	echo editEcho
}

// histories are hashes of the values that the client has at one path and the server at another one.
type histories struct{ up, down uint64 }

// A pair is the path at which the server issues small numbers, from, and the path at which the client
// sends them back.
type pair struct {
	// path is the path in the client's frames, and from that in the server's frames.
	path, from string
}

// zero is the Leaf.Value of a number that is zero and therefore absent in protobuf.
const zero = "n0"

// NewLinks analyses a captured exchange. types are the types of its messages by direction; nil if
// unknown.
func NewLinks(ex *decode.Exchange, types [2]protoreflect.MessageDescriptor) *Links {
	return newLinks(ex, types, asClient)
}

// newLinks is NewLinks for either side of the exchange; r names the sides.
func newLinks(ex *decode.Exchange, types [2]protoreflect.MessageDescriptor, r roles) *Links {
	l := &Links{roles: r, captured: ex, types: types, first: map[string]int{}, issued: map[string]bool{}, times: map[string]int{}, consistent: map[histories]bool{}, vocabularies: map[histories]bool{}, ranks: map[int]int{}, isPair: map[pair]bool{}, isIssuing: map[string]bool{}, tokens: map[string]trace{}, own: map[string]bool{}, asked: map[int]*question{}, budget: values.MaxInflated}
	ups := 0
	for i := range ex.Frames {
		f := &ex.Frames[i]
		if len(f.Data) <= heartbeatBytes {
			l.times[string(f.Data)]++
		}
		if f.Dir == captures.Up {
			ups++
		}
	}

	// Parsed messages are large, so that the lists of 200,000 of them must not grow step by step.
	l.up, l.down = make([]parsedMessage, 0, ups), make([]parsedMessage, 0, len(ex.Frames)-ups+1)
	l.before, l.inside = make([]int, 0, ups), slices.Grow(l.inside, ups)
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
			if !h.heartbeat {
				l.addJoined(l.run.end(true))
			}
			l.up = append(l.up, h)
			l.before = append(l.before, len(l.down))
			l.inside = append(l.inside, l.search(&h))
		} else {
			l.addServerMessage(h)
		}
	}
	return l
}

// Captured returns the captured exchange.
func (l *Links) Captured() *decode.Exchange { return l.captured }

// parse divides a frame's message into its values (leaves).
func (l *Links) parse(f *decode.Frame) parsedMessage {
	h := parsedMessage{frame: f, leaves: values.Leaves(f, l.types[f.Dir])}
	for i := range h.leaves {
		h.leaves[i].Budget = &l.budget
	}
	h.shape = values.ShapeOf(h.leaves)
	h.heartbeat = l.isHeartbeat(f, h.leaves, l.times[string(f.Data)])
	return h
}

// addServerMessage adds the next captured message of the server, or its headers.
func (l *Links) addServerMessage(h parsedMessage) {
	l.addJoined(l.run.add(&h))
	for k := range h.leaves {
		if _, ok := l.first[h.leaves[k].Value]; !ok {
			l.first[h.leaves[k].Value] = len(l.down)
		}
	}
	l.down = append(l.down, h)
	l.indexTokens(len(l.down) - 1)
}

// trailersOf returns the trailers of a response: those of HTTP, and those that gRPC-Web and Connect send in the last
// frame of the body.
func trailersOf(ex *decode.Exchange) captures.Headers {
	list := slices.Clone(ex.ResponseTrailers)
	for i := range ex.Frames {
		f := &ex.Frames[i]
		if f.Dir != captures.Down || f.End == nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(f.End.Metadata)) {
			for _, value := range f.End.Metadata[name] {
				list = append(list, captures.Header{Name: name, Value: value})
			}
		}
	}
	return list
}

// parseHeaders converts response headers to a message with one leaf for each header; nil if there are
// none.
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

// from returns the name of a server message for the user, such as "down/4".
func (l *Links) from(h *parsedMessage) string {
	switch {
	case h.shape.IsHeaders():
		return l.roles.headers
	case h.shape.IsJoined():
		return l.nameOfRun(h)
	}
	return fmt.Sprintf("%s/%d", l.roles.in, h.frame.Seq)
}

// isHeartbeat reports whether a frame is sent periodically and responds to nothing: by a field's name
// if names are known, otherwise if it contains only empty messages and occurs repeatedly. times is how
// often its bytes occur.
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

// namesOf returns the names of all fields in a message, in lower case and joined to one text.
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

// cause returns the server frame for which client frame i waits: the last one before it that is not a
// heartbeat; nil if there is none, or if frame i is a heartbeat. after is the number of such server
// frames.
func (l *Links) cause(i int) (at *target, after int) {
	if l.up[i].heartbeat {
		return nil, 0
	}
	c := l.causesOf(i)
	if c.last < 0 {
		return nil, 0
	}
	return l.target(c.last, ""), c.number
}

// causes describes the server messages before a client message, without heartbeats, headers and joined texts.
type causes struct {
	// number is their number, and last the index of the last one in Links.down; -1 if there is none.
	number, last int
}

// causesOf returns the server messages before client message i.
func (l *Links) causesOf(i int) causes {
	if l.causes == nil {
		l.causes = make([]causes, 0, len(l.before))
		c := causes{last: -1}
		j := 0
		for _, before := range l.before {
			for ; j < before; j++ {
				if d := &l.down[j]; !d.heartbeat && d.shape.IsFrame() {
					c = causes{c.number + 1, j}
				}
			}
			l.causes = append(l.causes, c)
		}
	}
	return l.causes[i]
}

// target describes server frame j, and the value at path in it, for finding the corresponding live
// frame.
func (l *Links) target(j int, path string) *target {
	t := &target{seq: l.down[j].frame.Seq, down: j, shape: l.down[j].shape, path: path, nth: l.rank(j)}
	if path != "" {
		_, down := l.index()
		t.nthAt = down.Rank(path, j)
	}
	return t
}

// rank returns the number of server messages of the shape of message j, up to message j.
func (l *Links) rank(j int) int {
	if n, known := l.ranks[j]; known {
		return n
	}
	if l.shapes == nil {
		l.shapes = &values.ShapeIndex{}
		for k := range l.down {
			if !l.down[k].heartbeat {
				l.shapes.Add(l.down[k].shape, k)
			}
		}
	}
	n := l.shapes.Count(l.down[j].shape, j)
	l.ranks[j] = n
	return n
}

// bindings returns the values in client frame i that the server issued.
func (l *Links) bindings(i int) []Binding {
	var out []Binding
	bound := map[string]bool{}
	leaves := l.up[i].leaves
	_, down := l.index()
	l.sources.Add(down.Messages(), l.before[i])
	alone := values.Scalars(leaves) == 1
	for k := 0; k < len(leaves); k++ {
		v := &leaves[k]
		j, from := l.source(i, v, alone)
		if from == nil {
			continue
		}
		b := Binding{Path: v.Path, From: l.from(&l.down[j]), FromPath: from.Path, value: v.Value, source: *l.target(j, from.Path)}
		// the header's text, whatever the codec of the frame
		if l.down[j].shape.IsHeaders() {
			b.token = string(v.Data)
		}
		b.json = l.up[i].frame.Tree == nil
		if text := string(v.Data); !v.IsMessage() && credential.IsRedacted(text) {
			b.redacted = text
		}
		out = append(out, b)
		if p := (pair{v.Path, from.Path}); v.Number && v.Last == from.Last && !l.isPair[p] {
			l.pairs = append(l.pairs, p)
			l.isPair[p], l.isIssuing[p.from] = true, true
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

// index returns the indexes of the client's and of the server's messages. It must not be called before all
// messages were added.
func (l *Links) index() (up, down *values.PathIndex) {
	if l.upIndex == nil {
		l.upIndex, l.downIndex = indexOf(l.up), indexOf(l.down)
	}
	return l.upIndex, l.downIndex
}

// indexOf returns the index of the values in messages by their path.
func indexOf(messages []parsedMessage) *values.PathIndex {
	leaves := make([][]values.Leaf, len(messages))
	for j := range messages {
		leaves[j] = messages[j].leaves
	}
	return values.NewPathIndex(leaves, func(j int) bool { return messages[j].shape.IsJoined() })
}

// zeros returns bindings for identifiers that are zero and therefore absent in client frame i and in
// the server's frame: other client frames have at the same path a number that the server issued. It
// requires that bindings was called for all frames.
//
// Limits: maxZeros, since a frame with few fields lacks the numbers of all others.
func (l *Links) zeros(i int) []Binding {
	var out []Binding
	for _, p := range l.pairs {
		if l.up[i].has(p.path) || !l.up[i].hasParent(p.path) {
			continue
		}
		for j := l.before[i] - 1; j >= 0; j-- {
			d := &l.down[j]
			if d.heartbeat || !d.shape.IsFrame() || !d.hasParent(p.from) {
				continue
			}
			if !d.has(p.from) {
				if l.zeroCount++; l.zeroCount > maxZeros+zerosPerMessage*len(l.up) {
					return out
				}
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

// source finds the last server frame before client frame i that issued the value v; from is nil if
// there is none. A long value may be in any field of it; a short one must be in a field of the same
// number and depth whose values the client always sends back. The depth may differ if v is the frame's
// only value and other frames send back the same field.
//
// The values before client frame i must have been added to l.sources. alone means that v is the frame's only value.
func (l *Links) source(i int, v *values.Leaf, alone bool) (at int, from *values.Leaf) {
	if !values.MayHaveSource(v) || !v.Small && l.issued[v.Value] || !l.wasIssued(v.Value, l.before[i]) {
		return 0, nil
	}
	up, _ := l.index()
	s := values.SourceSearch{Key: values.SourceKeyOf(v), History: up.History(v.Path), Depth: v.Depth}
	isSource := func(d *values.Leaf) bool { return true }
	if v.Small {
		if s.Alone = alone; alone {
			s.Pairs = len(l.pairs)
		}
		isSource = func(d *values.Leaf) bool {
			return (d.Depth == v.Depth || alone && l.isIssuing[d.Path]) && l.alwaysIssuedAt(v, d)
		}
	} else if s.Message = v.IsMessage(); !s.Message && !hasIDFormat(v.Text()) {
		s.Own = l.isOwnPlace(v.Path)
		isSource = func(d *values.Leaf) bool { return !s.Own && !l.isVocabulary(v.Path, d.Path) }
	}
	p, ok := l.sources.Find(s, func(p values.Position) bool { return isSource(&l.down[p.Message].leaves[p.Leaf]) })
	if !ok {
		return 0, nil
	}
	return int(p.Message), &l.down[p.Message].leaves[p.Leaf]
}

// alwaysIssuedAt reports whether every value that client frames have at the path of v was sent before
// by the server at the path of d.
func (l *Links) alwaysIssuedAt(v, d *values.Leaf) bool {
	up, down := l.index()
	key := histories{up.History(v.Path), down.History(d.Path)}
	if ok, known := l.consistent[key]; known {
		return ok
	}
	ok := !slices.ContainsFunc(up.Places(v.Path), func(p values.Position) bool {
		before := l.before[p.Message]
		return before > 0 && !down.IsBefore(d.Path, up.Value(p), before)
	})
	l.consistent[key] = ok
	return ok
}

// wasIssued reports whether one of the first server messages has this value; before is their number.
func (l *Links) wasIssued(value string, before int) bool {
	at, ok := l.first[value]
	return ok && at < before
}

// nestedBindings returns bindings for issued identifiers that are only parts of values in client frame
// i. Values at the paths in bound are skipped, because they are bound as a whole.
func (l *Links) nestedBindings(i int, bound map[string]bool) (out []Binding) {
	for _, n := range l.inside[i] {
		leaf := &l.up[i].leaves[n.leaf]
		if bound[leaf.Path] || n.how == values.AsIs && !n.id && l.isOwn(n.token, leaf.Path, n.path) {
			continue
		}
		d := &l.down[n.down]
		out = append(out, Binding{
			Path: leaf.Path, From: l.from(d), FromPath: n.path, Part: n.part, How: string(n.how),
			json: l.up[i].frame.Tree == nil, value: leaf.Value, token: n.token, also: n.also, source: *l.target(n.down, n.path),
		})
	}
	return out
}
