package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"unwire/decode/envelope"
)

// A megabyteFile is a file of at most 1 MB that tries to cost much more than its size.
type megabyteFile struct {
	name string
	data []byte
}

// fill repeats a text up to a megabyte.
func fill(text string) []byte {
	return bytes.Repeat([]byte(text), megabyte/len(text))
}

// lines joins the lines that line makes of 0, 1, 2… up to a megabyte, between a head and a tail.
func lines(head, tail string, line func(i int) string) []byte {
	b := []byte(head)
	for i := 0; len(b)+len(tail) < megabyte-200; i++ {
		b = append(b, line(i)...)
	}
	return append(b, tail...)
}

// nested is a text of n openings and n closings around a middle.
func nested(open, middle, end string) []byte {
	n := megabyte / (len(open) + len(end))
	return []byte(strings.Repeat(open, n) + middle + strings.Repeat(end, n))
}

// nestedMessage is a message in a message in a message…, as deep as a megabyte allows.
func nestedMessage() []byte {
	// Built from the inside; the length's size grows on the way.
	tail := make([]byte, 0, megabyte)
	for length := 0; len(tail) < megabyte-8; {
		head := binary.AppendUvarint([]byte{0x0a}, uint64(length))
		length += len(head)
		for i := len(head) - 1; i >= 0; i-- {
			tail = append(tail, head[i])
		}
	}
	for i, j := 0, len(tail)-1; i < j; i, j = i+1, j-1 {
		tail[i], tail[j] = tail[j], tail[i]
	}
	return tail
}

