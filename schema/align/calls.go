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

// maxCalls bounds the calls of one method in one codec that are compared with
// all of the other.
const maxCalls = 200

// Calls collects exchanges, and finds out which were the same call in two
// codecs. The zero value is ready.
type Calls struct {
	Schema  *schema.Schema // for the names of types; may be nil
	methods map[string]*method
}

type method struct {
	call  decode.Call
	types [2]protoreflect.MessageDescriptor
	proto []call
	json  []call
}

// A call is an exchange's messages by direction.
type call struct {
	file     string
	id       int64
	begun    time.Time
	messages [2][]message
}

type message struct {
	data    []byte
	address string
}

// AddCapture takes the exchanges of the capture that file names, or only the one with
// the number id if that is not 0, as conversation.EachCall walks them; those that carry
// a conversation do not count on their own.
//
// Errors: those of conversation.EachCall, of a damaged capture after all that is readable.
func (c *Calls) AddCapture(ctx context.Context, file string, src captures.Capture, id int64, part bool) error {
	return conversation.EachCall(ctx, src, id, part, decode.Options{}, func(ex *decode.Exchange, joined bool) error {
		if !joined {
			c.Add(file, ex)
		}
		return nil
	})
}

// Add takes an exchange of the capture that file names. One that is not of
// protobuf or JSON, or has no message, is passed over.
func (c *Calls) Add(file string, ex *decode.Exchange) {
	isJSON := strings.HasSuffix(ex.Codec, "json")
	if ex.Service == "" || !isJSON && !strings.HasSuffix(ex.Codec, "proto") {
		return
	}
	one := call{file: file, id: ex.ID, begun: ex.Started}
	for i := range ex.Frames {
		f := &ex.Frames[i]
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
	if isJSON {
		m.json = append(m.json, one)
	} else {
		m.proto = append(m.proto, one)
	}
}

// NameBy takes the names of types from other definitions than so far.
func (c *Calls) NameBy(s *schema.Schema) {
	c.Schema = s
	for _, m := range c.methods {
		m.types[captures.Up], m.types[captures.Down] = s.FrameType(m.call, captures.Up), s.FrameType(m.call, captures.Down)
	}
}

// Unpaired says what of a method found no counterpart.
type Unpaired struct {
	Method string
	Proto  int    // calls
	JSON   int    // calls
	Why    string // "" where there is nothing in the other codec
}

// Pair puts into a what the same calls said in both codecs.
//
// Shape: a call in protobuf and one in JSON are a pair where their requests can
// be the same data, and their answers if requests alone do not tell; and where
// neither has another call like that. Calls that were made by turns, one codec
// after the other, are paired as they came. Of streams, messages are paired in
// their order; where one side has more, from either end as far as they can be
// the same data.
func (c *Calls) Pair(a *Aligner) (unpaired []Unpaired, err error) {
	for _, key := range slices.Sorted(maps.Keys(c.methods)) {
		m := c.methods[key]
		pairs, ambiguous := m.pairs()
		u := Unpaired{Method: key, Proto: len(m.proto) - len(pairs), JSON: len(m.json) - len(pairs)}
		if ambiguous {
			u.Why = "which call is which cannot be told: their data allow several ways"
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

// counterparts are the messages of two streams that are a pair by their order.
// Where one has more, a heartbeat say, they are those that can be the same data
// from the beginning on, and up to the end.
func counterparts(protos, jsons []message) ([]message, []message) {
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

// sameData reports whether two messages can be the same data.
func sameData(p, j message) bool {
	ok, err := Same(p.data, j.data)
	return err == nil && ok
}

// name is the type's, or one made from the method's, as schema infer makes it.
func (m *method) name(dir captures.Direction) string {
	if md := m.types[dir]; md != nil {
		return string(md.FullName())
	}
	pkg := m.call.Service[:strings.LastIndexByte(m.call.Service, '.')+1]
	name := strings.ToUpper(m.call.RPC[:min(1, len(m.call.RPC))]) + m.call.RPC[min(1, len(m.call.RPC)):]
	return pkg + name + [...]string{"Request", "Response"}[dir]
}

// pairs finds the pairs of calls; ambiguous says that some could be paired in
// several ways.
func (m *method) pairs() (out [][2]call, ambiguous bool) {
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
	if !unique(like) { // let the answers tell, where they do
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
			if !repeats(protos, jsons, like, i, j) {
				ambiguous = true
				continue
			}
			for k := range jsons { // any will do, and this one is used up
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

// alikes are pairs of what is left whose requests are not the same, as with an
// id that each request has anew, but alike, and like no others.
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
	for i, row := range like {
		if j := slices.Index(row, true); j >= 0 && count(row) == 1 && columnCount(like, j) == 1 {
			out = append(out, [2]call{protos[i], jsons[j]})
		}
	}
	return out
}

// alike reports whether the first messages of two requests are.
func alike(p, j *call) bool {
	protos, jsons := p.messages[captures.Up], j.messages[captures.Up]
	if len(protos) == 0 || len(jsons) == 0 {
		return false
	}
	ok, err := alikeData(protos[0].data, jsons[0].data)
	return err == nil && ok
}

// repeats reports whether all calls like call i of one codec, and like call j
// of the other, say the same byte for byte: then it does not matter which is which.
func repeats(protos, jsons []call, like [][]bool, i, j int) bool {
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

func equal(a, b *call) bool {
	for dir := range a.messages {
		if !slices.EqualFunc(a.messages[dir], b.messages[dir], func(x, y message) bool { return string(x.data) == string(y.data) }) {
			return false
		}
	}
	return true
}

// turns are the pairs of calls that were made by turns, each like its pair;
// nil if they were not.
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

// same reports whether the messages of a direction can be the same data.
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

func count(row []bool) (n int) {
	for _, b := range row {
		if b {
			n++
		}
	}
	return n
}

func columnCount(like [][]bool, j int) (n int) {
	for _, row := range like {
		if row[j] {
			n++
		}
	}
	return n
}
