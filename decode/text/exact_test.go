package text

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/envelope"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// A maker makes inputs: messages, and what becomes of them when bytes are lost,
// changed or mixed. Equal seeds make equal inputs.
type maker struct {
	*rand.Rand
	last []byte // the input before, to splice with

	choices []kind.Choice
	lists   protoreflect.MessageDescriptor
}

func newMaker(seed uint64) *maker {
	m := &maker{Rand: rand.New(rand.NewPCG(seed, 4)), lists: lists()}
	for n, word := range strings.Fields("packed-float packed-double packed-sint64 packed-bool packed-uint64 float double int64 sint64 bool string message fixed32 packed-fixed64 bytes uint64") {
		m.choices = append(m.choices, must(kind.ParseChoice(strconv.Itoa(n+1)+":"+word)))
	}
	return m
}

// input is one input with the options to read it with.
func (m *maker) input() ([]byte, Options) {
	var b []byte
	switch m.IntN(20) {
	case 0:
		b = m.bytes(m.IntN(40))
	case 1:
		for range m.IntN(3) + 1 {
			payload := m.message(2)
			flags := envelope.Flags([]byte{0, 0, 1, 2, 0x80, 0x44}[m.IntN(6)])
			b = envelope.Append(b, flags, payload)
		}
	case 2:
		for range m.IntN(4) + 1 {
			payload := m.message(2)
			b = append(wire.AppendVarint(b, uint64(len(payload))), payload...)
		}
	case 3:
		b = []byte(m.words())
	default:
		b = m.message(0)
	}
	whole := bytes.Clone(b)
	for range max(m.IntN(5)-1, 0) {
		b = m.mutate(b)
	}
	m.last = whole
	var o Options
	switch m.IntN(12) {
	case 0:
		b = []byte(hex.EncodeToString(b))
	case 1:
		b = []byte(base64.StdEncoding.EncodeToString(b))
	case 2:
		o.As = "message"
	case 3:
		o.As = "frames"
	case 4:
		o.As = "delimited"
	case 5:
		o.In = "raw"
	}
	switch m.IntN(6) {
	case 0:
		o.Choices = m.choices
	case 1:
		o.Type = m.lists
	}
	return b, o
}

func (m *maker) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(m.Uint32())
	}
	return b
}

func (m *maker) words() string {
	list := [...]string{"retry", "the file", "größer", "日本語", "{\"a\": 1}", "\n", "\t", "\x00", "https://h.example/a?b=c", "0a05", "AAAA", "\"", "\\", "`"}
	s := ""
	for range m.IntN(5) {
		s += list[m.IntN(len(list))]
	}
	return s
}

// message makes a message that nests, with what serializers do not write.
func (m *maker) message(depth int) []byte {
	var b []byte
	for range m.IntN(5) {
		number := uint64(m.IntN(20) + 1)
		if m.IntN(40) == 0 {
			number = []uint64{0, 15, 16, 1<<29 - 1, 1 << 29, 1<<61 - 1}[m.IntN(6)]
		}
		long := 0
		if m.IntN(20) == 0 {
			long = m.IntN(5)
		}
		tag := func(typ uint64) { b = m.varint(b, number<<3|typ, long) }
		switch k := m.IntN(9); {
		case k == 0:
			tag(1)
			b = binary.LittleEndian.AppendUint64(b, m.fixed64())
		case k == 1:
			tag(5)
			b = append(b, m.bytes(4)...)
		case k == 2 && depth < 4:
			tag(3)
			b = append(b, m.message(depth+1)...)
			tag(4)
		case k < 5 && depth < 4:
			tag(2)
			b = m.counted(b, m.message(depth+1), long)
		case k == 5:
			tag(2)
			b = m.counted(b, []byte(m.words()), long)
		case k == 6:
			tag(2)
			b = m.counted(b, m.packed(), long)
		case k == 7:
			tag(2)
			inner := m.message(depth + 1)
			switch m.IntN(4) {
			case 0:
				inner = []byte(hex.EncodeToString(inner))
			case 1:
				inner = []byte(base64.StdEncoding.EncodeToString(inner))
			case 2:
				inner = m.bytes(m.IntN(20))
			}
			b = m.counted(b, inner, long)
		default:
			tag(0)
			b = m.varint(b, m.Uint64()>>m.IntN(64), long)
		}
	}
	return b
}

