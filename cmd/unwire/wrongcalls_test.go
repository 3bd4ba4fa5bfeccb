//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/cmd/internal/term"
)

// A wrongCall is a command line that fails, with what its error has to contain.
type wrongCall struct {
	command string
	status  int

	// what and do are parts of the error: what failed and where, and what to do next.
	what, do string
}

var wrongCalls = []wrongCall{
	// Files of other kinds, and files that do not exist.
	{"ls text.txt", 3, "text.txt: the file is not an unwire capture", "'unwire capture -o F.uwc' records a capture"},
	{"ls missing.uwc", 3, "missing.uwc: no such file", "check the file name"},
	{"ls folder", 3, "folder: the file is not an unwire capture: the path is a folder", "'unwire capture -o F.uwc' records a capture"},
	{"ls cut.uwc", 3, "cut.uwc: the capture is damaged", "the output covers the readable part"},
	{"ls zero.bin", 3, "zero.bin: the file is not an unwire capture: the file is empty", "records a capture"},
	{"show text.txt 1", 3, "text.txt: the file is not an unwire capture", "records a capture"},
	{"decode missing.bin", 3, "missing.bin: no such file", "check the file name"},
	{"decode json.uwc", 2, "json.uwc is a capture, but decode needs a frame of it", "name a frame, such as 'json.uwc#1/up/0'"},
	{"import text.txt -o z.uwc", 3, "text.txt: the file has none of the formats that unwire imports", "supported formats: pcap and pcapng, HAR"},
	{"import json.uwc -o z.uwc", 3, "json.uwc is an unwire capture already", "'unwire ls FILE' lists its exchanges"},
	{"import missing.pcap -o z.uwc", 3, "missing.pcap: no such file", "check the file name"},
	{"schema extract text.txt", 3, "text.txt: unsupported file type", "supported types: JavaScript"},
	{"schema extract missing.js", 3, "missing.js: no such file", "check the file name"},
	{"drift missing1 missing2", 3, "missing1: no such file", "check the file name"},
	{"use text.txt", 3, "text.txt: the file is not an unwire capture", "the capture comes last: unwire use DEFINITIONS… F.uwc"},
	{"use folder json.uwc", 3, "folder: the input is neither a folder of .proto files", "writes a descriptor set"},
	{"schema update --proto folder --from json.uwc", 3, "no .proto file was found (in the folder folder)", "name a folder with .proto files"},
	{"schema check --proto missing/ json.uwc", 3, "missing/: no such file", "check the file name"},
	{"standin --script text.txt", 3, "text.txt: script: line 1", "'unwire standin --print-script' prints a valid script"},

	// Numbers, addresses and names that do not exist.
	{"show json.uwc 99", 3, "json.uwc: exchange 99 does not exist", "'unwire ls F.uwc' lists the exchanges"},
	{"show json.uwc abc", 2, `"abc" is not an exchange number`, "'unwire ls json.uwc' lists the exchanges"},
	{"show 2", 2, "2: no such file", "name the capture before the exchange: F.uwc 2"},
	{"show json.uwc", 2, "json.uwc: the exchange number is missing", "give the number of an exchange"},
	{"show json.uwc#1/up/99", 3, "json.uwc#1/up/99: the frame does not exist", "lists the frames, which are numbered from 0"},
	{"shwo json.uwc 1", 2, `unknown command "shwo"`, "did you mean 'unwire show'?"},
	{"completion tcsh", 2, `unwire completion: unknown command "tcsh"`, "unwire completion --help"},
	{"schema ifner", 2, `unknown command "ifner"`, "did you mean 'unwire schema infer'?"},
	{"replay siute x", 2, `unwire replay: "siute" is neither a command nor an existing file`, "did you mean 'unwire replay suite'?"},
	{"capture --lisen 8080", 2, "unknown flag: --lisen", "did you mean --listen? see 'unwire capture --help'"},
	{"doctor --nosuchflag", 2, "unknown flag: --nosuchflag", "see 'unwire doctor --help'"},
	{"show json.uwc#1/up/0/2", 2, `"1/up/0/2" does not name an exchange or a frame`, "json.uwc#7/up/0 (its first frame to the server)"},
	{"note json.uwc 99 hi", 3, "json.uwc: exchange 99 does not exist", "lists the exchanges"},
	{"show json.uwc 1 --explain 9", 2, "--explain 9: no message of the exchange has this field", "a path is field numbers joined by dots"},
	{"credentials nosuch", 4, "open nosuch: no such file", "'unwire credentials --help' lists the forms of REFERENCE"},

	// Recording.
	{"capture -o nofolder/y.uwc -- true", 3, "nofolder/y.uwc: the folder does not exist: nofolder", "create the folder first"},
	{"capture -o y.uwc -- nosuchcmd", 127, "the command nosuchcmd was not found", "check the name, or give its path"},
	{"capture -o y.uwc --upstream-ca missing.pem -- true", 3, "missing.pem: no such file", "check the file name"},
	{"capture -o y.uwc --upstream-ca text.txt -- true", 3, "text.txt contains no PEM certificate", "the file needs a line BEGIN CERTIFICATE"},
	{"capture -o y.uwc --listen 0.0.0.0:8080", 2, "--listen 0.0.0.0:8080 is not a loopback address", "use 127.0.0.1 or ::1"},
	{"capture -o y.uwc --max-body 1XB -- true", 2, `--max-body: must be a size such as 4096, 64KB, 64KiB or 1G, not "1XB"`, "64KiB"},
	{"capture -o y.uwc --reverse notaurl", 2, "--reverse must be a URL", "such as https://host"},

	// Traffic of the wrong kind, and none.
	{"schema infer json.uwc", 3, "the input contains no protobuf RPC message", "'unwire ls F.uwc' shows each exchange's codec"},
	{"schema infer empty.uwc", 3, "the input contains no protobuf RPC message", "'unwire ls F.uwc' shows each exchange's codec"},
	{"schema check --proto none json.uwc", 2, "--proto none", "check needs definitions"},
	{"schema match json.uwc", 3, "there are no definitions", "'unwire schema extract' extracts definitions"},
	{"align json.uwc", 3, "json.uwc contains no method that was called both in protobuf and in JSON", "'unwire replay F.uwc ID --codec json -o F2.uwc'"},
	{"replay json.uwc 1 --codec proto --to http://127.0.0.1:1", 3, "definitions lack the type of the message", "Give its definition with --proto"},

	// Servers that cannot be reached.
	{"replay json.uwc 1 --to http://127.0.0.1:1", 3, "no connection to 127.0.0.1:1: connection refused", "check that the server is running"},
	{"replay json.uwc 1 --to https://example.com", 2, "example.com is not this machine", "use --live and --allow-host"},
	{"call a.v1.B/C --to http://127.0.0.1:1", 3, "no connection to 127.0.0.1:1: connection refused", "check that the server is running, and check the port"},
	{"probe json.uwc 1", 2, `unwire probe: unexpected argument "json.uwc"`, "write --from F.uwc#ID"},
	{"probe --to http://127.0.0.1:1", 2, "the server or the method to probe is missing", "give --to URL and --method"},

	// Values that flags do not take, and missing arguments.
	{"export json.uwc", 2, "the format of the output is missing", "name the format with --format har|jsonl|raw|parquet|pcapng"},
	{"export json.uwc --format xml", 2, `--format must be one of har, jsonl, raw, parquet, pcapng, not "xml"`, "parquet"},
	{"export json.uwc --format raw", 2, "--format raw writes a folder", "name the folder with -o FOLDER"},
	{"export json.uwc --format jsonl -o /dev/full", 3, "/dev/full: no space left on device", "free some space"},
	{"import x.json", 2, "-o F.uwc is missing", "usage: unwire import FILE -o F.uwc"},
	{"ls --filter foo:bar json.uwc", 2, `--filter: column 1: "foo" is not a key of filters`, "'unwire ls --help' explains the filter language"},
	{"ls --sort foo json.uwc", 2, `not "foo"`, "--sort must be one of time, size, duration"},
	{"diff json.uwc", 2, "missing argument B", "usage: unwire diff A B"},
	{"redact json.uwc", 2, "missing -o CLEAN.uwc", "name a new file with -o"},
	{"redact json.uwc -o json.uwc", 2, "the file json.uwc exists already", "name a file that does not exist yet"},
	{"grep json.uwc hello", 2, "hello: no such file", "unwire grep PATTERN json.uwc"},
	{"encode --in protojson x.json", 2, "the type of the message is unknown", "a frame of this type with --type F.uwc#1/up/0"},
	{"encode --in protojson --type json.uwc#1 x.json", 2, "--type json.uwc#1: name a frame", "such as json.uwc#1/up/0"},
	{"capture -o y.uwc --reverse http://127.0.0.1:1 -- true", 0, "CMD sent no request to the address of --listen", "configure CMD to use this address"},
	{"grep [ json.uwc", 2, "missing closing ]", "use -F to search for literal text"},
	{"replay json.uwc 1 --set 999=1 --to http://127.0.0.1:1", 3, "--set 999=1: ", "--set"},
}

