// Package eval measures what inference says of fields against what they are,
// on labelled corpora, beside the rules of public tools.
package eval

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/wire"
	"unwire/schema/check"
	"unwire/schema/infer"
)

// A place is a field of a message type.
type place struct {
	message protoreflect.FullName
	number  protoreflect.FieldNumber
}

// A truth is a field that was seen, with its payloads.
type truth struct {
	fd       protoreflect.FieldDescriptor
	wire     protowire.Type
	seen     int // messages with it
	payloads [][]byte
	many     bool // seen twice in a message
	zero     bool // a zero was written
	sibling  bool // another member of its oneof was seen
	entry    bool // of a map's entry
}

// collect notes the fields of a message below md.
func collect(md protoreflect.MessageDescriptor, data []byte, out map[place]*truth) {
	count := map[protoreflect.FieldNumber]int{}
	for len(data) > 0 {
		n, typ, m := protowire.ConsumeTag(data)
		size := protowire.ConsumeFieldValue(n, typ, data[m:])
		value := data[m : m+size]
		data = data[m+size:]
		fd := md.Fields().ByNumber(n)
		if fd == nil {
			continue
		}
		at := place{md.FullName(), n}
		f := out[at]
		if f == nil {
			f = &truth{fd: fd, wire: typ, entry: md.IsMapEntry()}
			out[at] = f
		}
		if count[n]++; count[n] == 1 {
			f.seen++
		} else {
			f.many = true
		}
		f.zero = f.zero || len(bytes.Trim(value, "\x00")) == 0
		if typ == protowire.BytesType {
			p, _ := protowire.ConsumeBytes(value)
			f.payloads = append(f.payloads, p)
			if sub := fd.Message(); sub != nil {
				collect(sub, p, out)
			}
		}
	}
}

// kind is the true kind, by how it was written.
func (f *truth) kind() wire.Kind {
	if f.fd.IsList() && f.wire == protowire.BytesType && kindOf(f.fd) != wire.KindString && kindOf(f.fd) != wire.KindBytes && kindOf(f.fd) != wire.KindMessage {
		return wire.KindPacked
	}
	if k := kindOf(f.fd); k != wire.KindPacked {
		return k
	}
	switch f.wire {
	case protowire.Fixed32Type:
		return wire.KindFixed32
	case protowire.Fixed64Type:
		return wire.KindFixed64
	}
	return wire.KindVarint
}

// kindOf is the kind of a declared field.
func kindOf(fd protoreflect.FieldDescriptor) wire.Kind {
	switch fd.Kind() {
	case protoreflect.MessageKind:
		return wire.KindMessage
	case protoreflect.StringKind:
		return wire.KindString
	case protoreflect.BytesKind:
		return wire.KindBytes
	}
	switch typ := check.WireTypeOf(fd.Kind()); {
	case fd.IsList() && fd.IsPacked():
		return wire.KindPacked
	case typ == wire.StartGroup:
		return wire.KindGroup
	case typ == wire.I32:
		return wire.KindFixed32
	case typ == wire.I64:
		return wire.KindFixed64
	}
	return wire.KindVarint
}

// resolvable reports whether the payloads tell the kind at all: not where all
// are empty, and not where every one is flawless text and the field is of bytes,
// or flawless as text and as a message alike, or a message in bytes.
func (f *truth) resolvable() bool {
	text, message, filled := true, true, false
	for _, p := range f.payloads {
		if len(p) == 0 {
			continue
		}
		filled = true
		text = text && utf8.Valid(p) && printable(p) == 1
		message = message && parses(p)
	}
	switch {
	case !filled || text && message:
		return false
	case f.kind() == wire.KindBytes:
		return !text && !message
	}
	return true
}

// class is what a number's type is told by: its wire-compatible class.
func class(k protoreflect.Kind) string {
	switch k {
	case protoreflect.Int32Kind, protoreflect.Int64Kind, protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.EnumKind:
		return "int"
	case protoreflect.Sint32Kind, protoreflect.Sint64Kind:
		return "zigzag"
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind:
		return "fixed int"
	}
	return k.String()
}

