package eval

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// A composer makes messages as programs fill them: a type that is used in several places has the same core fields
// in all of them, and rare fields that differ by place; strings are patterns, paths, templates and tables as well
// as words; bytes are addresses, counters and keys as well as random.
type composer struct {
	r *rand.Rand
	// habits are by field, and rare by place and field.
	habits map[protoreflect.FullName]*composing
	rare   map[string]float64
	left   int
	hashed bool // maps are written in the order of a hash table
	sorted bool // all fields are written by number, members of oneofs as well
}

// A composing is what the values of a field have in common.
type composing struct {
	presence   float64
	many, pick int
}

func newComposer(seed uint64) *composer {
	r := rand.New(rand.NewPCG(seed, 90210))
	return &composer{r: r, habits: map[protoreflect.FullName]*composing{}, rare: map[string]float64{}, hashed: r.IntN(2) > 0, sorted: r.IntN(2) > 0}
}

func (w *composer) sample(md protoreflect.MessageDescriptor) []byte {
	w.left = 70
	b, err := proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(w.message(md, "", 0))
	if err != nil {
		panic(err)
	}
	if w.sorted {
		b = ascending(md, b)
	}
	if w.hashed {
		b = shuffleMaps(md, b, w.r)
	}
	return b
}

func (w *composer) habit(fd protoreflect.FieldDescriptor) *composing {
	h := w.habits[fd.FullName()]
	if h == nil {
		r := w.r
		// A third of the fields is rare: its presence is drawn for each place.
		h = &composing{presence: []float64{1, .97, .8, .5, -1, -1}[r.IntN(6)], many: []int{1, 2, 3, 6}[r.IntN(4)], pick: r.IntN(1 << 20)}
		w.habits[fd.FullName()] = h
	}
	return h
}

// presence is the probability that a message at a place has the field.
func (w *composer) presence(fd protoreflect.FieldDescriptor, path string) float64 {
	h := w.habit(fd)
	if h.presence >= 0 {
		return h.presence
	}
	at := path + "/" + string(fd.FullName())
	p, ok := w.rare[at]
	if !ok {
		p = []float64{0, 0, .04, .12, .4}[w.r.IntN(5)]
		w.rare[at] = p
	}
	return p
}

func (w *composer) message(md protoreflect.MessageDescriptor, path string, depth int) *dynamicpb.Message {
	m, r := dynamicpb.NewMessage(md), w.r
	w.left--
	f := md.Fields()
	switch md.FullName() {
	case "google.protobuf.Timestamp":
		m.Set(f.ByNumber(1), protoreflect.ValueOfInt64(1_690_000_000+r.Int64N(90_000_000)))
		if n := r.Int32N(1e9) / []int32{1e6, 1e3, 1}[len(path)%3] * []int32{1e6, 1e3, 1}[len(path)%3]; n > 0 {
			m.Set(f.ByNumber(2), protoreflect.ValueOfInt32(n))
		}
		return m
	case "google.protobuf.Any":
		m.Set(f.ByNumber(1), protoreflect.ValueOfString("type.googleapis.com/google.rpc.ErrorInfo"))
		m.Set(f.ByNumber(2), protoreflect.ValueOfBytes(append([]byte{10, 6}, w.word(6)...)))
		return m
	}
	for i := range md.Oneofs().Len() {
		if o := md.Oneofs().Get(i); !o.IsSynthetic() && r.IntN(9) > 0 {
			w.set(m, o.Fields().Get(r.IntN(o.Fields().Len())), path, depth)
		}
	}
	for i := range f.Len() {
		fd := f.Get(i)
		if o := fd.ContainingOneof(); (o == nil || o.IsSynthetic()) && r.Float64() < w.presence(fd, path) {
			w.set(m, fd, path, depth)
		}
	}
	return m
}

func (w *composer) set(m *dynamicpb.Message, fd protoreflect.FieldDescriptor, path string, depth int) {
	if (depth > 6 || w.left <= 0) && fd.Message() != nil {
		return
	}
	h := w.habit(fd)
	path = fmt.Sprintf("%s.%d", path, fd.Number())
	n := 1 + int(w.r.ExpFloat64()*(float64(h.many)-0.6))
	if fd.Message() != nil {
		n = min(n, 4)
	}
	if fd.IsList() && h.pick%7 == 0 {
		n = 1 + h.pick/7%2 // lists of one or two elements
	}
	switch {
	case fd.IsMap():
		for range n {
			m.Mutable(fd).Map().Set(w.value(fd.MapKey(), path, depth).MapKey(), w.value(fd.MapValue(), path, depth))
		}
	case fd.IsList():
		for range n {
			m.Mutable(fd).List().Append(w.value(fd, path, depth))
		}
	default:
		m.Set(fd, w.value(fd, path, depth))
	}
}

