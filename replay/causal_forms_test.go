package replay

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"unwire/decode/envelope"
	"unwire/decode/wire"
	"unwire/replay/testdata/toolloop"
)

// An issue is what a server issues with one question: the same value in the kinds
// that an identifier can have.
type issue struct {
	uuid, hex, base64, name string
	raw                     []byte // of 16 bytes
	counter, fixed          uint64
	others                  []string // further identifiers of the question
}

// newIssue draws the identifiers of question n of a run. The raw bytes parse as a
// message where parses is true.
func newIssue(r *rand.Rand, base uint64, n int, parses bool) issue {
	i := issue{raw: make([]byte, 16), counter: base + uint64(n), fixed: r.Uint64()>>1 | 1<<62}
	for {
		for k := range i.raw {
			i.raw[k] = byte(r.Uint32())
		}
		t := wire.Parse(i.raw, wire.Options{})
		if (t.Err() == nil) == parses && !bytes.ContainsAny(i.raw[:1], "\x1f\x28") {
			break
		}
	}
	h := hex.EncodeToString(i.raw)
	i.hex, i.uuid, i.base64 = h, uuidOf(h), base64.StdEncoding.EncodeToString(i.raw)
	i.name = "call_" + strings.ToUpper(h[:10]) + h[10:24]
	for range 3 {
		i.others = append(i.others, fmt.Sprintf("%016x%016x", r.Uint64(), r.Uint64()))
	}
	return i
}

// A form is a way in which a server issues an identifier and a client carries it on.
type form struct {
	name string
	put  func(m *toolloop.Message, i issue) // into the question

	// carry puts what the question has into the answer; nil: it has the same field.
	carry func(answer, question *toolloop.Message)

	// get returns the identifier that an answer has, and its form as issued has it.
	get func(m *toolloop.Message) string
	is  func(i issue) string

	// pieces divides the text of a question into messages that come before it; nil: the question has it.
	pieces func(text string) []string
	heard  string // the pieces that the client has received of the next question

	parses bool // the raw bytes of the captured run parse as a message
	header bool // the server issues it in the headers of its answer
}

var hexWord = regexp.MustCompile(`[0-9a-f]{32}`)

// packedIn compresses a text.
func packedIn(encoding, text string) []byte {
	b, err := envelope.Compress(encoding, []byte(text))
	if err != nil {
		panic(err)
	}
	return b
}

// unpacked is the text in compressed bytes; "" where there is none.
func unpacked(encoding string, b []byte) string {
	out, err := envelope.Decompress(encoding, b, 1<<20)
	if err != nil {
		return ""
	}
	return string(out)
}

func first(names map[string]string) string {
	for name := range names {
		return name
	}
	return ""
}

