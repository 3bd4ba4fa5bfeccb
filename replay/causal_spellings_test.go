package replay

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"unwire/replay/testdata/toolloop"
)

// spelling is a form in which the answer has a text that follows from the text of the question.
func spelling(name string, issued func(i issue) string, sent func(issued string) string) form {
	return form{
		name:  name,
		put:   func(m *toolloop.Message, i issue) { m.Text = issued(i) },
		carry: func(a, q *toolloop.Message) { a.Text = sent(q.Text) },
		get:   func(m *toolloop.Message) string { return m.Text },
		is:    func(i issue) string { return sent(issued(i)) },
	}
}

// dashed is a UUID, of 32 hexadecimal digits.
func dashed(s string) string {
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// spelledForms are further forms: the client sends the identifier in another spelling, in a part of a
// text or in another kind of field, or the identifier is short.
func spelledForms() []form {
	uuid := func(i issue) string { return i.uuid }
	hexID := func(i issue) string { return i.hex }
	digits := regexp.MustCompile(`\d+`)
	counterText := func(format string) func(i issue) string {
		return func(i issue) string { return fmt.Sprintf(format, i.counter) }
	}
	word := func(s string) string { return regexp.MustCompile(`[0-9a-f-]{32,}`).FindString(s) }
	list := []form{
		spelling("lower case as upper", hexID, strings.ToUpper),
		spelling("upper case as lower", func(i issue) string { return strings.ToUpper(i.uuid) }, strings.ToLower),
		spelling("upper hex as lower", func(i issue) string { return strings.ToUpper(i.hex) }, strings.ToLower),
		spelling("dashes as none", uuid, func(s string) string { return strings.ReplaceAll(s, "-", "") }),
		spelling("dashes as none in upper case", uuid, func(s string) string { return strings.ToUpper(strings.ReplaceAll(s, "-", "")) }),
		spelling("none as dashes", hexID, dashed),
		spelling("uuid as urn", uuid, func(s string) string { return "urn:uuid:" + s }),
		spelling("uuid in braces", uuid, func(s string) string { return "{" + s + "}" }),
		spelling("base64 as base64url", func(i issue) string { return i.base64 }, func(s string) string {
			b, _ := base64.StdEncoding.DecodeString(s)
			return base64.RawURLEncoding.EncodeToString(b)
		}),
		spelling("base64url as base64", func(i issue) string { return base64.RawURLEncoding.EncodeToString(i.raw) }, func(s string) string {
			b, _ := base64.RawURLEncoding.DecodeString(s)
			return base64.StdEncoding.EncodeToString(b)
		}),
		spelling("odd base64 as base64url", func(i issue) string { return base64.StdEncoding.EncodeToString(append(i.raw[:14:14], 0xff)) }, func(s string) string {
			b, _ := base64.StdEncoding.DecodeString(s)
			return base64.RawURLEncoding.EncodeToString(b)
		}),
		spelling("base64 as hex", func(i issue) string { return i.base64 }, func(s string) string {
			b, _ := base64.StdEncoding.DecodeString(s)
			return hex.EncodeToString(b)
		}),
		spelling("hex as base64", hexID, func(s string) string {
			b, _ := hex.DecodeString(s)
			return base64.StdEncoding.EncodeToString(b)
		}),
		spelling("percent", func(i issue) string { return base64.StdEncoding.EncodeToString(i.raw[:14]) }, func(s string) string {
			return "https://example.com/result?id=" + url.QueryEscape(s) + "&ok=1"
		}),
		spelling("percent path", func(i issue) string { return "calls/" + i.uuid + "/" + i.others[0] }, func(s string) string {
			return "https://example.com/" + url.PathEscape(s) + "/result"
		}),
		spelling("with a prefix", hexID, func(s string) string { return "res-" + s }),
		spelling("with a suffix", uuid, func(s string) string { return s + "-result" }),
		spelling("with underscores", uuid, func(s string) string { return "out_" + s + "_1" }),
		spelling("prefix replaced", func(i issue) string { return "toolu_" + i.hex }, func(s string) string { return "result_" + strings.TrimPrefix(s, "toolu_") }),
		spelling("prefix removed", func(i issue) string { return "toolu_" + i.hex }, func(s string) string { return strings.TrimPrefix(s, "toolu_") }),
		spelling("random prefix removed", func(i issue) string { return i.name }, func(s string) string { return strings.TrimPrefix(s, "call_") }),
		spelling("two in a text", func(i issue) string { return "copy " + i.uuid + " to " + i.others[0] }, func(s string) string {
			w := strings.Fields(s)
			return "copied to " + w[3] + " from " + w[1]
		}),
		spelling("two joined", func(i issue) string { return i.uuid + " " + i.others[0] }, func(s string) string {
			w := strings.Fields(s)
			return w[1] + ":" + w[0]
		}),
		spelling("two joined with a dash", func(i issue) string { return i.uuid + " " + i.others[0] }, func(s string) string {
			w := strings.Fields(s)
			return w[1] + "-" + w[0]
		}),
		spelling("JSON-RPC counter in a text", counterText(`{"jsonrpc":"2.0","id":%d,"method":"tools/call"}`), func(s string) string {
			return `{"jsonrpc":"2.0","id":` + digits.FindString(s[len(`{"jsonrpc":"2.0"`):]) + `,"result":{}}`
		}),
		spelling("counter in a word", counterText("call-%d"), func(s string) string { return s }),
		spelling("counter in a text", counterText("Please run call %d now"), func(s string) string { return "Call " + digits.FindString(s) + " has ended" }),
		spelling("counter in a word of another", counterText("call-%d"), func(s string) string { return strings.Replace(s, "call", "result", 1) }),
		spelling("data URL", func(i issue) string {
			return "data:application/json;base64," + base64.StdEncoding.EncodeToString([]byte(`{"id":"`+i.others[0]+`"}`))
		}, func(s string) string {
			b, _ := base64.StdEncoding.DecodeString(s[strings.IndexByte(s, ',')+1:])
			return "data:application/json;base64," + base64.StdEncoding.EncodeToString([]byte(`{"for":"`+word(string(b))+`"}`))
		}),
		spelling("XML", func(i issue) string { return `<call id="` + i.uuid + `"><arg>1</arg></call>` }, func(s string) string { return `<result for="` + word(s) + `"/>` }),
		spelling("key and value", func(i issue) string { return "id=" + i.hex + ";tries=1" }, func(s string) string { return "for=" + word(s) + ";ok" }),
		spelling("hex with 0x", func(i issue) string { return "0x" + i.hex }, func(s string) string { return s[2:] }),
		spelling("snowflake", func(i issue) string { return strconv.FormatUint(i.fixed>>1, 10) }, func(s string) string { return "message " + s + " read" }),
		spelling("path of a resource", func(i issue) string { return "projects/p1/calls/" + i.hex }, func(s string) string { return s + "/results/1" }),
		spelling("file", hexID, func(s string) string { return "/tmp/" + s + ".log" }),
		spelling("file with a prefix", hexID, func(s string) string { return "/tmp/out-" + s + ".log" }),
		spelling("short name", func(i issue) string { return "k" + i.hex[:4] }, func(s string) string { return s }),
		spelling("words", func(i issue) string { return strings.ToLower(letters(i.raw[:5]) + "-" + letters(i.raw[5:10])) }, func(s string) string { return s }),
		spelling("ULID", func(i issue) string { return "01J" + strings.ToUpper(i.hex[:23]) }, func(s string) string { return "done " + s }),
		spelling("nanoid", func(i issue) string { return base64.RawURLEncoding.EncodeToString(i.raw)[:21] }, func(s string) string { return "done " + s }),
		spelling("hex of 6", func(i issue) string { return i.hex[:6] }, func(s string) string { return s }),
		spelling("hex of 12", func(i issue) string { return i.hex[:12] }, func(s string) string { return "done " + s }),
		spelling("time with a counter", func(i issue) string { return fmt.Sprintf("%d-%d", 1764000000000+i.fixed%1e9, i.counter) }, func(s string) string { return s }),
		spelling("time as an id in a text", func(i issue) string { return fmt.Sprintf("run %d", 1764000000000+i.fixed%1e9) }, func(s string) string { return "ran " + digits.FindString(s) }),
		{
			name: "number as hex", is: func(i issue) string { return fmt.Sprintf("%016x", i.fixed) },
			put:   func(m *toolloop.Message, i issue) { m.Fixed = i.fixed },
			carry: func(a, q *toolloop.Message) { a.Text = fmt.Sprintf("%016x", q.Fixed) },
			get:   func(m *toolloop.Message) string { return m.Text },
		},
		{
			name: "number as big-endian bytes", is: func(i issue) string { return fmt.Sprintf("%016x", i.fixed) },
			put:   func(m *toolloop.Message, i issue) { m.Fixed = i.fixed },
			carry: func(a, q *toolloop.Message) { a.Raw = binary.BigEndian.AppendUint64(nil, q.Fixed) },
			get:   func(m *toolloop.Message) string { return hex.EncodeToString(m.Raw) },
		},
		{
			name: "raw bytes as uuid", is: func(i issue) string { return dashed(i.hex) },
			put:   func(m *toolloop.Message, i issue) { m.Raw = i.raw },
			carry: func(a, q *toolloop.Message) { a.Text = dashed(hex.EncodeToString(q.Raw)) },
			get:   func(m *toolloop.Message) string { return m.Text },
		},
		{
			name: "uuid as raw bytes", is: func(i issue) string { return strings.ReplaceAll(i.uuid, "-", "") },
			put:   func(m *toolloop.Message, i issue) { m.Text = i.uuid },
			carry: func(a, q *toolloop.Message) { a.Raw, _ = hex.DecodeString(strings.ReplaceAll(q.Text, "-", "")) },
			get:   func(m *toolloop.Message) string { return hex.EncodeToString(m.Raw) },
		},
		{
			name: "counter as text", is: counterText("%d"),
			put:   func(m *toolloop.Message, i issue) { m.Counter = i.counter },
			carry: func(a, q *toolloop.Message) { a.Text = strconv.FormatUint(q.Counter, 10) },
			get:   func(m *toolloop.Message) string { return m.Text },
		},
		{
			name: "counter in another field", is: counterText("%d"),
			put:   func(m *toolloop.Message, i issue) { m.Counter = i.counter },
			carry: func(a, q *toolloop.Message) { a.Call = &toolloop.Call{Counter: q.Counter} },
			get:   func(m *toolloop.Message) string { return fmt.Sprint(m.Call.GetCounter()) },
		},
		{
			name: "text and counter", is: func(i issue) string { return i.uuid + fmt.Sprint(i.counter) },
			put:   func(m *toolloop.Message, i issue) { m.Text, m.Counter = i.uuid, i.counter },
			carry: func(a, q *toolloop.Message) { a.Text, a.Counter = q.Text, q.Counter },
			get:   func(m *toolloop.Message) string { return m.Text + fmt.Sprint(m.Counter) },
		},
		{
			name: "text and counter joined", is: func(i issue) string { return i.uuid + ":" + fmt.Sprint(i.counter) },
			put:   func(m *toolloop.Message, i issue) { m.Text, m.Counter = i.uuid, i.counter },
			carry: func(a, q *toolloop.Message) { a.Text = q.Text + ":" + fmt.Sprint(q.Counter) },
			get:   func(m *toolloop.Message) string { return m.Text },
		},
		{
			name: "two halves", is: func(i issue) string { return i.hex },
			put:   func(m *toolloop.Message, i issue) { m.Text = i.hex },
			carry: func(a, q *toolloop.Message) { a.Text, a.Call = q.Text[:16], &toolloop.Call{Text: q.Text[16:]} },
			get:   func(m *toolloop.Message) string { return m.Text + m.Call.GetText() },
		},
		{
			name: "two numbers of a uuid", is: func(i issue) string { return i.hex },
			put: func(m *toolloop.Message, i issue) {
				m.Call = &toolloop.Call{Numbers: []uint64{binary.BigEndian.Uint64(i.raw), binary.BigEndian.Uint64(i.raw[8:])}}
			},
			carry: func(a, q *toolloop.Message) { a.Call = &toolloop.Call{Numbers: q.Call.GetNumbers()} },
			get: func(m *toolloop.Message) string {
				n := append(m.Call.GetNumbers(), 0, 0)
				return fmt.Sprintf("%016x%016x", n[0], n[1])
			},
		},
		{
			name: "two numbers of a message", is: func(i issue) string { return i.hex },
			put: func(m *toolloop.Message, i issue) {
				m.Fixed, m.Counter = binary.BigEndian.Uint64(i.raw), binary.BigEndian.Uint64(i.raw[8:])
			},
			carry: func(a, q *toolloop.Message) { a.Fixed, a.Counter = q.Fixed, q.Counter },
			get:   func(m *toolloop.Message) string { return fmt.Sprintf("%016x%016x", m.Fixed, m.Counter) },
		},
		{
			name: "all so far", is: func(i issue) string { return strings.Join(i.others, ",") },
			put:   func(m *toolloop.Message, i issue) { m.List = i.others },
			carry: func(a, q *toolloop.Message) { a.Text = strings.Join(q.List, ",") },
			get:   func(m *toolloop.Message) string { return m.Text },
		},
		{
			name: "list in reverse", is: func(i issue) string { return strings.Join(i.others, ",") },
			put: func(m *toolloop.Message, i issue) { m.List = i.others },
			carry: func(a, q *toolloop.Message) {
				for k := range q.List {
					a.List = append(a.List, q.List[len(q.List)-1-k])
				}
			},
			get: func(m *toolloop.Message) string {
				if len(m.List) != 3 {
					return ""
				}
				return m.List[2] + "," + m.List[1] + "," + m.List[0]
			},
		},
		{
			name: "one of a list", is: func(i issue) string { return i.others[2] },
			put:   func(m *toolloop.Message, i issue) { m.List = i.others },
			carry: func(a, q *toolloop.Message) { a.Text = q.List[2] },
			get:   func(m *toolloop.Message) string { return m.Text },
		},
		{
			name: "list to map", is: func(i issue) string { return strings.Join(i.others, ",") },
			put: func(m *toolloop.Message, i issue) { m.List = i.others },
			carry: func(a, q *toolloop.Message) {
				a.ByName = map[string]string{}
				for k, v := range q.List {
					a.ByName[v] = "result " + strconv.Itoa(k)
				}
			},
			get: func(m *toolloop.Message) string {
				out := make([]string, 3)
				for k, v := range m.ByName {
					n, _ := strconv.Atoi(digits.FindString(v))
					out[n%3] = k
				}
				return strings.Join(out, ",")
			},
		},
		{
			name: "number in a value of a map", is: func(i issue) string { return fmt.Sprint(i.fixed) },
			put:   func(m *toolloop.Message, i issue) { m.ByName = map[string]string{"id": fmt.Sprint(i.fixed)} },
			carry: func(a, q *toolloop.Message) { a.ByName = map[string]string{"for": q.ByName["id"]} },
			get:   func(m *toolloop.Message) string { return m.ByName["for"] },
		},
		{
			name: "counter in a value of a map", is: counterText("%d"),
			put:   func(m *toolloop.Message, i issue) { m.ByName = map[string]string{"id": fmt.Sprint(i.counter)} },
			carry: func(a, q *toolloop.Message) { a.ByName = map[string]string{"id": q.ByName["id"]} },
			get:   func(m *toolloop.Message) string { return m.ByName["id"] },
		},
		{
			name: "counter as a map key", is: counterText("%d"),
			put: func(m *toolloop.Message, i issue) { m.ByNumber = map[uint64]string{i.counter: "open"} },
			carry: func(a, q *toolloop.Message) {
				for k := range q.ByNumber {
					a.ByNumber = map[uint64]string{k: "done"}
				}
			},
			get: func(m *toolloop.Message) string {
				for k := range m.ByNumber {
					return fmt.Sprint(k)
				}
				return ""
			},
		},
		{
			name: "deflate", is: hexID, get: func(m *toolloop.Message) string { return word(unpacked("deflate", m.Packed)) },
			put: func(m *toolloop.Message, i issue) {
				m.Packed = packedIn("deflate", `{"id":"`+i.hex+`","note":"compressed by the server"}`)
			},
			carry: func(a, q *toolloop.Message) {
				a.Packed = packedIn("deflate", `{"for":"`+word(unpacked("deflate", q.Packed))+`","note":"compressed by the client"}`)
			},
		},
		{
			name: "counter in gzip", is: counterText("%d"), get: func(m *toolloop.Message) string { return digits.FindString(unpacked("gzip", m.Packed)) },
			put: func(m *toolloop.Message, i issue) {
				m.Packed = packedIn("gzip", fmt.Sprintf(`{"id":%d,"note":"compressed by the server"}`, i.counter))
			},
			carry: func(a, q *toolloop.Message) {
				a.Packed = packedIn("gzip", `{"id":`+digits.FindString(unpacked("gzip", q.Packed))+`,"note":"compressed by the client"}`)
			},
		},
		{
			name: "base64 of gzip", is: hexID, get: func(m *toolloop.Message) string {
				b, _ := base64.StdEncoding.DecodeString(m.Text)
				return word(unpacked("gzip", b))
			},
			put: func(m *toolloop.Message, i issue) {
				m.Text = base64.StdEncoding.EncodeToString(packedIn("gzip", `{"id":"`+i.hex+`","note":"compressed by the server"}`))
			},
			carry: func(a, q *toolloop.Message) {
				b, _ := base64.StdEncoding.DecodeString(q.Text)
				a.Text = base64.StdEncoding.EncodeToString(packedIn("gzip", `{"for":"`+word(unpacked("gzip", b))+`","note":"compressed by the client"}`))
			},
		},
		{
			name: "signed number", is: func(i issue) string { return fmt.Sprint(-int64(i.fixed)) },
			put:   func(m *toolloop.Message, i issue) { m.Text = fmt.Sprint(-int64(i.fixed)) },
			carry: func(a, q *toolloop.Message) { a.Text = q.Text },
			get:   func(m *toolloop.Message) string { return m.Text },
		},
	}
	for _, f := range []form{
		spelling("JSON in pieces", func(i issue) string { return `{"id":"` + i.hex + `","path":"a.go"}` }, func(s string) string { return "for " + word(s) }),
		spelling("id in pieces", func(i issue) string { return i.name }, func(s string) string { return s }),
		spelling("prefix and suffix in pieces", uuid, func(s string) string { return "[" + s + "]" }),
	} {
		f.pieces = inPieces
		list = append(list, f)
	}
	return append(append(list, derivedForms()...), orderedForms()...)
}

// inPieces divides a text into pieces of 3 to 12 bytes, which differ from text to text.
func inPieces(text string) (out []string) {
	sum := sha256.Sum256([]byte(text))
	for i := 0; text != ""; i++ {
		n := min(3+int(sum[i%len(sum)]%10), len(text))
		out = append(out, text[:n])
		text = text[n:]
	}
	return out
}

// numberForm is a form in which the question has a number, and the answer the text that follows from it.
func numberForm(name string, number func(i issue) uint64, text func(n uint64) string) form {
	return form{
		name:  name,
		put:   func(m *toolloop.Message, i issue) { m.Fixed = number(i) },
		carry: func(a, q *toolloop.Message) { a.Text = text(q.Fixed) },
		get:   func(m *toolloop.Message) string { return m.Text },
		is:    func(i issue) string { return text(number(i)) },
	}
}

// derivedForms are forms in which the client computes something from the identifier.
func derivedForms() []form {
	fixed := func(i issue) uint64 { return i.fixed }
	doubleBits := func(i issue) uint64 { return math.Float64bits(float64(i.fixed >> 12)) }
	return []form{
		numberForm("sint64 as text", fixed, func(n uint64) string { return fmt.Sprint(int64(n>>1) ^ -int64(n&1)) }),
		numberForm("negative number as text", func(i issue) uint64 { return -i.fixed }, func(n uint64) string { return fmt.Sprint(int64(n)) }),
		numberForm("double as text", doubleBits, func(n uint64) string { return fmt.Sprintf("%.0f", math.Float64frombits(n)) }),
		numberForm("next number", func(i issue) uint64 { return i.fixed >> 30 }, func(n uint64) string { return fmt.Sprint(n + 1) }),
		numberForm("half of a hexadecimal number", fixed, func(n uint64) string { return fmt.Sprintf("%016x00000000000000a1", n) }),
		spelling("short hash", func(i issue) string { return i.hex }, func(s string) string { return s[:8] }),
		spelling("short id of a container", func(i issue) string { return i.hex + i.hex }, func(s string) string { return s[:12] }),
		spelling("first part of a uuid", func(i issue) string { return i.uuid }, func(s string) string { return "run " + s[:8] }),
		spelling("upper hex with 0x in lower case", func(i issue) string { return strings.ToUpper(i.hex[:24]) }, func(s string) string { return "0x" + strings.ToLower(s) }),
		spelling("md5", func(i issue) string { return i.uuid }, func(s string) string { return fmt.Sprintf("%x", md5.Sum([]byte(s))) }),
		spelling("sha1", func(i issue) string { return i.uuid }, func(s string) string { return fmt.Sprintf("%x", sha1.Sum([]byte(s))) }),
		{
			name: "base32 as bytes", is: func(i issue) string { return i.hex },
			put:   func(m *toolloop.Message, i issue) { m.Text = base32.StdEncoding.EncodeToString(i.raw) },
			carry: func(a, q *toolloop.Message) { a.Raw, _ = base32.StdEncoding.DecodeString(q.Text) },
			get:   func(m *toolloop.Message) string { return hex.EncodeToString(m.Raw) },
		},
	}
}

// letters is a made-up word.
func letters(b []byte) string {
	out := make([]byte, len(b))
	for i, c := range b {
		out[i] = "aeioulmnrstvbdgk"[c&15]
	}
	return string(out)
}