// A row is the figures of a group of corpora at one count of samples.
type row struct {
	corpora                int
	macro, macroResolvable float64 // sums of shares
	macros                 int
	right, fields          int // length-delimited
	rightR, fieldsR        int // of those that are resolvable
	base                   []float64
	packedRight, packed    int
	packedWrong            int // said to be packed and not
	class, classes         int
	label, labels          int
	labelR, labelsR        int // without the lists and maps that never had two elements
	maps, oneofs, presence f1
	mapsR                  f1 // of those that had two elements
	labelBins              bins
	oneofs2                f1 // without those of which one member alone was seen
	times, known           f1 // Timestamp, and all well-known types that are written
	unified, unifieds      float64
	bins                   bins
	misses                 map[string]int
	precision, recall      float64 // B-cubed, of types
	own                    explanation
	wrong                  []string // each length-delimited field that was misread, where they are asked for
}

type f1 struct{ hit, miss, extra int }

func (f *f1) add(got, want bool) {
	switch {
	case got && want:
		f.hit++
	case want:
		f.miss++
	case got:
		f.extra++
	}
}

// value is the F1, 1 where there is nothing to find and nothing was said.
func (f *f1) value() float64 {
	if f.hit+f.miss+f.extra == 0 {
		return 1
	}
	return 2 * float64(f.hit) / float64(2*f.hit+f.miss+f.extra)
}

func (f *f1) String() string {
	if f.hit+f.miss+f.extra == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f", f.value())
}

// bins are what was said with which probability, and how much of it was right.
type bins [20]struct{ n, p, right float64 }

func (b *bins) add(p float64, right bool) {
	at := &b[min(int(p*20), 19)]
	at.n++
	at.p += p
	if right {
		at.right++
	}
}

func (b *bins) ece() float64 {
	sum, n := 0.0, 0.0
	for _, b := range b {
		sum += math.Abs(b.p - b.right)
		n += b.n
	}
	return sum / max(n, 1)
}

func (b *bins) merge(o *bins) {
	for i := range b {
		b[i].n += o[i].n
		b[i].p += o[i].p
		b[i].right += o[i].right
	}
}

func (b *bins) print(w io.Writer, what string) {
	for i, b := range b {
		if b.n > 0 {
			fmt.Fprintf(w, "  p %.2f to %.2f: %6.0f %s, said %.3f, right %.3f\n", float64(i)/20, float64(i+1)/20, b.n, what, b.p/b.n, b.right/b.n)
		}
	}
}

// judgements are the inferred fields that correspond to each true field.
type judgements struct {
	said   map[place]infer.FieldEvidence
	fields map[place][]protoreflect.FieldDescriptor
	met    map[[2]protoreflect.FullName]bool
}

func (v *judgements) walk(got, want protoreflect.MessageDescriptor) {
	k := [2]protoreflect.FullName{got.FullName(), want.FullName()}
	if v.met[k] {
		return
	}
	v.met[k] = true
	for i := range want.Fields().Len() {
		fd := want.Fields().Get(i)
		g := got.Fields().ByNumber(fd.Number())
		if g == nil {
			continue
		}
		at := place{want.FullName(), fd.Number()}
		v.fields[at] = append(v.fields[at], g)
		if g.Message() != nil && fd.Message() != nil {
			v.walk(g.Message(), fd.Message())
		}
	}
}

func inferFrom(t testing.TB, c *corpus, samples [][]byte) (*infer.Inferred, *judgements) {
	ev := infer.NewEvidence()
	for _, s := range samples {
		if err := ev.Add("Root", s); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
	}
	in, err := infer.Infer(ev, infer.Options{Package: "p"})
	if err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	v := &judgements{said: map[place]infer.FieldEvidence{}, fields: map[place][]protoreflect.FieldDescriptor{}, met: map[[2]protoreflect.FullName]bool{}}
	for _, f := range in.Fields {
		v.said[place{protoreflect.FullName(f.Message), protoreflect.FieldNumber(f.Number)}] = f
	}
	v.walk(in.Schema.Message("p.Root"), c.truth)
	return in, v
}

