package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

// gzipUpTo compresses what part makes of 0, 1, 2…, until the file has nearly a megabyte or the contents most bytes.
func gzipUpTo(t *testing.T, head, tail string, most int, part func(i int) string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	write := func(s string) {
		if _, err := w.Write([]byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	write(head)
	for i, n := 0, 0; b.Len() < megabyte-64<<10 && n < most; i++ {
		s := part(i)
		n += len(s)
		write(s)
	}
	write(tail)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// definitionFiles are files with as many definitions as fit, for schema extract.
func definitionFiles(t *testing.T) []megabyteFile {
	const es1 = "const {proto3}=require(\"@bufbuild/protobuf\");\n"
	const most = 30 << 20
	message := func(format string) func(i int) string {
		return func(i int) string { return fmt.Sprintf(format, i, i) }
	}
	return []megabyteFile{
		{"a.js.gz messages", gzipUpTo(t, es1, "", most, message("const M%d=proto3.makeMessageType(\"a.v1.M%d\",()=>[{no:1,name:\"a\",kind:\"scalar\",T:9}]);\n"))},
		{"a.js.gz packages", gzipUpTo(t, es1, "", most, message("const M%d=proto3.makeMessageType(\"p%d.M\",()=>[{no:1,name:\"a\",kind:\"scalar\",T:9}]);\n"))},
		// Just as many as are allowed, which is what costs most.
		{"a.js.gz allowed messages", gzipUpTo(t, es1, "//"+strings.Repeat("x", 1<<20), 2_900_000, message("const M%d=proto3.makeMessageType(\"a.v1.M%d\",()=>[{no:1,name:\"a\",kind:\"scalar\",T:9}]);\n"))},
		{"a.js.gz fields", gzipUpTo(t, es1, "", most, func(i int) string {
			return fmt.Sprintf("const M%d=proto3.makeMessageType(\"a.v1.M%d\",()=>[%s]);\n", i, i, strings.Repeat(`{no:1,name:"a",kind:"scalar",T:9},`, 200))
		})},
		{"a.js.gz enums", gzipUpTo(t, es1, "", most, func(i int) string {
			return fmt.Sprintf("const E%d=proto3.makeEnum(\"a.v1.E%d\",[%s]);\n", i, i, strings.Repeat(`{no:1,name:"A"},`, 200))
		})},
		{"a.json.gz types", gzipUpTo(t, `{"nested":{`, `"z":{"fields":{}}}}`, most, message(`"M%d":{"fields":{"a":{"type":"string","id":%d}}},`))},
		{"a.desc messages", descriptorOf(0x22, func(i int) []byte { return named(fmt.Sprint("M", i)) })},
		{"a.desc enums", descriptorOf(0x2a, func(i int) []byte { return named(fmt.Sprint("E", i)) })},
		{"a.desc imports", descriptorOf(0x1a, func(i int) []byte { return []byte(fmt.Sprint(i, ".proto")) })},
		{"a.desc fields", descriptorOf(0x22, func(i int) []byte {
			return append(named(fmt.Sprint("M", i)), bytes.Repeat(delimited(0x12, append(named("a"), 0x18, 1, 0x20, 1, 0x28, 9)), 50)...)
		})},
		{"a.desc files", descriptorFiles()},
		{"a.bin descriptors", bytes.Repeat(append([]byte("noise"), delimited(0x0a, []byte("a.proto\x12\x01a\x22\x03\x0a\x01M"))[2:]...), megabyte/30)},
		{"a.pb.go literals", fill("\"\\n\\aa.proto\" +\n")},
		{"a_pb2.py literals", fill("b'\\n\\x07a.proto\\x12\\x01a'\n")},
	}
}

// delimited is a field of a message.
func delimited(tag byte, data []byte) []byte {
	return append(binary.AppendUvarint([]byte{tag}, uint64(len(data))), data...)
}

// named is a message with field 1, which names most things in descriptors.
func named(name string) []byte { return delimited(0x0a, []byte(name)) }

// descriptorOf is a descriptor set with one file that has as many elements of a kind as fit.
func descriptorOf(tag byte, element func(i int) []byte) []byte {
	file := append(named("a.proto"), delimited(0x12, []byte("a.v1"))...)
	for i := 0; len(file) < megabyte-1024; i++ {
		file = append(file, delimited(tag, element(i))...)
	}
	return delimited(0x0a, file)
}

// descriptorFiles is a descriptor set with many files, each of which imports the next; the last imports the first.
func descriptorFiles() []byte {
	var set []byte
	for i := 0; len(set) < megabyte-1024; i++ {
		file := append(named(fmt.Sprint(i, ".proto")), delimited(0x12, []byte(fmt.Sprint("p", i)))...)
		file = append(file, delimited(0x1a, []byte(fmt.Sprint(i+1, ".proto")))...)
		set = append(set, delimited(0x0a, append(file, delimited(0x22, named("M"))...))...)
	}
	return set
}

// compressedRecordings are recordings of other tools that contain much more than their size.
func compressedRecordings(t *testing.T) []megabyteFile {
	const most = 300 << 20
	const har = `{"log":{"version":"1.2","creator":{"name":"x","version":"1"},"entries":[`
	entry := func(int) string {
		return `{"startedDateTime":"2026-01-01T00:00:00Z","time":1,"request":{"method":"GET","url":"http://a/","httpVersion":"HTTP/1.1","headers":[]},"response":{"status":200,"headers":[],"content":{"text":"` + strings.Repeat("x ", 50_000) + `"}}},`
	}
	return []megabyteFile{
		{"a.har.gz", gzipUpTo(t, har, "{}]}}", most, entry)},
		{"a.jsonl.gz braces", gzipUpTo(t, "", "", most, func(int) string { return strings.Repeat("{}\n", 1000) })},
		{"a.flow.gz", gzipUpTo(t, "", "", most, func(int) string { return strings.Repeat("0:~", 1000) })},
		{"a.pcap.gz", gzipUpTo(t, string(recordings()[0].data[:24]), "", most, func(int) string { return strings.Repeat("\x00", 16_000) })},
	}
}

// settings are files that configure commands.
func settings() []megabyteFile {
	var aliases strings.Builder
	aliases.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 30; i++ {
		fmt.Fprintf(&aliases, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	return []megabyteFile{
		{"unwire.yaml aliases", []byte(aliases.String())},
		{"unwire.yaml nested", nested("[", "", "]")},
		{"unwire.yaml indented", nested("{a: ", "1", "}")},
		{"unwire.yaml keys", lines("", "", func(i int) string { return fmt.Sprintf("k%d: 1\n", i) })},
		{"unwire.yaml names", lines("redact:\n  names:\n", "", func(i int) string { return fmt.Sprintf("    - n%d\n", i) })},
		{"evidence.json nested", nested(`{"fields":{"1":`, "{}", "}}")},
		{"evidence.json many", lines(`{"version":1,"methods":{`, `"z":{}}}`, func(i int) string { return fmt.Sprintf(`"/a.B/C%d":{},`, i) })},
		{"evidence.json brackets", nested("[", "", "]")},
		{"evidence.pb nested", nestedMessage()},
		{"evidence.pb zeros", make([]byte, megabyte)},
		{"keys.txt lines", lines("", "", func(i int) string {
			return fmt.Sprintf("CLIENT_RANDOM %064x %096x\n", i, i)
		})},
		{"keys.txt words", fill("CLIENT_RANDOM ")},
		{"a.patch sets", fill("set 1.2=x\n")},
		{"a.patch paths", append([]byte("set "), append(fill("1.")[:megabyte-100], "1=x\n"...)...)},
		{"a.patch one value", append([]byte("set 1="), fill("x")[:megabyte-100]...)},
		{"a.replay lines", fill("expect 1.2=x\n")},
		{"a.replay sections", fill("-- a --\n")},
	}
}
