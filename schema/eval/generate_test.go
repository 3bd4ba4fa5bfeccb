package eval

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf16"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

type fieldType = descriptorpb.FieldDescriptorProto_Type

const (
	typeString   = descriptorpb.FieldDescriptorProto_TYPE_STRING
	typeBytes    = descriptorpb.FieldDescriptorProto_TYPE_BYTES
	typeMessage  = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
	typeEnum     = descriptorpb.FieldDescriptorProto_TYPE_ENUM
	typeBool     = descriptorpb.FieldDescriptorProto_TYPE_BOOL
	typeInt32    = descriptorpb.FieldDescriptorProto_TYPE_INT32
	typeInt64    = descriptorpb.FieldDescriptorProto_TYPE_INT64
	typeUint32   = descriptorpb.FieldDescriptorProto_TYPE_UINT32
	typeUint64   = descriptorpb.FieldDescriptorProto_TYPE_UINT64
	typeSint32   = descriptorpb.FieldDescriptorProto_TYPE_SINT32
	typeSint64   = descriptorpb.FieldDescriptorProto_TYPE_SINT64
	typeFixed32  = descriptorpb.FieldDescriptorProto_TYPE_FIXED32
	typeFixed64  = descriptorpb.FieldDescriptorProto_TYPE_FIXED64
	typeSfixed32 = descriptorpb.FieldDescriptorProto_TYPE_SFIXED32
	typeSfixed64 = descriptorpb.FieldDescriptorProto_TYPE_SFIXED64
	typeFloat    = descriptorpb.FieldDescriptorProto_TYPE_FLOAT
	typeDouble   = descriptorpb.FieldDescriptorProto_TYPE_DOUBLE
)

// A corpus is samples of one type whose truth is known.
type corpus struct {
	group   string // what figures are summed by
	held    bool
	name    string
	truth   protoreflect.MessageDescriptor
	samples [][]byte
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 77)) }

// generate makes the style's schemas, each with samples.
func (s *style) generate(t testing.TB, base uint64, samples int) []corpus {
	var out []corpus
	for i := range s.schemas {
		r := newRand(base + uint64(i))
		fd, err := protodesc.NewFile(s.file(r), protoregistry.GlobalFiles)
		if err != nil {
			t.Fatal(err)
		}
		g := &generator{style: s, r: r, roles: map[protoreflect.FullName]role{}, file: fd}
		c := corpus{group: s.name, held: s.held, name: fmt.Sprintf("%s %d", s.name, i), truth: fd.Messages().Get(0)}
		for range samples {
			// Without Deterministic, the order of fields is random, which no program's is.
			b, err := proto.MarshalOptions{Deterministic: true}.Marshal(g.sample(c.truth))
			if err != nil {
				t.Fatal(err)
			}
			if !s.sorted {
				b = shuffleMaps(c.truth, b, r)
			}
			c.samples = append(c.samples, b)
		}
		out = append(out, c)
	}
	return out
}