// packed makes a packed list: of varints, or of floats with all that is strange in them.
func (m *maker) packed() (p []byte) {
	form := m.IntN(4)
	for range m.IntN(6) {
		switch form {
		case 0:
			p = binary.LittleEndian.AppendUint64(p, m.fixed64())
		case 1:
			p = append(p, packed32(strange32[m.IntN(len(strange32))])...)
		default:
			p = wire.AppendVarint(p, m.Uint64()>>m.IntN(64))
		}
	}
	return p
}

func (m *maker) fixed64() uint64 {
	if m.IntN(2) == 0 {
		return m.Uint64()
	}
	return []uint64{0, 1, 0x3ff8000000000000, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000001, 1 << 63, 0x3ff}[m.IntN(8)]
}

func (m *maker) varint(b []byte, v uint64, long int) []byte {
	return wire.AppendVarintWidth(b, v, wire.SizeVarint(v)+long)
}

func (m *maker) counted(b, payload []byte, long int) []byte {
	return append(m.varint(b, uint64(len(payload)), long), payload...)
}

// mutate changes an input in one place.
func (m *maker) mutate(b []byte) []byte {
	if len(b) == 0 {
		return m.bytes(m.IntN(4))
	}
	i := m.IntN(len(b))
	j := i + m.IntN(len(b)-i+1)
	switch m.IntN(8) {
	case 0:
		b[i] ^= 1 << m.IntN(8)
	case 1:
		b[i] = byte(m.Uint32())
	case 2:
		return b[:i]
	case 3:
		return append(b[:i], b[j:]...)
	case 4:
		return append(b[:j:j], b[i:]...)
	case 5:
		return append(b[:i:i], append(m.bytes(m.IntN(4)), b[i:]...)...)
	case 6:
		if len(m.last) > 0 {
			return append(b[:i:i], m.last[m.IntN(len(m.last)):]...)
		}
	case 7:
		b[i] = []byte{0, 1, 0x7f, 0x80, 0xff, 0x0a, 0x0b, 0x0c}[m.IntN(8)]
	}
	return b
}

// perSeed is how many inputs are made of one seed. Seeds go to all processors.
const perSeed = 25_000

