package update_test

import (
	"fmt"
	"math/rand"
	"strings"
)

// A writer writes .proto files in a style of its own, as people of many habits would.
type writer struct {
	r                *rand.Rand
	b                strings.Builder
	eol, unit, gap   string
	syntax           string
	aligned, blanks  bool
	trailing, braces int // of 10: how often a comment follows, a block is on one line
	n                int
}

func newWriter(seed int64) *writer {
	r := rand.New(rand.NewSource(seed))
	pick := func(list ...string) string { return list[r.Intn(len(list))] }
	return &writer{
		r: r, eol: pick("\n", "\n", "\r\n"), unit: pick("  ", "    ", "\t", " ", "      "), gap: pick(" ", " ", ""),
		syntax: pick("proto3", "proto3", "proto2", "editions"), aligned: r.Intn(3) == 0, blanks: r.Intn(3) == 0,
		trailing: r.Intn(8), braces: r.Intn(5),
	}
}

func (w *writer) line(depth int, text string) {
	w.b.WriteString(strings.Repeat(w.unit, depth) + text + w.eol)
}

func (w *writer) comment() string {
	words := []string{"the id", "übergröße 日本語", "message Fake { int32 a = 1; }", "}", "a // b", "TODO", "field_7 = 7;", "\"quoted\"", "http://x/y*"}
	return words[w.r.Intn(len(words))]
}

// above writes comments in front of a declaration, attached or not.
func (w *writer) above(depth int) {
	if w.r.Intn(6) == 0 {
		w.line(depth, "// section: "+w.comment())
		w.line(0, "")
	}
	switch w.r.Intn(7) {
	case 0:
		w.line(depth, "// "+w.comment())
	case 1:
		w.line(depth, "/* "+w.comment()+" */")
	case 2:
		w.line(depth, "/*")
		w.line(depth, " * "+w.comment())
		w.line(depth, " */")
	case 3:
		w.line(depth, "// one")
		w.line(depth, "// two "+w.comment())
	}
}

// behind is a comment at the end of a line.
func (w *writer) behind() string {
	if w.r.Intn(10) >= w.trailing {
		return ""
	}
	if w.r.Intn(3) == 0 {
		return " /* " + w.comment() + " */"
	}
	return strings.Repeat(" ", 1+w.r.Intn(3)) + "// " + w.comment()
}

func (w *writer) name(prefix string) string {
	w.n++
	return fmt.Sprintf("%s%d%s", prefix, w.n, []string{"", "_x", "_longer_name"}[w.r.Intn(3)])
}

func (w *writer) file(pkg string) string {
	if w.r.Intn(8) == 0 {
		w.b.WriteString("\ufeff")
	}
	if w.r.Intn(2) == 0 {
		w.line(0, "// Copyright © nobody.")
		w.line(0, "")
	}
	if w.syntax == "editions" {
		w.line(0, `edition = "2023";`)
	} else {
		w.line(0, `syntax = "`+w.syntax+`";`+w.behind())
	}
	if w.r.Intn(2) == 0 {
		w.line(0, "")
	}
	w.above(0)
	w.line(0, "package "+pkg+";")
	if w.r.Intn(2) == 0 {
		w.line(0, "")
		w.line(0, `import "google/protobuf/duration.proto"; // `+w.comment())
	}
	if w.r.Intn(2) == 0 {
		w.line(0, `option java_package = "a.b";`)
	}
	var types []string
	for range 1 + w.r.Intn(4) {
		if w.r.Intn(4) > 0 {
			w.line(0, "")
		}
		types = append(types, w.message(0, types))
		if w.r.Intn(3) == 0 {
			w.enum(0)
		}
	}
	if w.r.Intn(2) == 0 {
		w.service(types)
	}
	if w.r.Intn(4) == 0 {
		w.line(0, "// the end: "+w.comment())
	}
	text := w.b.String()
	if w.r.Intn(4) == 0 {
		text = strings.TrimRight(text, "\r\n")
	}
	return text
}