func (y *row) add(t testing.TB, c *corpus, n int) {
	samples := c.samples[:min(n, len(c.samples))]
	want := map[place]*truth{}
	for _, s := range samples {
		collect(c.truth, s, want)
	}
	for at, f := range want {
		if o := f.fd.ContainingOneof(); o != nil {
			for i := range o.Fields().Len() {
				f.sibling = f.sibling || o.Fields().Get(i) != f.fd && want[place{at.message, o.Fields().Get(i).Number()}] != nil
			}
		}
	}
	in, v := inferFrom(t, c, samples)
	y.corpora++
	y.own.merge(explain(in.Schema.Message("p.Root"), c.truth, samples))
	if f, p, r, ok := unification(in.Schema.Message("p.Root"), c.truth, samples); ok {
		y.unified += f
		y.precision += p
		y.recall += r
		y.unifieds++
	}
	if y.base == nil {
		y.base = make([]float64, len(rules))
		y.misses = map[string]int{}
	}
	right, fields, rightR, fieldsR := 0, 0, 0, 0
	base := make([]int, len(rules))
	for at, f := range want {
		gs := v.fields[at]
		if len(gs) == 0 {
			if f.wire != protowire.BytesType {
				continue
			}
		}
		if f.wire == protowire.BytesType {
			kind := f.kind()
			ok := len(gs) > 0
			for _, g := range gs {
				ok = ok && kindOf(g) == kind
			}
			if len(gs) == 0 {
				continue // below a field that is wrong itself
			}
			fields++
			res := f.resolvable()
			if res {
				fieldsR++
			}
			if ok {
				right++
				if res {
					rightR++
				}
			} else {
				y.misses[fmt.Sprintf("%s read as %s, resolvable %v", kind, kindOf(gs[0]), res)]++
				if os.Getenv("UNWIRE_EVAL_MISSES") != "" {
					y.wrong = append(y.wrong, miss(c, at, f, gs, v))
				}
			}
			for i := range rules {
				good := true
				for _, k := range rules[i].read(f.payloads) {
					good = good && k == kind
				}
				if good {
					base[i]++
				}
			}
			isPacked := kind == wire.KindPacked
			saidPacked := kindOf(gs[0]) == wire.KindPacked
			if isPacked {
				y.packed++
				if saidPacked {
					y.packedRight++
				}
			} else if saidPacked {
				y.packedWrong++
			}
			for _, g := range gs {
				if s, has := v.said[place{g.Parent().FullName(), g.Number()}]; has {
					y.bins.add(s.P, kindOf(g) == kind)
				}
			}
		}
		y.shape(gs[0], f, v.said[place{gs[0].Parent().FullName(), gs[0].Number()}])
	}
	y.right += right
	y.fields += fields
	y.rightR += rightR
	y.fieldsR += fieldsR
	if fields > 0 {
		y.macros++
		y.macro += float64(right) / float64(fields)
		if fieldsR > 0 {
			y.macroResolvable += float64(rightR) / float64(fieldsR)
		} else {
			y.macroResolvable++
		}
		for i := range rules {
			y.base[i] += float64(base[i]) / float64(fields)
		}
	}
}

// miss describes a field that was misread: where, what it is and was taken for, and its first payloads.
func miss(c *corpus, at place, f *truth, gs []protoreflect.FieldDescriptor, v *judgements) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s.%d: %s", c.name, at.message, at.number, f.kind())
	if k := f.kind(); k == wire.KindPacked {
		fmt.Fprintf(&b, " %s", f.fd.Kind())
	}
	b.WriteString(" read as")
	for _, g := range gs {
		fmt.Fprintf(&b, " %s %.2f", kindOf(g), v.said[place{g.Parent().FullName(), g.Number()}].P)
	}
	fmt.Fprintf(&b, ", %d payloads:", len(f.payloads))
	for _, p := range f.payloads[:min(len(f.payloads), 4)] {
		fmt.Fprintf(&b, " %q", p[:min(len(p), 40)])
	}
	return b.String()
}