func (w *composer) value(fd protoreflect.FieldDescriptor, path string, depth int) protoreflect.Value {
	h, r := w.habit(fd), w.r
	signed := int64(1)
	if r.IntN(100) < []int{0, 25, 50}[h.pick%3] {
		signed = -1
	}
	switch k := fd.Kind(); k {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return protoreflect.ValueOfMessage(w.message(fd.Message(), path, depth+1))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(w.text(string(fd.Name()), h))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(w.raw(h))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(r.IntN(10) < []int{10, 10, 6, 3}[h.pick%4])
	case protoreflect.EnumKind:
		vs := fd.Enum().Values()
		return protoreflect.ValueOfEnum(vs.Get(min(h.pick%3+r.IntN(1+h.pick/3%5), vs.Len()-1)).Number())
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(w.real(h)))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(w.real(h))
	case protoreflect.Int32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(w.integer(h, false)))
	case protoreflect.Sint32Kind:
		return protoreflect.ValueOfInt32(int32(signed * w.integer(h, false)))
	case protoreflect.Sint64Kind:
		return protoreflect.ValueOfInt64(signed * w.integer(h, true))
	case protoreflect.Int64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(w.integer(h, true))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(w.integer(h, false)))
	default:
		return protoreflect.ValueOfUint64(uint64(w.integer(h, true)))
	}
}

func (w *composer) integer(h *composing, wide bool) int64 {
	r := w.r
	switch h.pick / 3 % 9 {
	case 0:
		return int64(1 + r.IntN(3))
	case 1, 2:
		return int64(r.ExpFloat64() * 9)
	case 3:
		return int64(r.IntN(300))
	case 4:
		return int64(math.Exp(r.Float64() * 18))
	case 5:
		return int64(r.IntN(60)) * 100
	case 6:
		if wide {
			return 1_750_000_000_000 + r.Int64N(1e10)
		}
		return int64(r.Uint32() >> 1)
	case 7:
		if wide {
			return r.Int64() >> 12
		}
		return int64(r.IntN(1 << 20))
	}
	return int64(1 + h.pick%50)
}

func (w *composer) real(h *composing) float64 {
	r := w.r
	switch h.pick % 5 {
	case 0:
		return r.Float64()
	case 1:
		return math.Round(r.NormFloat64()*1e4) / 100
	case 2:
		return float64(r.IntN(50)) / 2
	case 3:
		return r.NormFloat64() * 1e3
	}
	return math.Round(r.Float64()*1000) / 1000
}

// one of a list of strings.
func (w *composer) one(list ...string) string { return list[w.r.IntN(len(list))] }

func (w *composer) word(n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(w.one("an", "er", "in", "to", "le", "ra", "mi", "so", "k", "st", "ing", "po", "ta", "ver", "con", "al"))
	}
	return b.String()[:n]
}

func (w *composer) digits(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('0' + w.r.IntN(10))
	}
	return string(b)
}

func (w *composer) random(n int) []byte {
	b := make([]byte, 0, n+8)
	for len(b) < n {
		b = binary.LittleEndian.AppendUint64(b, w.r.Uint64())
	}
	return b[:n]
}