func (s *style) file(r *rand.Rand) *descriptorpb.FileDescriptorProto {
	between := func(p [2]int) int { return p[0] + r.IntN(p[1]-p[0]+1) }
	count := between(s.messages)
	f := &descriptorpb.FileDescriptorProto{Name: new("g.proto"), Package: new("g"), Syntax: new("proto3"), Dependency: knownFiles, EnumType: []*descriptorpb.EnumDescriptorProto{{Name: new("E")}}}
	for i := range 12 {
		f.EnumType[0].Value = append(f.EnumType[0].Value, &descriptorpb.EnumValueDescriptorProto{Name: new(fmt.Sprintf("V%d", i)), Number: new(int32(i))})
	}
	for i := range count {
		m := &descriptorpb.DescriptorProto{Name: new(fmt.Sprintf("M%d", i))}
		number := int32(0)
		n := between(s.fields)
		if i == 0 {
			n = max(n, 4)
		}
		from, length := -1, 0
		if n > 2 && r.IntN(100) < s.oneof {
			from, length = r.IntN(n-1), 2+r.IntN(4)
		}
		var optional []*descriptorpb.FieldDescriptorProto
		for j := range n {
			number += int32(1 + r.IntN(s.jump)*r.IntN(2))
			fd := &descriptorpb.FieldDescriptorProto{Name: new(fmt.Sprintf("f%d", number)), Number: new(number), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
			s.setType(r, fd, i, count)
			if i == 0 && j < 2 {
				fd.Type, fd.TypeName = typeMessage.Enum(), new(fmt.Sprintf(".g.M%d", 1+j%(count-1)))
			}
			m.Field = append(m.Field, fd)
			switch {
			case j >= from && j < from+length:
				if m.OneofDecl == nil {
					m.OneofDecl = []*descriptorpb.OneofDescriptorProto{{Name: new("which")}}
				}
				fd.OneofIndex = new(int32(0))
			case r.IntN(100) < s.repeated:
				fd.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
			case r.IntN(100) < s.maps:
				s.addMap(r, m, fd, i, count)
			case fd.GetType() != typeMessage && r.IntN(100) < s.optional:
				optional = append(optional, fd)
			}
		}
		for _, fd := range optional {
			fd.Proto3Optional, fd.OneofIndex = new(true), new(int32(len(m.OneofDecl)))
			m.OneofDecl = append(m.OneofDecl, &descriptorpb.OneofDescriptorProto{Name: new("_" + fd.GetName())})
		}
		f.MessageType = append(f.MessageType, m)
	}
	return f
}

func (s *style) setType(r *rand.Rand, fd *descriptorpb.FieldDescriptorProto, index, count int) {
	total := 0
	for t := range typeDouble + 20 {
		total += s.types[t]
	}
	pick := r.IntN(total)
	for t := range typeDouble + 20 {
		if pick -= s.types[t]; pick < 0 && fd.Type == nil {
			fd.Type = t.Enum()
		}
	}
	switch fd.GetType() {
	case typeMessage:
		to := index + 1 + r.IntN(3)
		if to >= count {
			to = r.IntN(count)
		}
		fd.TypeName = new(fmt.Sprintf(".g.M%d", to))
		if r.IntN(100) < s.known {
			fd.TypeName = new("." + one(r, knownTypes))
		}
	case typeEnum:
		fd.TypeName = new(".g.E")
	}
}

func (s *style) addMap(r *rand.Rand, m *descriptorpb.DescriptorProto, fd *descriptorpb.FieldDescriptorProto, index, count int) {
	name := fmt.Sprintf("F%dEntry", fd.GetNumber())
	optional := descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()
	key := &descriptorpb.FieldDescriptorProto{Name: new("key"), Number: new(int32(1)), Label: optional, Type: []fieldType{typeString, typeString, typeString, typeInt32, typeInt64}[r.IntN(5)].Enum()}
	value := &descriptorpb.FieldDescriptorProto{Name: new("value"), Number: new(int32(2)), Label: optional}
	s.setType(r, value, index, count)
	m.NestedType = append(m.NestedType, &descriptorpb.DescriptorProto{Name: &name, Options: &descriptorpb.MessageOptions{MapEntry: new(true)}, Field: []*descriptorpb.FieldDescriptorProto{key, value}})
	fd.Type, fd.TypeName = typeMessage.Enum(), new(".g."+m.GetName()+"."+name)
	fd.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
}

// A generator makes values; role is what those of one field are like.
type generator struct {
	style *style
	r     *rand.Rand
	roles map[protoreflect.FullName]role
	file  protoreflect.FileDescriptor

	budget int // messages that this sample may still have
	nested int // bytes fields around what is made, that hold it as a message
}

// maxMessages bounds the messages of one sample.
const maxMessages = 80

// sample makes one message of the type.
func (g *generator) sample(md protoreflect.MessageDescriptor) *dynamicpb.Message {
	g.budget = maxMessages
	return g.message(md, 0)
}

type role struct {
	text, raw, number, real, lang string
	presence                      float64
	many, pick                    int
	seed                          uint64
}

func one[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

func (g *generator) role(fd protoreflect.FieldDescriptor) role {
	o, ok := g.roles[fd.FullName()]
	if !ok {
		s := g.style
		o = role{
			text: one(g.r, s.strings), raw: one(g.r, s.bytes), number: one(g.r, s.ints), real: one(g.r, s.reals), lang: one(g.r, s.langs),
			presence: one(g.r, []float64{1, 1, .95, .8, .5, .25, .08}), many: one(g.r, s.many), pick: g.r.IntN(1000), seed: g.r.Uint64(),
		}
		g.roles[fd.FullName()] = o
	}
	return o
}

func (g *generator) message(md protoreflect.MessageDescriptor, depth int) *dynamicpb.Message {
	m := dynamicpb.NewMessage(md)
	g.budget--
	if g.known(m) {
		return m
	}
	for i := range md.Oneofs().Len() {
		if o := md.Oneofs().Get(i); !o.IsSynthetic() && g.r.IntN(12) > 0 {
			g.set(m, o.Fields().Get(g.r.IntN(o.Fields().Len())), depth)
		}
	}
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		if o := fd.ContainingOneof(); (o == nil || o.IsSynthetic()) && g.r.Float64() < g.role(fd).presence {
			g.set(m, fd, depth)
		}
	}
	return m
}

func (g *generator) set(m *dynamicpb.Message, fd protoreflect.FieldDescriptor, depth int) {
	if (depth > 5 || g.budget <= 0) && fd.Message() != nil {
		return
	}
	o := g.role(fd)
	n := 1 + int(g.r.ExpFloat64()*float64(o.many))
	if fd.Message() != nil {
		n = min(n, 5-min(depth, 4))
	}
	switch {
	case fd.IsMap():
		list := m.Mutable(fd).Map()
		for range n {
			list.Set(g.value(fd.MapKey(), g.role(fd.MapKey()), depth).MapKey(), g.value(fd.MapValue(), g.role(fd.MapValue()), depth))
		}
	case fd.IsList():
		list := m.Mutable(fd).List()
		var last protoreflect.Value
		for range min(n, 300) {
			v := g.value(fd, o, depth)
			if o.number == "ascending" && last.IsValid() {
				v = after(fd.Kind(), last, v)
			}
			last = v
			list.Append(v)
		}
	default:
		m.Set(fd, g.value(fd, o, depth))
	}
}

// after makes lists ascend.
func after(k protoreflect.Kind, last, v protoreflect.Value) protoreflect.Value {
	switch k {
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(last.Int()) + 1 + int32(v.Int()&63))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(last.Int() + 1 + v.Int()&63)
	}
	return v
}

