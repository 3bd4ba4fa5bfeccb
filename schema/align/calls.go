package align

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/envelope"
	"unwire/schema"
)

// maxCalls is how many calls of one RPC method, in each encoding, are considered for pairing.
const maxCalls = 200

// Calls collects RPC calls and finds those that were recorded both in protobuf and in JSON. The zero value is
// empty.
type Calls struct {
	// Schema provides the message types of the methods. It may be nil.
	Schema *schema.Schema
	// methods maps "service/rpc" to the collected calls of that RPC method.
	methods map[string]*method
}

// A method has the collected calls of one RPC method.
type method struct {
	// call identifies the RPC method.
	call decode.Call
	// types are the message types of requests and responses; nil if no schema defines them.
	types [2]protoreflect.MessageDescriptor
	// proto are the calls whose messages are encoded in protobuf.
	proto []call
	// json are the calls whose messages are encoded in JSON.
	json []call
}

// A call has the messages of one recorded RPC call.
type call struct {
	// file is the path of the capture with the call.
	file string
	// id is the number of the exchange within its capture.
	id int64
	// begun is when the call started.
	begun time.Time
	// messages are the call's messages, indexed by captures.Direction.
	messages [2][]message
}

// A message is one encoded message of a call.
type message struct {
	// data is the message in protobuf or JSON.
	data []byte
	// address is the address of the message's frame, for reports.
	address string
}

// AddCapture adds the calls of a capture; if id is not 0, only the exchange with that number. Exchanges that
// form one conversation are joined first, as by conversation.EachCall; part disables that. file is the name of
// the capture in the addresses of frames.
//
// Errors: those of conversation.EachCall. A damaged capture is read as far as possible.
func (c *Calls) AddCapture(ctx context.Context, file string, src captures.Capture, id int64, part bool) error {
	return conversation.EachCall(ctx, src, id, part, decode.Options{}, func(ex *decode.Exchange, joined bool) error {
		if !joined {
			c.Add(file, ex)
		}
		return nil
	})
}

// Add adds one exchange; file is the name of its capture in addresses. It ignores an exchange that is encoded
// neither in protobuf nor in JSON, or that has no complete message.
func (c *Calls) Add(file string, ex *decode.Exchange) {
	isJSON := strings.HasSuffix(ex.Codec, "json")

	// Only protobuf and JSON can be matched with each other.
	if ex.Service == "" || !isJSON && !strings.HasSuffix(ex.Codec, "proto") {
		return
	}
	one := call{file: file, id: ex.ID, begun: ex.Started}
	for i := range ex.Frames {
		f := &ex.Frames[i]
		// Ends of streams and damaged frames are no messages.
		if f.End != nil || f.Err != nil || f.Partial || f.Flags&(envelope.EndStream|envelope.Trailer) != 0 {
			continue
		}
		one.messages[f.Dir] = append(one.messages[f.Dir], message{f.Data, fmt.Sprintf("%s#%d/%s/%d", file, ex.ID, f.Dir, f.Seq)})
	}

	if len(one.messages[captures.Up])+len(one.messages[captures.Down]) == 0 {
		return
	}
	if c.methods == nil {
		c.methods = map[string]*method{}
	}
	key := ex.Service + "/" + ex.RPC
	m := c.methods[key]
	if m == nil {
		m = &method{call: ex.Call}
		if c.Schema != nil {
			m.types[captures.Up], m.types[captures.Down] = c.Schema.FrameType(ex.Call, captures.Up), c.Schema.FrameType(ex.Call, captures.Down)
		}
		c.methods[key] = m
	}

	// The two codecs are kept apart; matching pairs a call of one with a call of the other.
	if isJSON {
		m.json = append(m.json, one)
	} else {
		m.proto = append(m.proto, one)
	}
}

// SetSchema replaces the definitions that provide the message types, for calls that were added already as well.
func (c *Calls) SetSchema(s *schema.Schema) {
	c.Schema = s
	for _, m := range c.methods {
		m.types[captures.Up], m.types[captures.Down] = s.FrameType(m.call, captures.Up), s.FrameType(m.call, captures.Down)
	}
}

// Unpaired counts the calls of one RPC method for which no call in the other encoding was found.
type Unpaired struct {
	// Method is the RPC method as "service/rpc".
	Method string
	// Proto is the number of unpaired calls in protobuf.
	Proto int
	// JSON is the number of unpaired calls in JSON.
	JSON int
	// Why explains why the calls were not paired, if they are ambiguous; otherwise "".
	Why string
}