func (w *writer) message(depth int, types []string) string {
	w.above(depth)
	name := w.name("Msg")
	switch {
	case w.r.Intn(12) == 0:
		w.line(depth, "message "+name+" {}"+w.behind())
		return name
	case w.r.Intn(20) == 0:
		w.line(depth, "message "+name+" { /* nothing */ }")
		return name
	case w.r.Intn(10) < w.braces:
		w.line(depth, "message "+name+" { "+w.field(1, nil, 0)+" }"+w.behind())
		return name
	}
	brace := " {"
	if w.r.Intn(6) == 0 {
		brace = w.eol + strings.Repeat(w.unit, depth) + "{"
	}
	w.line(depth, "message "+name+brace+w.behind())
	if w.r.Intn(6) == 0 {
		w.line(0, "")
	}
	if w.r.Intn(8) == 0 {
		w.line(depth+1, `reserved 100 to 110, 200; // gone`)
		if w.syntax == "editions" {
			w.line(depth+1, "reserved dead, dead2;")
		} else {
			w.line(depth+1, `reserved "dead", 'dead2';`)
		}
	}
	if w.r.Intn(8) == 0 && w.syntax != "proto3" {
		w.line(depth+1, "extensions 1000 to 1999;")
	}
	own := types
	if depth < 2 && w.r.Intn(3) == 0 {
		own = append(own[:len(own):len(own)], w.message(depth+1, nil))
	}
	number := 1 + w.r.Intn(3)
	width := 0
	if w.aligned {
		width = 24
	}
	for range w.r.Intn(7) {
		if w.blanks {
			w.line(0, "")
		}
		w.above(depth + 1)
		if w.r.Intn(8) == 0 {
			w.line(depth+1, "oneof "+w.name("pick")+" {"+w.behind())
			for range 1 + w.r.Intn(3) {
				w.above(depth + 2)
				w.line(depth+2, w.member(number)+w.behind())
				number++
			}
			w.line(depth+1, "}")
			continue
		}
		if w.r.Intn(14) == 0 && w.syntax == "proto2" {
			w.line(depth+1, fmt.Sprintf("optional group %s = %d { optional int32 g%d = 1; }", w.name("Grp"), number, number))
		} else {
			w.line(depth+1, w.field(number, own, width)+w.behind())
		}
		number += 1 + w.r.Intn(3)
		if w.r.Intn(12) == 0 {
			number += 20
		}
	}
	if w.r.Intn(6) == 0 {
		w.line(depth+1, "// last words "+w.comment())
	}
	if w.r.Intn(10) == 0 {
		w.line(0, "")
	}
	w.line(depth, "}"+[]string{"", "", w.behind(), ";"}[w.r.Intn(4)])
	return name
}

func (w *writer) label() string {
	repeated := w.r.Intn(4) == 0
	switch {
	case repeated:
		return "repeated "
	case w.syntax == "proto2" || w.syntax == "proto3" && w.r.Intn(5) == 0:
		return "optional "
	}
	return ""
}

func (w *writer) field(number int, types []string, width int) string {
	scalars := []string{"string", "int32", "bytes", "bool", "double", "sint64", "fixed32"}
	typ := w.label() + scalars[w.r.Intn(len(scalars))]
	switch {
	case len(types) > 0 && w.r.Intn(3) == 0:
		typ = w.label() + types[w.r.Intn(len(types))]
	case w.r.Intn(10) == 0:
		typ = "map<string, " + scalars[w.r.Intn(len(scalars))] + ">"
	}
	name := w.name("f")
	text := typ + " " + name
	if width > 0 {
		text = fmt.Sprintf("%-*s %-*s", width, typ, width, name)
		text = strings.TrimRight(text, " ") + strings.Repeat(" ", max(1, 2*width+2-len(strings.TrimRight(text, " "))))
	} else {
		text += w.gap
	}
	text += "=" + w.gap + fmt.Sprint(number)
	switch w.r.Intn(8) {
	case 0:
		text += " [deprecated = true]"
	case 1:
		text += " /* inner */ [ json_name = \"j" + name + "\" ]"
	case 2:
		text += " // split" + w.eol + w.unit + w.unit
	}
	return text + ";"
}

func (w *writer) member(number int) string {
	return fmt.Sprintf("string %s%s=%s%d;", w.name("m"), w.gap, w.gap, number)
}

func (w *writer) enum(depth int) {
	w.above(depth)
	name := w.name("Enum")
	if w.r.Intn(10) < w.braces {
		w.line(depth, fmt.Sprintf("enum %s { %s_ZERO = 0; }", name, strings.ToUpper(name)))
		return
	}
	w.line(depth, "enum "+name+" {"+w.behind())
	for i := range 1 + w.r.Intn(4) {
		w.above(depth + 1)
		w.line(depth+1, fmt.Sprintf("%s_V%d%s=%s%d;", strings.ToUpper(name), i, w.gap, w.gap, i)+w.behind())
	}
	w.line(depth, "}")
}

func (w *writer) service(types []string) {
	w.above(0)
	w.line(0, "service "+w.name("Svc")+" {"+w.behind())
	for range w.r.Intn(4) {
		w.above(1)
		in, out := types[w.r.Intn(len(types))], types[w.r.Intn(len(types))]
		end := []string{";", " {}", " {" + w.eol + w.unit + "}"}[w.r.Intn(3)]
		w.line(1, fmt.Sprintf("rpc %s(%s) returns (stream %s)%s", w.name("Do"), in, out, end)+w.behind())
	}
	w.line(0, "}")
}