func (g *generator) value(fd protoreflect.FieldDescriptor, o role, depth int) protoreflect.Value {
	switch k := fd.Kind(); k {
	case protoreflect.MessageKind:
		return protoreflect.ValueOfMessage(g.message(fd.Message(), depth+1))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(g.text(o))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(g.raw(o))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(g.r.IntN(100) < []int{100, 60, 30, 5}[o.pick%4])
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(g.r.IntN(1 + o.pick%9)))
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(g.integer(o, 31, k != protoreflect.Int32Kind)))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(g.integer(o, 63, k != protoreflect.Int64Kind))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(max(g.integer(o, 32, false), 0)))
	case protoreflect.Fixed32Kind:
		if o.pick%3 > 0 {
			return protoreflect.ValueOfUint32(g.r.Uint32()) // hashes, addresses, colours
		}
		return protoreflect.ValueOfUint32(uint32(max(g.integer(o, 32, false), 0)))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(uint64(max(g.integer(o, 63, false), 0)))
	case protoreflect.Fixed64Kind:
		switch o.pick % 3 {
		case 0:
			return protoreflect.ValueOfUint64(g.r.Uint64())
		case 1:
			return protoreflect.ValueOfUint64(1_763_000_000_000_000_000 + g.r.Uint64N(1e16))
		}
		return protoreflect.ValueOfUint64(uint64(max(g.integer(o, 63, false), 0)))
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(g.real(o)))
	default:
		return protoreflect.ValueOfFloat64(g.real(o))
	}
}

// integer draws a number of at most so many bits.
func (g *generator) integer(o role, bits int, signed bool) int64 {
	r := g.r
	var v int64
	switch o.number {
	case "enum", "small":
		v = int64(r.IntN(2 + o.pick%12))
	case "bit":
		v = int64(r.IntN(2))
	case "one":
		v = int64(1 + o.pick%3)
	case "count":
		v = int64(r.ExpFloat64() * []float64{4, 40, 800, 30000}[o.pick%4])
	case "size", "money":
		v = int64(math.Exp(r.Float64() * 17))
	case "port":
		v = one(r, []int64{80, 443, 8080, 5432, 9090, int64(1024 + r.IntN(60000))})
	case "adc":
		v = int64(2048 + r.NormFloat64()*300)
	case "s":
		v = 1_700_000_000 + r.Int64N(6e7)
	case "ms":
		v = 1_700_000_000_000 + r.Int64N(6e10)
	case "us":
		v = 1_700_000_000_000_000 + r.Int64N(6e13)
	case "ns":
		v = 1_700_000_000_000_000_000 + r.Int64N(6e16)
	case "seq", "ascending":
		v = int64(o.pick) + r.Int64N(200)
	case "wide":
		v = r.Int64() & math.MaxInt32
	case "id64":
		v = r.Int64()
	default: // negative
		v = int64(r.NormFloat64() * []float64{3, 60, 4000, 1e6}[o.pick%4])
	}
	if bits < 63 {
		switch {
		case v > math.MaxInt32:
			v = v % 1_000_000
		case v < math.MinInt32:
			v = -(-v % 1_000_000)
		}
	}
	if signed && r.IntN(3) == 0 && o.number != "ms" && o.number != "s" {
		v = -v
	}
	return v
}