// Pair finds the calls that were recorded in both encodings and adds their messages to the aligner a. It
// returns the calls for which it found no counterpart.
//
// Shape: a call in protobuf and a call in JSON are a pair if their requests can be the same data and no other
// call competes; if requests alone do not decide, the responses must agree too. Calls that alternate between the
// encodings are paired in their order. The messages of streams are paired in their order; if one stream has
// more, they are paired from both ends as far as they can be the same data.
func (c *Calls) Pair(a *Aligner) (unpaired []Unpaired, err error) {
	for _, key := range slices.Sorted(maps.Keys(c.methods)) {
		m := c.methods[key]
		pairs, ambiguous := m.pairs()
		u := Unpaired{Method: key, Proto: len(m.proto) - len(pairs), JSON: len(m.json) - len(pairs)}
		if ambiguous {
			u.Why = ", and the calls can be paired in several ways"
		}
		if u.Proto > 0 || u.JSON > 0 {
			unpaired = append(unpaired, u)
		}
		for _, p := range pairs {
			for dir := range p[0].messages {
				if err := m.addPairs(a, p, captures.Direction(dir)); err != nil {
					return unpaired, err
				}
			}
		}
	}
	return unpaired, nil
}

// addPairs adds the messages that a pair of calls sent in one direction to the aligner.
func (m *method) addPairs(a *Aligner, p [2]call, dir captures.Direction) error {
	protos, jsons := counterparts(p[0].messages[dir], p[1].messages[dir])
	for i := range protos {
		pair := dataPair{
			Message: m.name(dir), Type: m.types[dir], Proto: protos[i].data, JSON: jsons[i].data,
			Evidence: [2]string{protos[i].address, jsons[i].address},
		}
		if err := a.addPair(pair); err != nil {
			return err
		}
	}
	return nil
}

// counterparts pairs the messages of two streams by their order and returns two lists of equal length. If one
// stream has additional messages, such as heartbeats, it pairs messages from the beginning and from the end as
// far as they can be the same data.
func counterparts(protos, jsons []message) ([]message, []message) {
	// short is the number of pairs at most.
	short := min(len(protos), len(jsons))
	if len(protos) == len(jsons) {
		return protos, jsons
	}
	front := 0
	for front < short && sameData(protos[front], jsons[front]) {
		front++
	}
	back := 0
	for back < short-front && sameData(protos[len(protos)-1-back], jsons[len(jsons)-1-back]) {
		back++
	}
	return slices.Concat(protos[:front], protos[len(protos)-back:]), slices.Concat(jsons[:front], jsons[len(jsons)-back:])
}

// sameData reports whether a protobuf and a JSON message may represent the same data.
func sameData(p, j message) bool {
	ok, err := Same(p.data, j.data)
	return err == nil && ok
}

// name returns the full name of the message type in a direction. If it is unknown, the name is derived from the
// RPC method, as package infer does.
func (m *method) name(dir captures.Direction) string {
	if md := m.types[dir]; md != nil {
		return string(md.FullName())
	}
	pkg := m.call.Service[:strings.LastIndexByte(m.call.Service, '.')+1]
	name := strings.ToUpper(m.call.RPC[:min(1, len(m.call.RPC))]) + m.call.RPC[min(1, len(m.call.RPC)):]
	return pkg + name + [...]string{"Request", "Response"}[dir]
}

// pairs returns pairs of a protobuf call and a JSON call with the same data. ambiguous is set if some calls
// were left out because they could be paired in several ways.
func (m *method) pairs() (out [][2]call, ambiguous bool) {
	// An alternating recording is a deliberate one, so its order is trusted.
	if out = m.turns(); out != nil {
		return out, false
	}

	protos, jsons := m.proto[:min(len(m.proto), maxCalls)], m.json[:min(len(m.json), maxCalls)]
	like := make([][]bool, len(protos))
	for i := range protos {
		like[i] = make([]bool, len(jsons))
		for j := range jsons {
			like[i][j] = same(&protos[i], &jsons[j], captures.Up)
		}
	}

	// The responses decide if the requests do not.
	if !unique(like) {
		for i := range protos {
			for j := range jsons {
				like[i][j] = like[i][j] && same(&protos[i], &jsons[j], captures.Down)
			}
		}
	}

	for i, row := range like {
		j := slices.Index(row, true)
		if j < 0 {
			continue
		}
		if count(row) > 1 || columnCount(like, j) > 1 {
			// Calls with equal content are exchangeable, so any pair of them is right.
			if !interchangeable(protos, jsons, like, i, j) {
				ambiguous = true
				continue
			}
			// Use both up, so that no other call is paired with them.
			for k := range jsons {
				like[i][k] = k == j
			}
			for k := range protos {
				like[k][j] = k == i
			}
		}
		out = append(out, [2]call{protos[i], jsons[j]})
	}
	return append(out, alikes(protos, jsons, out)...), ambiguous
}

