package eval

import (
	"bytes"
	"compress/zlib"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"unicode/utf16"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// A filler makes messages of real schemas, with values that the fields' names call
// for; what a name does not tell is drawn once for each field. It shares nothing with
// the generator of the styles.
type filler struct {
	r      *rand.Rand
	habits map[protoreflect.FullName]*habit
	left   int // messages that the sample may still have
	inside int // bytes fields around what is made
}

// A habit is what the values of one field have in common.
type habit struct {
	presence float64
	many     float64 // mean length of a list
	pick     int
	script   [2]rune
}

var scripts = [...][2]rune{{'a', 'z'}, {'a', 'z'}, {'a', 'z'}, {0x430, 0x44f}, {0x5d0, 0x5ea}, {0x627, 0x64a}, {0x905, 0x939}, {0xe01, 0xe30}, {0x3041, 0x3093}, {0x4e00, 0x7fff}, {0xac00, 0xd7a3}, {0x3b1, 0x3c9}, {0xe0, 0xff}}

func newFiller(seed uint64) *filler {
	return &filler{r: rand.New(rand.NewPCG(seed, 4242)), habits: map[protoreflect.FullName]*habit{}}
}

func (w *filler) sample(md protoreflect.MessageDescriptor) []byte {
	w.left = 60
	b, err := proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(w.message(md, 0))
	if err != nil {
		panic(err)
	}
	return b
}

func (w *filler) habit(fd protoreflect.FieldDescriptor) *habit {
	h := w.habits[fd.FullName()]
	if h == nil {
		r := w.r
		h = &habit{presence: []float64{1, .9, .6, .3, .1}[r.IntN(5)], many: []float64{1, 2, 4, 12}[r.IntN(4)], pick: r.IntN(1 << 20), script: scripts[r.IntN(len(scripts))]}
		w.habits[fd.FullName()] = h
	}
	return h
}

func (w *filler) message(md protoreflect.MessageDescriptor, depth int) *dynamicpb.Message {
	m := dynamicpb.NewMessage(md)
	w.left--
	switch md.FullName() {
	case "google.protobuf.Timestamp":
		m.Set(md.Fields().ByNumber(1), protoreflect.ValueOfInt64(1_600_000_000+w.r.Int64N(200_000_000)))
		m.Set(md.Fields().ByNumber(2), protoreflect.ValueOfInt32(int32(w.r.IntN(1000))*1_000_000+int32(w.r.IntN(2))*int32(w.r.IntN(1_000_000))))
		return m
	case "google.protobuf.Duration":
		m.Set(md.Fields().ByNumber(1), protoreflect.ValueOfInt64(w.r.Int64N(300)))
		m.Set(md.Fields().ByNumber(2), protoreflect.ValueOfInt32(int32(w.r.IntN(10))*100_000_000))
		return m
	case "google.protobuf.Any":
		inner := []string{"google.rpc.ErrorInfo", "google.protobuf.StringValue", "envoy.config.core.v3.Node"}[w.r.IntN(3)]
		m.Set(md.Fields().ByNumber(1), protoreflect.ValueOfString("type.googleapis.com/"+inner))
		m.Set(md.Fields().ByNumber(2), protoreflect.ValueOfBytes(append([]byte{10, 5}, w.letters(5)...)))
		return m
	}
	for i := range md.Oneofs().Len() {
		if o := md.Oneofs().Get(i); !o.IsSynthetic() && w.r.IntN(8) > 0 {
			w.set(m, o.Fields().Get(w.r.IntN(o.Fields().Len())), depth)
		}
	}
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		if o := fd.ContainingOneof(); (o == nil || o.IsSynthetic()) && w.r.Float64() < w.habit(fd).presence {
			w.set(m, fd, depth)
		}
	}
	return m
}

func (w *filler) set(m *dynamicpb.Message, fd protoreflect.FieldDescriptor, depth int) {
	if (depth > 4 || w.left <= 0) && (fd.Message() != nil || fd.IsMap()) {
		return
	}
	h := w.habit(fd)
	n := 1 + int(w.r.ExpFloat64()*(h.many-0.5))
	if fd.Message() != nil {
		n = min(n, 4)
	}
	switch {
	case fd.IsMap():
		for range n {
			m.Mutable(fd).Map().Set(w.value(fd.MapKey(), depth).MapKey(), w.value(fd.MapValue(), depth))
		}
	case fd.IsList():
		list := m.Mutable(fd).List()
		for range n {
			list.Append(w.value(fd, depth))
		}
	default:
		m.Set(fd, w.value(fd, depth))
	}
}