// TestWrongCalls makes mistakes on a terminal of 80 columns: each error says what failed, where,
// and what to do, within the width and on one screen.
func TestWrongCalls(t *testing.T) {
	t.Parallel()
	dir := wrongInputs(t)
	x := newTerminal(t, dir, 80, 24)
	unwire := unwireCommand(t)
	for _, c := range wrongCalls {
		screen := x.run(c.status, unwire+" "+shellQuoted(c.command)+" </dev/null")
		for _, line := range screen {
			if term.Cells(line) > 80 {
				t.Errorf("unwire %s: wider than 80 columns: %s", c.command, line)
			}
		}

		// Words may be on different lines; no word is broken.
		text := strings.Join(strings.Fields(strings.Join(screen, " ")), " ")
		if !strings.Contains(text, c.what) || !strings.Contains(text, c.do) {
			t.Errorf("unwire %s: no %q or no %q in:\n%s", c.command, c.what, c.do, strings.Join(screen, "\n"))
		}
		if len(screen) > 24 {
			t.Errorf("unwire %s: %d lines", c.command, len(screen))
		}
	}
}

// shellQuoted quotes the words of a command line.
func shellQuoted(command string) string {
	words := strings.Fields(command)
	for i, w := range words {
		words[i] = "'" + w + "'"
	}
	return strings.Join(words, " ")
}

// wrongInputs makes the files of wrongCalls: a capture of one JSON exchange, an empty and a
// truncated one, and files of other kinds.
func wrongInputs(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range []string{"json.uwc", "empty.uwc"} {
		s, err := store.Create(filepath.Join(dir, name), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if name == "json.uwc" {
			header := captures.Headers{{Name: "content-type", Value: "application/json"}}
			rec, err := s.Begin(captures.Exchange{Method: "POST", URL: "http://127.0.0.1:1/v1/orders", HTTP: "1.1", RequestHeaders: header, Source: "proxy"})
			if err != nil {
				t.Fatal(err)
			}
			rec.Chunk(captures.Up, []byte(`{"a":1}`))
			rec.Response(200, header)
			rec.Chunk(captures.Down, []byte(`{"ok":true}`))
			rec.EndAt(time.Second, captures.Complete, "")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}

	whole, err := os.ReadFile(filepath.Join(dir, "json.uwc"))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		"cut.uwc": string(whole[:5000]), "text.txt": "hello\n", "x.json": `{"a":1}`, "zero.bin": "", "folder/note.md": "",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