// shape compares types and labels.
func (y *row) shape(g protoreflect.FieldDescriptor, f *truth, said infer.FieldEvidence) {
	sameKind := kindOf(g) == f.kind()
	switch f.kind() {
	case wire.KindVarint, wire.KindFixed32, wire.KindFixed64, wire.KindPacked:
		if sameKind {
			y.classes++
			if class(g.Kind()) == class(f.fd.Kind()) {
				y.class++
			} else {
				y.misses[fmt.Sprintf("class: %s read as %s", class(f.fd.Kind()), class(g.Kind()))]++
			}
		}
	}
	if f.entry {
		return
	}
	const timestamp = "google.protobuf.Timestamp"
	y.times.add(messageName(g) == timestamp, messageName(f.fd) == timestamp)
	y.known.add(written[messageName(g)], written[messageName(f.fd)])
	y.maps.add(g.IsMap(), f.fd.IsMap())
	shown := f.many || f.fd.Cardinality() != protoreflect.Repeated || f.kind() == wire.KindPacked
	if f.many {
		y.mapsR.add(g.IsMap(), f.fd.IsMap())
	}
	real := func(fd protoreflect.FieldDescriptor) bool {
		o := fd.ContainingOneof()
		return o != nil && !o.IsSynthetic()
	}
	y.oneofs.add(real(g), real(f.fd))
	if f.sibling || !real(f.fd) {
		y.oneofs2.add(real(g), real(f.fd))
	}
	// Where no zero was written nothing tells explicit presence.
	if f.fd.Message() == nil && !f.fd.IsList() && !real(f.fd) && !real(g) && !g.IsList() && (f.zero || !f.fd.HasPresence()) {
		y.presence.add(g.HasPresence() && g.Message() == nil, f.fd.HasPresence())
	}
	y.labels++
	right := (g.IsList() || g.IsMap()) == (f.fd.IsList() || f.fd.IsMap())
	if right {
		y.label++
	}
	if shown {
		y.labelsR++
		if right {
			y.labelR++
		}
	}
	if said.Label != "" && sameKind && said.Oneof == "" {
		y.labelBins.add(said.LabelP, right && g.IsMap() == f.fd.IsMap())
	}
}

// messageName is the type of a message field, or that of a map's values.
func messageName(fd protoreflect.FieldDescriptor) protoreflect.FullName {
	if fd.IsMap() {
		fd = fd.MapValue()
	}
	if fd.Message() == nil {
		return ""
	}
	return fd.Message().FullName()
}

// maxPlaces bounds the places whose types are compared.
const maxPlaces = 3000

// unification is the B-cubed F1 of the types at the places where messages were
// seen: how far places of one type are of one type by the truth, and the reverse.
func unification(got, want protoreflect.MessageDescriptor, samples [][]byte) (f, precision, recall float64, ok bool) {
	places := map[string][2]protoreflect.FullName{}
	var walk func(path string, got, want protoreflect.MessageDescriptor, data []byte)
	walk = func(path string, got, want protoreflect.MessageDescriptor, data []byte) {
		for len(data) > 0 && len(places) < maxPlaces {
			n, typ, m := protowire.ConsumeTag(data)
			size := protowire.ConsumeFieldValue(n, typ, data[m:])
			value := data[m : m+size]
			data = data[m+size:]
			fd, g := want.Fields().ByNumber(n), got.Fields().ByNumber(n)
			if typ != protowire.BytesType || fd == nil || g == nil || fd.Message() == nil || g.Message() == nil {
				continue
			}
			p, _ := protowire.ConsumeBytes(value)
			at := fmt.Sprintf("%s.%d", path, n)
			if !fd.IsMap() && !g.IsMap() {
				places[at] = [2]protoreflect.FullName{g.Message().FullName(), fd.Message().FullName()}
			}
			walk(at, g.Message(), fd.Message(), p)
		}
	}
	for _, s := range samples {
		walk("", got, want, s)
	}
	both, gots, wants := map[[2]protoreflect.FullName]float64{}, map[protoreflect.FullName]float64{}, map[protoreflect.FullName]float64{}
	for _, p := range places {
		both[p]++
		gots[p[0]]++
		wants[p[1]]++
	}
	for p, n := range both {
		precision += n * n / gots[p[0]]
		recall += n * n / wants[p[1]]
	}
	if os.Getenv("UNWIRE_EVAL_MISSES") != "" {
		for p, n := range both {
			switch {
			case n < wants[p[1]]:
				fmt.Printf("types: %d samples: %s is %s in %.0f of %.0f places\n", len(samples), p[1], p[0], n, wants[p[1]])
			case n < gots[p[0]]:
				fmt.Printf("types: %d samples: %s is also others than %s, %.0f of %.0f places\n", len(samples), p[0], p[1], n, gots[p[0]])
			}
		}
	}
	n := float64(len(places))
	return 2 * precision / n * recall / (precision + recall), precision / n, recall / n, n > 1
}