func (g *generator) real(o role) float64 {
	r := g.r
	switch o.real {
	case "unit":
		return r.Float64()
	case "decimal":
		return math.Round(r.ExpFloat64()*3000) / 100
	case "gauss":
		return r.NormFloat64() * 50
	case "geo":
		return math.Round((r.Float64()*360-180)*1e6) / 1e6
	case "big":
		return r.Float64() * 1e12
	case "small":
		return r.NormFloat64() * 1e-4
	}
	return float64(r.IntN(2000))
}

func (g *generator) raw(o role) []byte {
	r := g.r
	random := func(n int) []byte {
		b := make([]byte, 0, n+8)
		for len(b) < n {
			b = binary.LittleEndian.AppendUint64(b, r.Uint64())
		}
		return b[:n]
	}
	switch o.raw {
	case "sha256":
		h := sha256.Sum256(random(8))
		return h[:]
	case "md5", "trace":
		return random(16)
	case "span":
		return random(8)
	case "short":
		return random(1 + r.IntN(8))
	case "image":
		return append([]byte(one(r, []string{"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "\xff\xd8\xff\xe0\x00\x10JFIF"})), random(40+r.IntN(600))...)
	case "gzip":
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write([]byte(g.text(role{text: "paragraph", lang: "en"})))
		_ = z.Close()
		return b.Bytes()
	case "nested":
		if g.nested > 0 {
			return random(20)
		}
		g.nested++
		defer func() { g.nested-- }()
		m := g.file.Messages().Get(int(o.seed % uint64(g.file.Messages().Len())))
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(g.message(m, 4))
		if err != nil {
			panic(err)
		}
		return b
	case "text":
		return []byte(g.text(role{text: one(r, []string{"json", "paragraph"}), lang: o.lang}))
	case "utf16":
		var b []byte
		for _, u := range utf16.Encode([]rune(g.text(role{text: "sentence", lang: o.lang}))) {
			b = binary.LittleEndian.AppendUint16(b, u)
		}
		return b
	case "gbk": // two bytes a character, both with the top bit set
		b := random(2 * (2 + r.IntN(20)))
		for i := range b {
			b[i] = 0xb0 | b[i]&0x3f
		}
		return b
	case "der":
		n := 60 + r.IntN(60)
		return append([]byte{0x30, 0x81, byte(n + 20), 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00}, random(n)...)
	case "zeros":
		b := make([]byte, 16+8*r.IntN(8))
		copy(b[len(b)-6:], random(6))
		return b
	case "ulid":
		return append(binary.BigEndian.AppendUint64(nil, uint64(1_763_000_000_000+r.Int64N(1e9))<<16), random(8)...)
	case "floats": // an embedding in bytes
		var b []byte
		for range 8 + r.IntN(24) {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(r.NormFloat64())))
		}
		return b
	case "uint16s":
		var b []byte
		for range 10 + r.IntN(80) {
			b = binary.LittleEndian.AppendUint16(b, uint16(2048+r.NormFloat64()*200))
		}
		return b
	case "block":
		return random(512 + 16*r.IntN(64))
	}
	return random(1 + r.IntN(90))
}

func (g *generator) text(o role) string {
	r := g.r
	word := func() string { return one(r, vocabulary[o.lang]) }
	words := func(n int) string {
		var list []string
		for range n {
			list = append(list, word())
		}
		return strings.Join(list, separator[o.lang])
	}
	letters := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte('a' + r.IntN(26))
		}
		return string(b)
	}
	digits := func(n int) string { return fmt.Sprintf("%0*d", n, r.Int64N(int64(math.Pow10(n)))) }
	switch o.text {
	case "sentence":
		return words(3+r.IntN(14)) + one(r, []string{".", "", "!", "?", "…"})
	case "paragraph":
		var b strings.Builder
		for range 2 + r.IntN(6) {
			b.WriteString(one(r, []string{"", "", "- ", "## ", "    ", "> "}) + words(4+r.IntN(20)) + one(r, []string{".\n", "\n\n", ". "}))
		}
		return b.String()
	case "delta":
		return one(r, []string{" ", "", "", "\n"}) + words(1+r.IntN(2))
	case "word":
		return letters(2 + r.IntN(9))
	case "letters":
		return letters(1 + r.IntN(3))
	case "letter":
		return string(rune(33 + r.IntN(94)))
	case "two":
		return strings.ToUpper(letters(2))
	case "upper":
		return strings.ToUpper(letters(3+r.IntN(5))) + "_" + strings.ToUpper(letters(2+r.IntN(8)))
	case "rune":
		return string([]rune(word())[:1])
	case "runes":
		return word()
	case "bom":
		return "\ufeff" + words(1+r.IntN(6))
	case "name":
		return words(2)
	case "ident":
		return letters(3+r.IntN(6)) + one(r, []string{"_", "-", ".", ""}) + letters(2+r.IntN(7))
	case "uuid":
		x := hex.EncodeToString(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, r.Uint64()), r.Uint64()))
		return x[:8] + "-" + x[8:12] + "-4" + x[13:16] + "-a" + x[17:20] + "-" + x[20:]
	case "toolid":
		return one(r, []string{"toolu_", "call_", "msg-"}) + base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, r.Uint64()))
	case "path":
		return one(r, []string{"/home/user/", "src/", "./", "C:\\Users\\", "/etc/"}) + letters(2+r.IntN(7)) + "/" + letters(3+r.IntN(8)) + one(r, []string{".go", ".ts", ".png", "", ".md"})
	case "url":
		return "https://" + letters(4+r.IntN(8)) + ".com/" + letters(3) + "?q=" + letters(1+r.IntN(6)) + "&n=" + digits(2)
	case "host":
		return letters(3+r.IntN(5)) + "-" + digits(2) + "." + letters(4) + ".internal"
	case "model":
		return one(r, []string{"claude-4.5-sonnet", "gpt-5", "gemini-2.5-pro", "o4-mini", "default", "auto"})
	case "code":
		var b strings.Builder
		for range 2 + r.IntN(8) {
			b.WriteString(one(r, []string{"func ", "\tif ", "return ", "const ", "\t\tfor ", "// "}) + letters(2+r.IntN(6)) + one(r, []string{"(a, b) {\n", " := 0\n", ";\n", "[i] += 1\n", "}\n", " == nil {\n"}))
		}
		return b.String()
	case "json":
		return fmt.Sprintf(`{"%s":"%s","%s":%d,"list":[%d,%d],"ok":%t}`, letters(4), words(2), letters(5), r.IntN(1000), r.IntN(9), r.IntN(90), r.IntN(2) > 0)
	case "yaml":
		return letters(4) + ": " + letters(6) + "\n" + letters(5) + ":\n  - " + letters(3) + "\n  - " + digits(3) + "\n"
	case "template":
		return "{{ ." + letters(4) + " }}/${" + strings.ToUpper(letters(5)) + "}"
	case "duration":
		return digits(1+r.IntN(2)) + one(r, []string{"s", "ms", "h", "m"})
	case "version":
		return fmt.Sprintf("%d.%d.%d", r.IntN(5), r.IntN(30), r.IntN(100)) + one(r, []string{"", "", "-rc.1", "+dfsg"})
	case "hex":
		return hex.EncodeToString(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, r.Uint64()), r.Uint64())[:4+o.pick%12])
	case "base64":
		return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, r.Uint64()), r.Uint64())[:6+o.pick%10])
	case "number":
		return digits(1 + o.pick%12)
	case "phone":
		return "+" + digits(2) + " " + digits(3) + " " + digits(7)
	case "date":
		return fmt.Sprintf("20%02d-%02d-%02dT%02d:%02d:00Z", r.IntN(30), 1+r.IntN(12), 1+r.IntN(28), r.IntN(24), r.IntN(60))
	case "email":
		return letters(3+r.IntN(8)) + "@" + letters(3+r.IntN(6)) + ".org"
	case "csv":
		return letters(3) + "," + digits(2) + "," + words(1) + "\n" + letters(4) + "," + digits(3) + "," + words(1) + "\n"
	case "empty":
		if r.IntN(3) > 0 {
			return ""
		}
		return words(2)
	}
	return []string{"production", "us-east-1", "v1", "text/plain", "en", "ok"}[o.pick%6]
}