// text is a string as programs have it.
func (w *composer) text(name string, h *composing) string {
	r := w.r
	kind := h.pick / 5 % 26
	switch {
	case strings.HasSuffix(name, "_id"), name == "id":
		kind = h.pick % 3
	case strings.Contains(name, "url"), strings.Contains(name, "uri"):
		kind = 3
	case strings.Contains(name, "path"), strings.Contains(name, "file"):
		kind = 4
	case name == "name":
		kind = 5 + h.pick%3
	case strings.Contains(name, "description"), strings.Contains(name, "text"), strings.Contains(name, "message"):
		kind = 8 + h.pick%2
	}
	switch kind {
	case 0:
		return hex.EncodeToString(w.random(8 + h.pick/7%3*4))
	case 1:
		return w.word(4) + "_" + base64.RawURLEncoding.EncodeToString(w.random(9))
	case 2:
		return w.digits(3 + h.pick/7%12)
	case 3:
		return "https://" + w.word(6) + ".example/" + w.word(4) + "/" + w.digits(3)
	case 4:
		return w.one("/usr/", "./", "src/", "C:\\", "~/.config/") + w.word(5) + "/" + w.word(4) + w.one(".ts", ".rs", "", ".yml")
	case 5:
		return "projects/" + w.word(5) + "/locations/us/" + w.word(6) + "s/" + w.digits(4)
	case 6:
		return w.word(3 + r.IntN(9))
	case 7:
		return strings.ToUpper(w.word(1)) + w.word(4) + " " + strings.ToUpper(w.word(1)) + w.word(6)
	case 8, 9:
		var list []string
		for range 2 + r.IntN(14) {
			list = append(list, w.word(1+r.IntN(8)))
		}
		return strings.Join(list, " ") + w.one(".", "", "?", "!\n")
	case 10:
		return "^" + w.one("[a-z]", "\\d", "\\w", "[^/]", "(?:x|y)") + w.one("+", "*", "{2,4}", "?") + w.one("\\.", "\\[", "\\(", "$", "") + w.one("[0-9]+", ".*", "\\]") + "$"
	case 11:
		return w.one("[]", "[[]]", "{}", "()", "[{}]", "<>", "[],[]") + w.one("", "", ";", "\\")
	case 12:
		return w.digits(10)
	case 13:
		return w.one("\\", "/", "|", "~", "^", "%", "#", "@", "&", "*", "+", "=", ";", "!")
	case 14:
		return w.one("<%= ", "{{", "${", "#{") + w.word(5) + w.one(" %>", "}}", "}", "|e}")
	case 15:
		return "|" + w.word(3) + "|" + w.digits(2) + "|\n|---|---|\n|" + w.word(4) + "|" + w.digits(1) + "|\n"
	case 16:
		return "0x" + hex.EncodeToString(w.random(4))
	case 17:
		return strings.Repeat(w.one("=", "-", "*", "#", "."), 3+r.IntN(30))
	case 18:
		return w.one(">=", "<=", "==", "!=", "&&", "||", "->", "::", "+=", "<<")
	case 19:
		return fmt.Sprintf("%d.%d.%d.%d/%d", r.IntN(256), r.IntN(256), r.IntN(256), r.IntN(256), 8*(1+r.IntN(4)))
	case 20:
		return "SELECT " + w.word(3) + ", COUNT(*) FROM `" + w.word(5) + "` WHERE " + w.word(2) + " = '" + w.word(3) + "';"
	case 21:
		return w.word(2) + "=" + w.digits(2) + "&" + w.word(3) + "=%" + strings.ToUpper(hex.EncodeToString(w.random(1)))
	case 22:
		return string(rune(0x4e00+r.IntN(3000))) + string(rune(0x4e00+r.IntN(3000)))
	case 23:
		return w.one("en-US", "de", "pt-BR", "ja")
	case 24:
		return "$" + w.digits(1+r.IntN(3)) + "." + w.digits(2)
	}
	return strings.ToUpper(w.word(3)) + "_" + strings.ToUpper(w.word(6))
}

// raw is bytes as programs have them.
func (w *composer) raw(h *composing) []byte {
	r := w.r
	switch h.pick / 11 % 12 {
	case 0:
		return []byte{10, byte(r.IntN(4)), byte(r.IntN(256)), byte(1 + r.IntN(254))} // an address
	case 1:
		return binary.BigEndian.AppendUint32(nil, uint32(r.IntN(100_000)))
	case 2:
		return binary.BigEndian.AppendUint64(nil, uint64(r.ExpFloat64()*1e5))
	case 3:
		return binary.LittleEndian.AppendUint64(nil, uint64(1_700_000_000_000+r.Int64N(1e10)))
	case 4:
		return binary.LittleEndian.AppendUint32(nil, uint32(r.ExpFloat64()*1e4))
	case 5:
		return w.random(32)
	case 6:
		return w.random(16)
	case 7:
		return w.random(1 + r.IntN(200))
	case 8:
		return binary.BigEndian.AppendUint16(nil, uint16(1024+r.IntN(60000)))
	case 9:
		return append([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}, w.random(40+r.IntN(90))...)
	case 10:
		return append([]byte{2}, w.random(32)...)
	}
	return w.random(64)
}