// counts are how many samples the figures are taken at.
var counts = []int{1, 3, 10, 100, 1 << 30}

func corpora(t testing.TB, long bool) []corpus {
	var out []corpus
	only := os.Getenv("UNWIRE_EVAL_ONLY")                    // the start of a group's name
	draws, _ := strconv.Atoi(os.Getenv("UNWIRE_EVAL_DRAWS")) // how many further times the types of the split are drawn
	for i := range styles {
		s := styles[i]
		if s.held && os.Getenv("UNWIRE_EVAL") == "tuning" || !strings.HasPrefix(s.name, only) {
			continue
		}
		if !long {
			s.schemas = 3
		}
		n := 40
		if long {
			n = 150
		}
		out = append(out, s.generate(t, uint64(1000*i), n)...)
	}
	if long && os.Getenv("UNWIRE_EVAL") != "tuning" {
		if strings.HasPrefix("k8s objects", only) {
			out = append(out, kubernetesCorpora(t)...)
		}
		if only == "" || strings.HasPrefix("descriptors", only) || strings.HasPrefix("google schemas", only) {
			raw := descriptors(t)
			out = append(out, descriptorCorpus(raw))
			out = append(out, googleCorpora(t, raw, 40, 100)...)
		}
		for i := range foreigns {
			if f := &foreigns[i]; strings.HasPrefix(f.name, only) || only == "foreign" {
				out = append(out, f.corpora(t, uint64(i))...)
			}
		}
		if strings.HasPrefix("profiles", only) || only == "foreign" {
			out = append(out, profileCorpus(t))
		}
		if strings.HasPrefix("agent", only) || only == "foreign" {
			out = append(out, agentCorpora(t)...)
		}
		if strings.HasPrefix("maps", only) || only == "foreign" {
			out = append(out, mapCorpora(t)...)
		}
		out = append(out, shippedCorpora(t, only)...)
		for i := range halves {
			// The half that is looked at once is left out while something is being tuned.
			f := &halves[i]
			if !strings.HasPrefix(f.name, only) || !f.tuned && os.Getenv("UNWIRE_EVAL") == "split" {
				continue
			}
			out = append(out, f.corpora(t, uint64(i))...)
			// One draw of types is a small sample: with more draws, the figures are less accidental.
			for draw := range draws {
				out = append(out, f.corpora(t, uint64(i+100*(draw+1)))...)
			}
		}
	}
	return out
}

// TestEval prints the tables of schema/RESULTS.md#inference; make eval runs it.
func TestEval(t *testing.T) {
	long := os.Getenv("UNWIRE_EVAL") != ""
	all := corpora(t, long)
	tables := map[string][]*row{}
	var order []string
	for i := range all {
		c := &all[i]
		names := []string{c.group, "= tuning"}
		if c.held {
			names[1] = "= validation"
		}
		for _, name := range names {
			if tables[name] == nil {
				tables[name] = make([]*row, len(counts))
				for j := range counts {
					tables[name][j] = &row{}
				}
				order = append(order, name)
			}
			for j, n := range counts {
				tables[name][j].add(t, c, n)
			}
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(strings.Count(a, "="), strings.Count(b, "=")) })
	if long {
		report(os.Stdout, order, tables)
		return
	}
	ten, all40 := tables["= validation"][2], tables["= validation"][4]
	for _, f := range []struct {
		what       string
		got, floor float64
	}{
		{"class", float64(all40.class) / float64(all40.classes), 0.8},
		{"map F1", all40.maps.value(), 0.75},
		{"oneof F1", all40.oneofs.value(), 0.9},
		{"oneof F1 at 10, of two seen", ten.oneofs2.value(), 0.75},
		{"presence F1, where zeros were written", all40.presence.value(), 0.85},
		{"well-known F1", all40.known.value(), 0.6},
		{"types, B-cubed F1", all40.unified / all40.unifieds, 0.8},
		{"lists", float64(ten.label) / float64(ten.labels), 0.9},
	} {
		if f.got < f.floor {
			t.Errorf("%s %.3f, at least %.2f before", f.what, f.got, f.floor)
		}
	}
	if macro := ten.macroResolvable / float64(ten.macros); macro < 0.94 || ten.bins.ece() > 0.06 {
		t.Errorf("validation at 10 samples: %.3f of what can be told is right, calibration error %.3f", macro, ten.bins.ece())
	}
}