func (w *filler) value(fd protoreflect.FieldDescriptor, depth int) protoreflect.Value {
	h, r, name := w.habit(fd), w.r, strings.ToLower(string(fd.Name()))
	switch k := fd.Kind(); k {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return protoreflect.ValueOfMessage(w.message(fd.Message(), depth+1))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(w.text(name, h))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(w.raw(fd, name, h))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(r.IntN(10) < []int{10, 5, 2}[h.pick%3])
	case protoreflect.EnumKind:
		vs := fd.Enum().Values()
		return protoreflect.ValueOfEnum(vs.Get(r.IntN(min(vs.Len(), 1+h.pick%8))).Number())
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(w.real(h)))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(w.real(h))
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(w.integer(name, h, 31, true)))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(w.integer(name, h, 63, true))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(w.integer(name, h, 31, false)))
	default:
		return protoreflect.ValueOfUint64(uint64(w.integer(name, h, 63, false)))
	}
}

func has(name string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(name, p) {
			return true
		}
	}
	return false
}

func (w *filler) integer(name string, h *habit, bits int, signed bool) int64 {
	r := w.r
	wide := bits > 32
	switch {
	case has(name, "nano") && wide:
		return 1_700_000_000_000_000_000 + r.Int64N(1e15)
	case has(name, "_ms", "millis") && wide:
		return 1_720_000_000_000 + r.Int64N(1e9)
	case has(name, "time", "_at", "created", "updated", "expir") && wide:
		return 1_720_000_000 + r.Int64N(1e7)
	case has(name, "port"):
		return []int64{80, 443, 8080, 9090, int64(1024 + r.IntN(64000))}[r.IntN(5)]
	case has(name, "size", "bytes", "length", "limit"):
		return int64(math.Exp(r.Float64() * 16))
	case has(name, "count", "num", "total", "index", "version", "retries", "replicas"):
		return int64(r.ExpFloat64() * []float64{2, 20, 500}[h.pick%3])
	case has(name, "id", "hash", "seed") && wide:
		return r.Int64() >> (h.pick % 20)
	case has(name, "percent", "quality", "level", "priority"):
		return int64(r.IntN(101))
	}
	v := int64(math.Exp(r.Float64() * []float64{2, 5, 10, 14}[h.pick%4]))
	if signed && h.pick%5 == 0 && r.IntN(3) == 0 {
		v = -v
	}
	return v
}

func (w *filler) real(h *habit) float64 {
	r := w.r
	switch h.pick % 6 {
	case 0:
		return r.Float64()
	case 1:
		return math.Round(r.Float64()*10000) / 100
	case 2:
		return r.NormFloat64() * 30
	case 3:
		return r.Float64()*360 - 180
	case 4:
		return math.Exp(r.NormFloat64() * 5)
	}
	return float64(r.IntN(500))
}

func (w *filler) letters(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = "etaoinshrdlucmfwygpbvkqjxz"[min(int(w.r.ExpFloat64()*7), 25)]
	}
	return string(b)
}

func (w *filler) word(h *habit) string {
	if h.script[0] == 'a' {
		return w.letters(2 + w.r.IntN(9))
	}
	var b strings.Builder
	n := 2 + w.r.IntN(7)
	for range n {
		b.WriteRune(h.script[0] + rune(w.r.IntN(int(h.script[1]-h.script[0])+1)))
	}
	return b.String()
}

func (w *filler) words(h *habit, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = w.word(h)
	}
	if h.script[0] == 0x4e00 || h.script[0] == 0x3041 || h.script[0] == 0xe01 {
		return strings.Join(list, []string{"", "", "，", "。"}[w.r.IntN(4)])
	}
	return strings.Join(list, " ")
}

func (w *filler) random(n int) []byte {
	b := make([]byte, 0, n+8)
	for len(b) < n {
		b = binary.LittleEndian.AppendUint64(b, w.r.Uint64())
	}
	return b[:n]
}