// TestExact holds that any input comes back from the tree, from text and from
// JSON, that each byte belongs to one node, and that one edit changes its own
// bytes and the lengths around it. UNWIRE_LONG says how many inputs, if it is a
// number above 1; 1 is ten million. UNWIRE_SEED is the one seed to take, as a
// failure names it.
func TestExact(t *testing.T) {
	n := 2 * perSeed
	if s := os.Getenv("UNWIRE_LONG"); s != "" {
		n = 10_000_000
		if v, err := strconv.Atoi(s); err == nil && v > 1 {
			n = v
		}
	} else if testing.Short() {
		n = 10_000
	}
	each := min(n, perSeed)
	first, seeds := uint64(1), (n+each-1)/each
	if s := os.Getenv("UNWIRE_SEED"); s != "" {
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		first, seeds = v, 1
	}
	start := time.Now()
	var (
		sum  exact
		done int
		mu   sync.Mutex
	)
	next := make(chan uint64)
	go func() {
		defer close(next)
		for i := range seeds {
			next <- first + uint64(i)
		}
	}()
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), seeds) {
		workers.Go(func() {
			for seed := range next {
				if t.Failed() {
					continue
				}
				var e exact
				if msg := e.run(seed, each); msg != "" {
					t.Errorf("UNWIRE_SEED=%d, %s", seed, msg)
				}
				mu.Lock()
				sum.add(&e)
				if done += each; done%1_000_000 == 0 {
					t.Logf("%d inputs, %v", done, time.Since(start).Round(time.Second))
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	took := time.Since(start)
	t.Logf("%d inputs of seeds %d to %d, %d bytes, %v: %.0f inputs a second; %d were taken for frames, %d for delimited messages, %d for text; %d edits",
		done, first, first+uint64(seeds)-1, sum.bytes, took.Round(time.Millisecond), float64(done)/took.Seconds(), sum.as["frames"], sum.as["delimited"], sum.as["text"], sum.edits)
	if sum.as["frames"] == 0 || sum.as["delimited"] == 0 || sum.as["text"] == 0 || sum.edits < done/10 {
		t.Error("the inputs are all alike")
	}
}

// run checks n inputs of a seed, up to the first that does not come back.
func (e *exact) run(seed uint64, n int) string {
	m := newMaker(seed)
	for i := range n {
		in, o := m.input()
		if msg := e.check(m, in, o); msg != "" {
			return fmt.Sprintf("input %d, %+v, %x: %s", i, o, in, msg)
		}
	}
	return ""
}

// add sums what was seen.
func (e *exact) add(o *exact) {
	e.bytes += o.bytes
	e.edits += o.edits
	if e.as == nil {
		e.as = map[string]int{}
	}
	for as, n := range o.as {
		e.as[as] += n
	}
}

// exact is what the check keeps from one input to the next.
type exact struct {
	tree     wire.Tree
	text, js bytes.Buffer
	as       map[string]int
	bytes    int64
	edits    int
}

func (e *exact) check(m *maker, in []byte, o Options) string {
	e.bytes += int64(len(in))
	if e.as == nil {
		e.as = map[string]int{}
	}
	e.tree.Reset(in, wire.Options{})
	at := 0
	for s := range e.tree.Spans() {
		if s.Off != at || s.End <= s.Off {
			return "the spans do not meet"
		}
		at = s.End
	}
	if at != len(in) {
		return "bytes belong to no node"
	}
	d, err := Decode(in, o)
	if err != nil {
		return err.Error()
	}
	e.as[d.As]++
	e.text.Reset()
	e.js.Reset()
	if err := d.Text(&e.text); err != nil {
		return err.Error()
	}
	if got, err := Parse(e.text.Bytes()); err != nil || !bytes.Equal(got, in) {
		return "text:\n" + e.text.String() + "\ngives " + hex.EncodeToString(got)
	}
	if err := d.JSON(&e.js); err != nil {
		return err.Error()
	}
	if got, err := ParseJSON(e.js.Bytes()); err != nil || !bytes.Equal(got, in) {
		return "JSON:\n" + e.js.String() + "\ngives " + hex.EncodeToString(got)
	}
	return e.edit(m)
}

// edit sets one value and looks at what else has changed.
func (e *exact) edit(m *maker) string {
	t := &e.tree
	if len(t.Nodes) < 2 {
		return ""
	}
	i := int32(m.IntN(len(t.Nodes)-1) + 1)
	n := t.Node(i)
	if n.Type == wire.Garbage || n.Type == wire.StartGroup {
		return ""
	}
	value := t.Payload(i)
	if n.Type == wire.Len {
		value = m.bytes(m.IntN(200))
	} else if n.Type == wire.Varint {
		value = wire.AppendVarint(nil, m.Uint64()>>m.IntN(64))
	}
	out, err := wire.Splice(t, []wire.Edit{{Op: wire.SetValue, Node: i, Data: value}})
	if err != nil {
		return "edit: " + err.Error()
	}
	e.edits++
	// The enclosing lengths, outermost first.
	var lens []int32
	for p := n.Parent; p > 0; p = t.Nodes[p].Parent {
		if t.Nodes[p].Type == wire.Len {
			lens = append([]int32{p}, lens...)
		}
	}
	pos, rest := 0, out
	same := func(to int) bool {
		if to-pos > len(rest) || !bytes.Equal(t.Data[pos:to], rest[:to-pos]) {
			return false
		}
		pos, rest = to, rest[to-pos:]
		return true
	}
	for _, p := range lens {
		if !same(t.Nodes[p].TagEnd) {
			return "an edit changed bytes before it"
		}
		_, k := wire.ConsumeVarint(rest)
		pos, rest = t.Nodes[p].Val, rest[max(k, 0):]
	}
	if !same(n.TagEnd) {
		return "an edit changed bytes before it"
	}
	if n.Type == wire.Len {
		v, k := wire.ConsumeVarint(rest)
		if k <= 0 || v != uint64(len(value)) {
			return "an edit left a wrong length"
		}
		rest = rest[k:]
	}
	if !bytes.HasPrefix(rest, value) {
		return "an edit is not there"
	}
	if !bytes.Equal(rest[len(value):], t.Data[n.End:]) {
		return "an edit changed bytes behind it"
	}
	return ""
}