// alikes pairs calls that are not in paired. Their requests differ, for example in a fresh identifier, but
// share significant values with each other and with no other request.
func alikes(protos, jsons []call, paired [][2]call) (out [][2]call) {
	taken := func(c *call, side int) bool {
		return slices.ContainsFunc(paired, func(p [2]call) bool { return p[side].file == c.file && p[side].id == c.id })
	}
	like := make([][]bool, len(protos))
	for i := range protos {
		like[i] = make([]bool, len(jsons))
		for j := range jsons {
			like[i][j] = !taken(&protos[i], 0) && !taken(&jsons[j], 1) && alike(&protos[i], &jsons[j])
		}
	}

	// Only a pair that is unique in both directions is certain.
	for i, row := range like {
		if j := slices.Index(row, true); j >= 0 && count(row) == 1 && columnCount(like, j) == 1 {
			out = append(out, [2]call{protos[i], jsons[j]})
		}
	}
	return out
}

// alike reports whether the first messages of two requests have significant values in common.
func alike(p, j *call) bool {
	protos, jsons := p.messages[captures.Up], j.messages[captures.Up]
	if len(protos) == 0 || len(jsons) == 0 {
		return false
	}
	ok, err := shareValues(protos[0].data, jsons[0].data)
	return err == nil && ok
}

// interchangeable reports whether all calls that could be paired with protobuf call i or JSON call j have the
// same content, byte for byte. like[i][j] means that the two could be paired.
func interchangeable(protos, jsons []call, like [][]bool, i, j int) bool {
	for k := range protos {
		if like[k][j] && !equal(&protos[i], &protos[k]) {
			return false
		}
	}
	for k := range jsons {
		if like[i][k] && !equal(&jsons[j], &jsons[k]) {
			return false
		}
	}
	return true
}

// equal reports whether two calls in the same encoding have the same messages, byte for byte.
func equal(a, b *call) bool {
	for dir := range a.messages {
		if !slices.EqualFunc(a.messages[dir], b.messages[dir], func(x, y message) bool { return string(x.data) == string(y.data) }) {
			return false
		}
	}
	return true
}

// turns pairs calls that were recorded alternately in the two encodings, in the order of time. It returns nil
// unless all calls of the method alternate and each pair of requests can be the same data.
func (m *method) turns() (out [][2]call) {
	if len(m.proto) != len(m.json) || len(m.proto) > maxCalls {
		return nil
	}
	type turn struct {
		*call
		json bool
	}
	var all []turn
	for i := range m.proto {
		all = append(all, turn{&m.proto[i], false}, turn{&m.json[i], true})
	}

	slices.SortStableFunc(all, func(a, b turn) int {
		return cmp.Or(a.begun.Compare(b.begun), cmp.Compare(a.file, b.file), cmp.Compare(a.id, b.id))
	})

	// Each two consecutive calls must be one of each encoding, in any order.
	for i := 0; i < len(all); i += 2 {
		p, j := all[i], all[i+1]
		if p.json {
			p, j = j, p
		}
		if p.json || !j.json || !same(p.call, j.call, captures.Up) {
			return nil
		}
		out = append(out, [2]call{*p.call, *j.call})
	}
	return out
}

// same reports whether a protobuf call and a JSON call have equally many messages in a direction, and each two
// can represent the same data.
func same(p, j *call, dir captures.Direction) bool {
	protos, jsons := p.messages[dir], j.messages[dir]
	if len(protos) != len(jsons) {
		return false
	}
	for i := range protos {
		if !sameData(protos[i], jsons[i]) {
			return false
		}
	}
	return true
}

// unique reports whether no row and no column of the matrix has more than one true element.
func unique(like [][]bool) bool {
	for _, row := range like {
		if count(row) > 1 {
			return false
		}
	}
	if len(like) > 0 {
		for j := range like[0] {
			if columnCount(like, j) > 1 {
				return false
			}
		}
	}
	return true
}

// count returns the number of true elements.
func count(row []bool) (n int) {
	for _, b := range row {
		if b {
			n++
		}
	}
	return n
}

// columnCount returns the number of true elements in column j of a matrix.
func columnCount(like [][]bool, j int) (n int) {
	for _, row := range like {
		if row[j] {
			n++
		}
	}
	return n
}