func report(w io.Writer, order []string, tables map[string][]*row) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(tw, "corpus\tsamples\tfields\tkind, macro\tresolvable\tmicro\tpacked recall\tprecision\tclass\tlist\tresolvable\tmap F1\tresolvable\toneof F1\tof two seen\tpresence F1\tTimestamp F1\tknown F1\toneof precision\trecall\ttypes B3\tprecision\trecall\tunexplained\tsame again\tECE\tof labels")
	for _, r := range rules {
		fmt.Fprint(tw, "\t", r.name)
	}
	fmt.Fprintln(tw)
	share := func(a, b int) string {
		if b == 0 {
			return "-"
		}
		return fmt.Sprintf("%.3f", float64(a)/float64(b))
	}
	for _, name := range order {
		for j, y := range tables[name] {
			n := fmt.Sprint(counts[j])
			if counts[j] > 1000 {
				n = "all"
			}
			fmt.Fprintf(tw, "%s\t%s\t%d\t%.4f\t%.4f\t%s\t%s\t%s\t%s\t%s\t%s\t%v\t%v\t%v\t%v\t%v\t%v\t%v\t%s\t%s\t%.3f\t%.3f\t%.3f\t%.5f\t%s\t%.3f\t%.3f", name, n, y.fields, y.macro/float64(y.macros), y.macroResolvable/float64(y.macros), share(y.right, y.fields),
				share(y.packedRight, y.packed), share(y.packedRight, y.packedRight+y.packedWrong), share(y.class, y.classes), share(y.label, y.labels), share(y.labelR, y.labelsR), &y.maps, &y.mapsR, &y.oneofs, &y.oneofs2, &y.presence, &y.times, &y.known, share(y.oneofs2.hit, y.oneofs2.hit+y.oneofs2.extra), share(y.oneofs2.hit, y.oneofs2.hit+y.oneofs2.miss),
				y.unified/max(y.unifieds, 1), y.precision/max(y.unifieds, 1), y.recall/max(y.unifieds, 1), float64(y.own.unknown)/float64(max(y.own.bytes, 1)), share(y.own.again, y.own.canonical), y.bins.ece(), y.labelBins.ece())
			for i := range rules {
				fmt.Fprintf(tw, "\t%.3f", y.base[i]/float64(y.macros))
			}
			fmt.Fprintln(tw)
		}
	}
	tw.Flush()
	for _, name := range order {
		if name[0] != '=' {
			continue
		}
		fmt.Fprintf(w, "\n%s: reliability at 1 to all samples\n", name)
		var sum, labels bins
		misses := map[string]int{}
		for _, y := range tables[name] {
			sum.merge(&y.bins)
			labels.merge(&y.labelBins)
			for k, n := range y.misses {
				misses[k] += n
			}
		}
		sum.print(w, "fields")
		labels.print(w, "labels")
		keys := make([]string, 0, len(misses))
		for k := range misses {
			keys = append(keys, k)
		}
		slices.SortFunc(keys, func(a, b string) int { return cmp.Or(misses[b]-misses[a], strings.Compare(a, b)) })
		for _, k := range keys[:min(len(keys), 25)] {
			fmt.Fprintf(w, "  %5d %s\n", misses[k], k)
		}
		for j, y := range tables[name] {
			for _, m := range y.wrong {
				fmt.Fprintf(w, "  at %d: %s\n", counts[j], m)
			}
		}
	}
}