func (w *filler) text(name string, h *habit) string {
	r := w.r
	switch {
	case has(name, "uuid", "guid"):
		x := hex.EncodeToString(w.random(16))
		return x[:8] + "-" + x[8:12] + "-" + x[12:16] + "-" + x[16:20] + "-" + x[20:]
	case name == "id", strings.HasSuffix(name, "_id"), has(name, "sid", "identity"):
		switch h.pick % 4 {
		case 0:
			return strings.ToUpper(w.letters(2)) + "_" + base64.RawURLEncoding.EncodeToString(w.random(9))
		case 1:
			return hex.EncodeToString(w.random(8))
		case 2:
			return fmt.Sprint(r.IntN(100000))
		}
		return w.letters(6) + "-" + fmt.Sprint(r.IntN(1000))
	case has(name, "url", "uri", "endpoint"):
		return "https://" + w.letters(7) + ".example.com/" + w.letters(4) + "?" + w.letters(1) + "=" + fmt.Sprint(r.IntN(99))
	case has(name, "path", "file", "dir"):
		return "/var/lib/" + w.letters(5) + "/" + w.letters(8) + []string{".yaml", "", ".so", ".mp4"}[r.IntN(4)]
	case has(name, "email"):
		return w.letters(6) + "@" + w.letters(5) + ".net"
	case has(name, "ip", "host", "address"):
		return fmt.Sprintf("10.%d.%d.%d", r.IntN(256), r.IntN(256), r.IntN(256))
	case has(name, "token", "key", "secret", "hash", "digest", "sha"):
		return base64.StdEncoding.EncodeToString(w.random([]int{12, 20, 32}[h.pick%3]))
	case has(name, "version"):
		return fmt.Sprintf("v%d.%d.%d", r.IntN(3), r.IntN(20), r.IntN(50))
	case has(name, "date", "time"):
		return fmt.Sprintf("20%02d-%02d-%02dT%02d:%02d:00.%03dZ", 10+r.IntN(20), 1+r.IntN(12), 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(1000))
	case has(name, "json", "metadata", "attributes", "config", "schema"):
		b, _ := json.Marshal(map[string]any{w.letters(4): w.words(h, 2), w.letters(6): r.IntN(1000), "a": []int{r.IntN(9), r.IntN(99)}})
		return string(b)
	case has(name, "description", "message", "text", "content", "reason", "comment", "body", "summary", "query", "title"):
		return w.words(h, 1+r.IntN(20)) + []string{".", "", "?\n", "!"}[r.IntN(4)]
	case has(name, "name", "type", "kind", "namespace", "label", "tag", "region", "state", "status", "topic", "queue", "group"):
		switch h.pick % 4 {
		case 0:
			return w.letters(2 + r.IntN(9))
		case 1:
			return w.letters(4) + "-" + w.letters(6)
		case 2:
			return strings.ToUpper(w.letters(3) + "_" + w.letters(5))
		}
		return w.words(h, 1+r.IntN(2))
	}
	switch h.pick % 9 {
	case 0, 1:
		return w.letters(2 + r.IntN(9))
	case 2:
		return w.word(h)
	case 3:
		return w.words(h, 2+r.IntN(12))
	case 4:
		return fmt.Sprint(r.IntN([]int{10, 1000, 1 << 30}[h.pick/9%3]))
	case 5:
		return "if " + w.letters(1) + " == nil {\n\treturn " + w.letters(3) + "(" + w.letters(2) + ")\n}\n"
	case 6:
		return string(h.script[0] + rune(r.IntN(int(h.script[1]-h.script[0]))))
	case 7:
		return strings.ToUpper(w.letters(2))
	}
	return hex.EncodeToString(w.random(1 + h.pick%16))
}

func (w *filler) raw(fd protoreflect.FieldDescriptor, name string, h *habit) []byte {
	r := w.r
	switch {
	case has(name, "trace_id"):
		return w.random(16)
	case has(name, "span_id"):
		return w.random(8)
	case has(name, "hash", "digest", "sha", "checksum"):
		s := sha256.Sum256(w.random(4))
		return s[:[]int{32, 20, 32}[h.pick%3]]
	case has(name, "nonce", "iv", "salt"):
		return w.random([]int{12, 16, 24}[h.pick%3])
	case has(name, "signature", "cert"):
		return append([]byte{0x30, 0x82, 1, 0x0a, 2, 1}, w.random(90+r.IntN(60))...)
	}
	switch h.pick % 14 {
	case 0:
		var b bytes.Buffer
		z := zlib.NewWriter(&b)
		_, _ = z.Write([]byte(w.words(h, 30)))
		_ = z.Close()
		return b.Bytes()
	case 1, 2:
		return []byte(`{"` + w.letters(4) + `":` + fmt.Sprint(r.IntN(100)) + `}`)
	case 3:
		if w.inside > 0 {
			return w.random(24)
		}
		w.inside++
		defer func() { w.inside-- }()
		b, err := proto.MarshalOptions{AllowPartial: true, Deterministic: true}.Marshal(w.message(fd.ContainingMessage(), 4))
		if err != nil {
			panic(err)
		}
		return b
	case 4:
		var b []byte
		for _, u := range utf16.Encode([]rune(w.words(h, 3+r.IntN(4)))) {
			b = binary.LittleEndian.AppendUint16(b, u)
		}
		return b
	case 5: // a sparse array
		b := make([]byte, 20+r.IntN(200))
		for range 1 + r.IntN(3) {
			b[r.IntN(len(b))] = byte(r.Uint32())
		}
		return b
	case 6:
		return make([]byte, 32)
	case 7: // sorted, as an index is
		var b []byte
		v := uint32(r.IntN(1000))
		for range 3 + r.IntN(20) {
			v += uint32(r.IntN(5000))
			b = binary.BigEndian.AppendUint32(b, v)
		}
		return b
	case 8: // a bit mask
		b := w.random(8 + r.IntN(30))
		for i := range b {
			b[i] &= b[i] >> 1 & 0x55
		}
		return b
	case 9: // a key with a time in it
		return append(binary.BigEndian.AppendUint64([]byte{0, byte(h.pick)}, 1_720_000_000_000+r.Uint64N(1e9)), w.random(6)...)
	case 10:
		return append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00"), w.random(60+r.IntN(300))...)
	case 11:
		return w.random([]int{4, 6, 16, 33, 65}[h.pick/14%5])
	}
	return w.random(1 + r.IntN(120))
}