// gzipBomb is a gzip stream of a megabyte that inflates to a gigabyte of text.
func gzipBomb(t *testing.T, of []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	for b.Len() < megabyte-8<<10 {
		if _, err := w.Write(of); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// payloads are messages and other bytes, for decode, diff, infer and, as bodies, for every command that reads captures.
func payloads(t *testing.T) []megabyteFile {
	half := fill("\x08\x01")
	return []megabyteFile{
		{"nested message", nestedMessage()},
		{"nested groups", fill("\x0b")},
		{"small fields", half},
		{"small fields of many numbers", lines("", "", func(i int) string {
			return string(append(binary.AppendUvarint(nil, uint64(i+1)<<3), 1))
		})},
		{"empty strings", fill("\x0a\x00")},
		{"packed varints", append(binary.AppendUvarint([]byte{0x0a}, uint64(megabyte-8)), bytes.Repeat([]byte{1}, megabyte-8)...)},
		{"zeros", make([]byte, megabyte)},
		{"printable", fill("AAAAAAA")},
		{"short words", fill("ab ")},
		{"base64", fill("QUFB")},
		{"percent", fill("%25")},
		{"backslashes", fill(`\`)},
		{"brackets", fill("[")},
		{"balanced brackets", nested("[", "", "]")},
		{"balanced braces", nested(`{"a":`, "1", "}")},
		{"many members", lines("{", `"z":1}`, func(i int) string { return fmt.Sprintf(`"a%d":%d,`, i, i) })},
		{"equal members", lines("{", `"z":1}`, func(int) string { return `"a":"",` })},
		{"quotes", fill(`"`)},
		{"escaped quotes", []byte(`{"a":"` + strings.Repeat(`\"`, megabyte/2-8) + `"}`)},
		{"angle brackets", fill("<a>")},
		{"newlines", fill("\n")},
		{"events", fill("data: 1\n\n")},
		{"header lines", fill("a: b\r\n")},
		{"assignments", fill("a=b&")},
		{"names of secrets", fill(`token="x" `)},
		{"bearer", fill("Bearer ")},
		{"urls", fill("http://a@b/?t=")},
		{"dots", fill("eyJ.")},
		{"control characters", fill("\x1b[31m")},
		{"invalid UTF-8", fill("\xff\xfe")},
		{"wide text", fill("\u202e\U0001f600")},
		{"gzip bomb", gzipBomb(t, half)},
		{"gzip members", bytes.Repeat(gzipOf(t, []byte("\x08\x01")), megabyte/32)},
		{"empty envelopes", fill("\x00\x00\x00\x00\x00")},
		{"small envelopes", fill("\x00\x00\x00\x00\x02\x08\x01")},
		{"envelopes of distinct types", lines("", "", func(i int) string {
			message := append(binary.AppendUvarint(nil, uint64(i+1)<<3), 1)
			return string(envelope.Append(nil, 0, message))
		})},
	}
}

func gzipOf(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// definitionTexts are .proto files.
func definitionTexts() []megabyteFile {
	const head = "syntax = \"proto3\";\npackage a.v1;\n"
	return []megabyteFile{
		{"nested messages", []byte(head + string(nested("message A{", "", "}")[:megabyte-100]))},
		{"open messages", []byte(head + string(fill("message A{")[:megabyte-100]))},
		{"balanced messages", append([]byte(head), nested("message A{", "", "}")...)[:megabyte-100]},
		{"many messages", lines(head, "", func(i int) string { return fmt.Sprintf("message M%d{M%d a=1;}\n", i, i/2) })},
		{"many fields", lines(head+"message A{", "}", func(i int) string { return fmt.Sprintf("int32 f%d=%d;\n", i, i+1) })},
		{"many values", lines(head+"enum E{", "}", func(i int) string { return fmt.Sprintf("V%d=%d;\n", i, i) })},
		{"many imports", lines(head, "", func(i int) string { return fmt.Sprintf("import \"a%d.proto\";\n", i) })},
		{"nested options", append([]byte(head+"option (x) = "), nested("{a:", "1", "}")...)},
		{"comments", append([]byte(head), fill("/* x */\n")...)},
		{"open comment", append([]byte(head+"/*"), fill("x ")...)},
		{"long string", []byte(head + `option java_package = "` + strings.Repeat(`\x41`, megabyte/4-32) + `";`)},
		{"many reserved", lines(head+"message A{reserved ", "9999999;}", func(i int) string { return fmt.Sprintf("%d,", 2*i+1) })},
		{"many methods", lines(head+"message A{} service S{", "}", func(i int) string { return fmt.Sprintf("rpc M%d(A) returns(A);\n", i) })},
	}
}

// codeFiles are scripts and archives, for schema extract.
func codeFiles(t *testing.T) []megabyteFile {
	const es1 = "const {proto3}=require(\"@bufbuild/protobuf\");\n"
	large := scriptOf(megabyte/2, 0)
	whole := func(_, n int) (offset, size int) { return 0, n }
	return []megabyteFile{
		{"a.js parentheses", fill("(")},
		{"a.js balanced", append([]byte(es1), nested("(", "1", ")")...)},
		{"a.js arrays", append([]byte(es1), nested("[", "1", "]")...)},
		{"a.js functions", append([]byte(es1), nested("(()=>{", "", "})()")...)},
		{"a.js templates", append([]byte(es1), nested("`${", "1", "}`")...)},
		{"a.js unary", append([]byte(es1), fill("!")...)},
		{"a.js ternaries", append([]byte(es1+"x="), fill("a?b:")...)},
		{"a.js members", append([]byte(es1+"x"), fill(".a")...)},
		{"a.js sums", append([]byte(es1+"x=1"), fill("+1")...)},
		{"a.js commas", append([]byte(es1+"x=[1"), fill(",1")...)},
		{"a.js regex", append([]byte(es1+"x=/"), fill("(")...)},
		{"a.js slashes", append([]byte(es1), fill("/")...)},
		{"a.js messages", lines(es1, "", func(i int) string {
			return fmt.Sprintf("const M%d=proto3.makeMessageType(\"a.M%d\",()=>[{no:1,name:\"a\",kind:\"message\",T:M%d}]);\n", i, i, i/2)
		})},
		{"a.js equal messages", lines(es1, "", func(i int) string {
			return fmt.Sprintf("const M%d=proto3.makeMessageType(\"a.M\",()=>[{no:%d,name:\"a\",kind:\"scalar\",T:9}]);\n", i, i+1)
		})},
		{"a.js packages", lines(es1, "", func(i int) string {
			return fmt.Sprintf("const M%d=proto3.makeMessageType(\"p%d.M\",()=>[{no:1,name:\"a\",kind:\"message\",T:M%d}]);\n", i, i, i*7%1000)
		})},
		{"a.js aliases", lines(es1+"var a0=proto3;", "", func(i int) string { return fmt.Sprintf("var a%d=a%d;", i+1, i) })},
		{"a.js fields", lines(es1+"const M=proto3.makeMessageType(\"a.M\",()=>[", "]);", func(i int) string {
			return fmt.Sprintf("{no:%d,name:\"f%d\",kind:\"scalar\",T:9},", i+1, i)
		})},
		{"a.js base64", []byte(`import {fileDesc} from "@bufbuild/protobuf/codegenv1"; const f=fileDesc("` + strings.Repeat("CgQK", megabyte/4-100) + `");`)},
		{"a.json nested", append([]byte(`{"nested":`), nested(`{"nested":`, "1", "}")...)[:megabyte-1]},
		{"a.json balanced", nested(`{"nested":{"a":`, `{"fields":{}}`, "}}")},
		{"a.json types", lines(`{"nested":{`, `"z":{"fields":{}}}}`, func(i int) string {
			return fmt.Sprintf(`"M%d":{"fields":{"a":{"type":"M%d","id":1}}},`, i, i/2)
		})},
		{"a.desc", nestedMessage()},
		{"a.gz", gzipBomb(t, fill("a"))},
		{"a.js.gz", gzipBomb(t, []byte(es1))},
		{"a.zip many", zipOf(t, megabyte/100, nil)},
		{"a.zip bombs", zipOf(t, 100, make([]byte, 8<<20))},
		{"a.tar many", tarOf(t)},
		{"a.asar", asarOf(es1Message, whole)},
		{"a.asar importing members", asarOf(es1Import+es1Message, whole)},
		{"a.asar large members", asarOf(large, whole)},
		{"a.asar overlapping members", asarOf(large, func(i, n int) (offset, size int) { return i, n - i })},
		{"a.zip scripts", zipOfScripts(t)},
		{"a.tgz scripts", tgzOfScripts(t)},
	}
}

func zipOf(t *testing.T, members int, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := range members {
		m, err := w.Create(fmt.Sprintf("%d.js", i))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func tarOf(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; b.Len() < megabyte-4096; i++ {
		if err := w.WriteHeader(&tar.Header{Name: fmt.Sprintf("%d.js", i), Mode: 0o600}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Scripts that are members of archives.
const (
	es1Import  = `import{N}from"./n";`
	es1Message = `const{proto3}=require("@bufbuild/protobuf");const M=proto3.makeMessageType("a.v1.M",()=>[{no:1,name:"a",kind:"scalar",T:9}]);`
)

// scriptOf is a script of about so many bytes, whose messages have numbers from first on.
func scriptOf(size, first int) string {
	var b strings.Builder
	b.WriteString("const{proto3}=require(\"@bufbuild/protobuf\");\n")
	for i := first; b.Len() < size; i++ {
		fmt.Fprintf(&b, "const M%d=proto3.makeMessageType(\"a.v1.M%d\",()=>[{no:1,name:\"a\",kind:\"scalar\",T:9}]);\n", i, i)
	}
	return b.String()
}

// plainScript is a script of so many bytes without definitions, which differs for each n.
func plainScript(size, n int) string {
	return fmt.Sprintf("x=%d;", n) + strings.Repeat("f(a,1);", size/7)
}

// asarOf is an archive of Electron whose members have ranges of a body: span returns the range of member i in a body of
// n bytes.
func asarOf(body string, span func(i, n int) (offset, size int)) []byte {
	member := func(name string, i int) string {
		offset, size := span(i, len(body))
		return fmt.Sprintf(`"%s.js":{"size":%d,"offset":"%d"}`, name, size, offset)
	}
	index := lines(`{"files":{`, member("z", 0)+"}}"+strings.Repeat(" ", len(body)), func(i int) string { return member(fmt.Sprint(i), i) + "," })
	index = index[:len(index)-len(body)]
	index = append(index, bytes.Repeat([]byte(" "), (4-len(index)%4)%4)...)
	n := uint32(len(index))
	var b []byte
	for _, v := range []uint32{4, n + 8, n + 4, n} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return append(append(b, index...), body...)
}

// zipOfScripts is a zip archive of large scripts that differ.
func zipOfScripts(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; b.Len() < megabyte-64<<10; i++ {
		m, err := w.Create(fmt.Sprintf("%d.js", i))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(m, plainScript(4<<20, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// tgzOfScripts is a compressed tar archive of large scripts that differ.
func tgzOfScripts(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for i := 0; b.Len() < megabyte-64<<10; i++ {
		script := plainScript(4<<20, i)
		if err := w.WriteHeader(&tar.Header{Name: fmt.Sprintf("%d.js", i), Mode: 0o600, Size: int64(len(script))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, script); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// recordings are files of other tools, for import.
func recordings() []megabyteFile {
	pcapHead := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	pcapHead = append(pcapHead, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 101, 0, 0, 0)
	packets := func(packet func(i int) []byte) []byte {
		b := bytes.Clone(pcapHead)
		for i := 0; len(b) < megabyte-200; i++ {
			p := packet(i)
			b = binary.LittleEndian.AppendUint32(b, uint32(i))
			b = binary.LittleEndian.AppendUint32(b, 0)
			b = binary.LittleEndian.AppendUint32(b, uint32(len(p)))
			b = binary.LittleEndian.AppendUint32(b, uint32(len(p)))
			b = append(b, p...)
		}
		return b
	}
	tcp := func(source, flags int, seq uint32, data string) []byte {
		b := []byte{0x45, 0, 0, byte(40 + len(data)), 0, 0, 0, 0, 64, 6, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1}
		b = append(b, byte(source>>8), byte(source), 1, 187)
		b = binary.BigEndian.AppendUint32(b, seq)
		b = append(b, 0, 0, 0, 0, 0x50, byte(flags), 255, 255, 0, 0, 0, 0)
		return append(b, data...)
	}
	har := func(entry func(i int) string) []byte {
		return lines(`{"log":{"version":"1.2","creator":{"name":"x","version":"1"},"entries":[`, `{}]}}`, func(i int) string { return entry(i) + "," })
	}
	return []megabyteFile{
		{"a.pcap empty packets", packets(func(int) []byte { return nil })},
		{"a.pcap many connections", packets(func(i int) []byte { return tcp(i, 2, 0, "") })},
		{"a.pcap gaps", packets(func(i int) []byte { return tcp(1, 16, uint32(i)*100000, "x") })},
		{"a.pcap backwards", packets(func(i int) []byte { return tcp(1, 16, uint32(1<<30-i*2), "x") })},
		{"a.pcap overlaps", packets(func(i int) []byte { return tcp(1, 16, uint32(i/2), "GET / HTTP/1.1\r\n") })},
		{"a.pcap requests", packets(func(i int) []byte { return tcp(1, 16, uint32(i*18), "GET / HTTP/1.1\r\n\r\n") })},
		{"a.har empty entries", har(func(int) string { return "{}" })},
		{"a.har entries", har(func(i int) string {
			return fmt.Sprintf(`{"startedDateTime":"2026-01-01T00:00:00Z","time":1,"request":{"method":"GET","url":"http://a/%d","httpVersion":"HTTP/1.1","headers":[]},"response":{"status":200,"headers":[],"content":{"text":"x"}}}`, i)
		})},
		{"a.har nested", append([]byte(`{"log":{"version":"1.2","entries":[`), nested("[", "", "]")...)},
		{"a.jsonl braces", lines("", "", func(int) string { return "{}\n" })},
		{"a.jsonl nested", nested(`{"a":`, "1", "}")},
		{"a.flow nested", fill("1:")},
		{"a.flow lengths", fill("0:~")},
	}
}
