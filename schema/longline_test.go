package schema

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
)

// recursiveDefinitions are so many messages of 30 fields that refer to each other.
func recursiveDefinitions(messages int, newline string) string {
	var b strings.Builder
	b.WriteString("syntax = \"proto3\";" + newline + "package p;" + newline)
	for i := range messages {
		fmt.Fprintf(&b, "message M%d { ", i)
		for j := range 30 {
			fmt.Fprintf(&b, "M%d f%d = %d;%s", (i*7+j*13+1)%messages, j, j+1, newline)
		}
		b.WriteString("} ")
	}
	return b.String()
}

// recursiveSet is the same as a descriptor set.
func recursiveSet(messages int) *descriptorpb.FileDescriptorSet {
	f := &descriptorpb.FileDescriptorProto{Name: proto.String("p.proto"), Package: proto.String("p"), Syntax: proto.String("proto3")}
	for i := range messages {
		m := &descriptorpb.DescriptorProto{Name: proto.String(fmt.Sprint("M", i))}
		for j := range 30 {
			m.Field = append(m.Field, &descriptorpb.FieldDescriptorProto{
				Name: proto.String(fmt.Sprint("f", j)), Number: proto.Int32(int32(j + 1)), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
				Type: descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), TypeName: proto.String(fmt.Sprint(".p.M", (i*7+j*13+1)%messages)),
			})
		}
		f.MessageType = append(f.MessageType, m)
	}
	return &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{f}}
}

func writeDefinitions(t testing.TB, name, text string) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return name
}

// Definitions of which each refers to many are loaded, searched and printed in
// time that grows with them, also where all of them are on one line: 3,000
// messages took nine minutes.
func TestManyDefinitions(t *testing.T) {
	const messages, most = 3000, 20 * time.Second
	set, err := proto.Marshal(recursiveSet(messages))
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{
		"lines":          writeDefinitions(t, "p.proto", recursiveDefinitions(messages, "\n")),
		"one line":       writeDefinitions(t, "p.proto", recursiveDefinitions(messages, "")),
		"descriptor set": writeDefinitions(t, "p.binpb", string(set)),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			s, err := LoadSource(t.Context(), file)
			if err != nil {
				t.Fatal(err)
			}
			loaded := time.Since(start)
			for m := range s.Messages() {
				if c := s.Location(m).LeadingComments; c != "" {
					t.Errorf("comment %q", c)
				}
			}
			found := time.Since(start)
			d := s.Descriptor("p.M17")
			if d == nil || len(s.Dependencies(d)) != messages-1 {
				t.Fatal("p.M17 does not need the others")
			}
			printed := 0
			for _, need := range s.Dependencies(d)[:100] {
				text, err := s.Text(need)
				if err != nil || !strings.HasPrefix(text, "message M") {
					t.Fatalf("%.100q, %v", text, err)
				}
				printed += len(text)
			}
			if took := time.Since(start); took > most {
				t.Errorf("took %s", took)
			}
			t.Logf("%s to load, %s with comments, %s with %d bytes of text", loaded, found, time.Since(start), printed)
		})
	}
}

// A folded file declares what it declared, and every byte of it is where original
// has it.
func TestFold(t *testing.T) {
	long := strings.Repeat("x", 300)
	for name, text := range map[string]string{
		"short lines": "syntax = \"proto3\";\nmessage A {}\n",
		"one line":    recursiveDefinitions(200, ""),
		"strings and comments": "syntax = \"proto3\"; message A { " + strings.Repeat("/* "+long+"; { */ ", 20) +
			strings.Repeat("string s"+long+" = 1 [json_name = \"a; "+long+"\\\" {\", deprecated = true];", 1) + "} // " + strings.Repeat(long+"; ", 20) + "\nmessage B { A a = 1; }",
		"no spaces": "syntax=\"proto3\";message A{reserved " + strings.Repeat("1,", 5000) + "1;}",
		"no end":    "message A { string s = 1 [json_name = \"" + strings.Repeat("a;", 5000),
		"open":      "message A { /* " + strings.Repeat("a;", 5000),
	} {
		t.Run(name, func(t *testing.T) {
			folded, original := FoldLongLines(text)
			for i := range folded {
				if at := original(i); at < len(text) && folded[i] != text[at] && folded[i] != '\n' {
					t.Fatalf("byte %d is %q, and %q at %d", i, folded[i], text[at], at)
				}
			}
			if original(len(folded)) != len(text) {
				t.Errorf("it ends at %d of %d", original(len(folded)), len(text))
			}
			for _, line := range strings.Split(folded, "\n") {
				if len(line) > longLine+foldAt && strings.Count(line, " ")+strings.Count(line, ",") > 20 && !strings.Contains(line, "//") && !strings.Contains(line, "/*") {
					t.Errorf("a line of %d bytes is left: %.80q", len(line), line)
				}
			}
			was, err := FromTexts(map[string]string{"a.proto": text})
			if err != nil {
				return // it is no definition
			}
			is, err := FromTexts(map[string]string{"a.proto": folded})
			if err != nil || !proto.Equal(protodesc.ToFileDescriptorProto(was.Files[0]), protodesc.ToFileDescriptorProto(is.Files[0])) {
				t.Errorf("it declares something else: %v", err)
			}
		})
	}
}

// A type that shares its line with others is printed as its source has it.
func TestTextOfOneLine(t *testing.T) {
	file := writeDefinitions(t, "a.proto", `syntax = "proto3";`+"\n"+`/* Of A. */ message A { int32 a = 1; /* in A */ } message B { A a = 1; }`)
	s, err := LoadSource(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"A": "// Of A.\nmessage A { int32 a = 1; /* in A */ }\n", "B": "message B { A a = 1; }\n"} {
		if got, err := s.Text(s.Descriptor(name)); err != nil || strings.ReplaceAll(got, "//  ", "// ") != want && got != want {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	const messages = 10_000
	set, err := proto.Marshal(recursiveSet(messages))
	if err != nil {
		b.Fatal(err)
	}
	for name, file := range map[string]string{
		"text":     writeDefinitions(b, "p.proto", recursiveDefinitions(messages, "\n")),
		"one-line": writeDefinitions(b, "p.proto", recursiveDefinitions(messages, "")),
		"set":      writeDefinitions(b, "p.binpb", string(set)),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := LoadSource(b.Context(), file); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*messages/b.Elapsed().Seconds(), "messages/s")
		})
	}
}

func FuzzFold(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 8 {
		var b strings.Builder
		for b.Len() < 6000 {
			b.WriteString([]string{"a", " ", "\"", "'", "//", "/*", "*/", "\n", ";", "\\"}[r.IntN(10)])
		}
		f.Add(b.String())
	}
	f.Fuzz(func(t *testing.T, text string) {
		folded, original := FoldLongLines(text)
		if original(len(folded)) != len(text) {
			t.Errorf("it ends at %d of %d", original(len(folded)), len(text))
		}
	})
}