// causalForms are all forms.
func causalForms() []form {
	text := func(name string, of func(i issue) string) form {
		return form{
			name: name, is: of,
			put:   func(m *toolloop.Message, i issue) { m.Text = of(i) },
			carry: func(a, q *toolloop.Message) { a.Text = q.Text },
			get:   func(m *toolloop.Message) string { return m.Text },
		}
	}
	uuid := func(i issue) string { return i.uuid }
	hexID := func(i issue) string { return i.hex }
	inText := func(m *toolloop.Message) string { return hexWord.FindString(m.Text) }
	number := func(name string, of func(i issue) uint64, at func(m *toolloop.Message) *uint64) form {
		return form{
			name: name, is: func(i issue) string { return strconv.FormatUint(of(i), 10) },
			put:   func(m *toolloop.Message, i issue) { *at(m) = of(i) },
			carry: func(a, q *toolloop.Message) { *at(a) = *at(q) },
			get:   func(m *toolloop.Message) string { return strconv.FormatUint(*at(m), 10) },
		}
	}
	counter := func(i issue) uint64 { return i.counter }
	fixed := func(i issue) uint64 { return i.fixed }
	atCounter := func(m *toolloop.Message) *uint64 { return &m.Counter }
	raw := func(name string, parses bool) form {
		return form{
			name: name, parses: parses, is: func(i issue) string { return string(i.raw) },
			put:   func(m *toolloop.Message, i issue) { m.Raw = i.raw },
			carry: func(a, q *toolloop.Message) { a.Raw = q.Raw },
			get:   func(m *toolloop.Message) string { return string(m.Raw) },
		}
	}
	list := []form{
		text("uuid", uuid), text("hex", hexID), text("base64", func(i issue) string { return i.base64 }),
		text("name", func(i issue) string { return i.name }),
		number("counter", counter, atCounter), number("fixed64", fixed, func(m *toolloop.Message) *uint64 { return &m.Fixed }),
		raw("raw bytes", false), raw("raw bytes that parse", true),
		{
			name: "JSON text", is: hexID, get: inText,
			put:   func(m *toolloop.Message, i issue) { m.Text = `{"id":"` + i.hex + `","tries":[1,2]}` },
			carry: func(a, q *toolloop.Message) { a.Text = `{"ok":true,"for":"` + inText(q) + `"}` },
		},
		{
			name: "JSON in JSON", is: hexID, get: inText,
			put:   func(m *toolloop.Message, i issue) { m.Text = `{"body":"{\"id\":\"` + i.hex + `\",\"n\":1}"}` },
			carry: func(a, q *toolloop.Message) { a.Text = `{"result":"{\"of\":[\"` + inText(q) + `\"]}"}` },
		},
		{
			name: "map key", is: uuid,
			put:   func(m *toolloop.Message, i issue) { m.ByName = map[string]string{i.uuid: "open"} },
			carry: func(a, q *toolloop.Message) { a.ByName = map[string]string{first(q.ByName): "done"} },
			get:   func(m *toolloop.Message) string { return first(m.ByName) },
		},
		{
			name: "several map keys", is: func(i issue) string { return i.uuid + i.hex },
			put: func(m *toolloop.Message, i issue) { m.ByName = map[string]string{i.uuid: "open", i.hex: "shut"} },
			carry: func(a, q *toolloop.Message) {
				a.ByName = map[string]string{}
				for k, v := range q.ByName {
					a.ByName[k] = "was " + v
				}
			},
			get: func(m *toolloop.Message) (open string) {
				shut := ""
				for k, v := range m.ByName {
					if v == "was open" {
						open = k
					} else {
						shut = k
					}
				}
				return open + shut
			},
		},
		{
			name: "number as a map key", is: func(i issue) string { return strconv.FormatUint(i.fixed, 10) },
			put: func(m *toolloop.Message, i issue) { m.ByNumber = map[uint64]string{i.fixed: "open"} },
			carry: func(a, q *toolloop.Message) {
				for k := range q.ByNumber {
					a.ByNumber = map[uint64]string{k: "done"}
				}
			},
			get: func(m *toolloop.Message) string {
				for k := range m.ByNumber {
					return strconv.FormatUint(k, 10)
				}
				return ""
			},
		},
		{
			name: "key of a JSON object", is: hexID, get: inText,
			put:   func(m *toolloop.Message, i issue) { m.Text = `{"calls":{"` + i.hex + `":{"tries":1}}}` },
			carry: func(a, q *toolloop.Message) { a.Text = `{"results":{"` + inText(q) + `":{"ok":true}}}` },
		},
		{
			name: "part of a text", is: hexID, get: inText,
			put: func(m *toolloop.Message, i issue) {
				m.Text = "Please run call " + i.hex + ", and log to /tmp/" + i.hex + ".log"
			},
			carry: func(a, q *toolloop.Message) { a.Text = "Call " + inText(q) + " has ended." },
		},
		{
			name: "list", is: func(i issue) string { return strings.Join(i.others, ",") },
			put:   func(m *toolloop.Message, i issue) { m.List = i.others },
			carry: func(a, q *toolloop.Message) { a.List = q.List },
			get:   func(m *toolloop.Message) string { return strings.Join(m.List, ",") },
		},
		{
			name: "list of numbers", is: func(i issue) string { return fmt.Sprint([]uint64{i.counter, i.counter + 700}) },
			put: func(m *toolloop.Message, i issue) {
				m.Call = &toolloop.Call{Numbers: []uint64{i.counter, i.counter + 700}}
			},
			carry: func(a, q *toolloop.Message) { a.Call = &toolloop.Call{Numbers: q.Call.GetNumbers()} },
			get:   func(m *toolloop.Message) string { return fmt.Sprint(m.Call.GetNumbers()) },
		},
		{
			name: "one level below", is: func(i issue) string { return i.hex + string(i.raw) },
			put:   func(m *toolloop.Message, i issue) { m.Call = &toolloop.Call{Text: i.hex, Raw: i.raw} },
			carry: func(a, q *toolloop.Message) { a.Call = &toolloop.Call{Text: q.Call.GetText(), Raw: q.Call.GetRaw()} },
			get:   func(m *toolloop.Message) string { return m.Call.GetText() + string(m.Call.GetRaw()) },
		},
		{
			name: "text of a number", is: func(i issue) string { return strconv.FormatUint(i.fixed, 10) },
			put:   func(m *toolloop.Message, i issue) { m.Fixed = i.fixed },
			carry: func(a, q *toolloop.Message) { a.Text = strconv.FormatUint(q.Fixed, 10) },
			get:   func(m *toolloop.Message) string { return m.Text },
		},
		{
			name: "raw bytes as hex", is: hexID, get: inText, parses: true,
			put:   func(m *toolloop.Message, i issue) { m.Raw = i.raw },
			carry: func(a, q *toolloop.Message) { a.Text = hex.EncodeToString(q.Raw) },
		},
		{
			name: "hex as raw bytes", is: func(i issue) string { return string(i.raw) }, parses: true,
			put: func(m *toolloop.Message, i issue) { m.Text = i.hex },
			carry: func(a, q *toolloop.Message) {
				a.Raw, _ = hex.DecodeString(q.Text) // the server checks it
			},
			get: func(m *toolloop.Message) string { return string(m.Raw) },
		},
		{
			name: "number in JSON", is: func(i issue) string { return strconv.FormatUint(i.fixed>>12, 10) },
			put:   func(m *toolloop.Message, i issue) { m.Text = fmt.Sprintf(`{"id":%d}`, i.fixed>>12) },
			carry: func(a, q *toolloop.Message) { a.Text = `{"for":` + regexp.MustCompile(`\d+`).FindString(q.Text) + `}` },
			get:   func(m *toolloop.Message) string { return regexp.MustCompile(`\d+`).FindString(m.Text) },
		},
		{
			name: "headers", header: true, is: uuid,
			put:   func(*toolloop.Message, issue) {},
			carry: func(a, q *toolloop.Message) { a.Text = q.Text },
			get:   func(m *toolloop.Message) string { return m.Text },
		},
	}
	for _, encoding := range []string{"gzip", "zstd", "br"} {
		inside := func(m *toolloop.Message) string { return hexWord.FindString(unpacked(encoding, m.Packed)) }
		list = append(list, form{
			name: encoding, is: hexID, get: inside,
			put: func(m *toolloop.Message, i issue) {
				m.Packed = packedIn(encoding, `{"id":"`+i.hex+`","note":"compressed by the server"}`)
			},
			carry: func(a, q *toolloop.Message) {
				a.Packed = packedIn(encoding, `{"for":"`+inside(q)+`","note":"compressed by the client"}`)
			},
		})
	}
	list = append(list, form{
		name: "message in gzip", is: func(i issue) string { return string(i.raw) + strconv.FormatUint(i.fixed, 10) },
		put: func(m *toolloop.Message, i issue) {
			b, _ := proto.Marshal(&toolloop.Call{Raw: i.raw, Counter: i.fixed, Text: "in gzip"})
			m.Packed = packedIn("gzip", string(b))
		},
		carry: func(a, q *toolloop.Message) {
			var c toolloop.Call
			_ = proto.Unmarshal([]byte(unpacked("gzip", q.Packed)), &c)
			c.Text = "again"
			b, _ := proto.Marshal(&c)
			a.Packed = packedIn("gzip", string(b))
		},
		get: func(m *toolloop.Message) string {
			var c toolloop.Call
			_ = proto.Unmarshal([]byte(unpacked("gzip", m.Packed)), &c)
			return string(c.Raw) + strconv.FormatUint(c.Counter, 10)
		},
	}, form{
		name: "out of gzip", is: hexID, get: inText,
		put: func(m *toolloop.Message, i issue) {
			m.Packed = packedIn("gzip", `{"id":"`+i.hex+`","note":"only here"}`)
		},
		carry: func(a, q *toolloop.Message) { a.Text = "Call " + hexWord.FindString(unpacked("gzip", q.Packed)) },
	}, form{
		name: "into gzip", is: hexID, get: func(m *toolloop.Message) string { return hexWord.FindString(unpacked("gzip", m.Packed)) },
		put:   func(m *toolloop.Message, i issue) { m.Text = i.hex },
		carry: func(a, q *toolloop.Message) { a.Packed = packedIn("gzip", `{"for":"`+q.Text+`","note":"only there"}`) },
	}, form{
		name: "fixed64 in a message of base64", is: func(i issue) string { return strconv.FormatUint(i.fixed, 10) },
		put: func(m *toolloop.Message, i issue) { m.Fixed = i.fixed },
		carry: func(a, q *toolloop.Message) {
			b := binary.LittleEndian.AppendUint64([]byte{0x0a, 4, 't', 'e', 's', 't', 0x11}, q.Fixed)
			a.Text = base64.StdEncoding.EncodeToString(b)
		},
		get: func(m *toolloop.Message) string {
			b, _ := base64.StdEncoding.DecodeString(m.Text)
			if len(b) != 15 {
				return ""
			}
			return strconv.FormatUint(binary.LittleEndian.Uint64(b[7:]), 10)
		},
	})
	return list
}
