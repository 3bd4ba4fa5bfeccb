package cli

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/captures"
	"unwire/captures/store"
)

// recordTransports records one exchange of each kind of transport: 1 is the handshake of
// 2, a WebSocket; 3 is TLS without HTTP, 4 is TCP with delimited messages, 5 is a call.
func recordTransports(t *testing.T, secret string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "transports.uwc")
	s, err := store.Create(path, store.Options{KeepSecrets: true})
	if err != nil {
		t.Fatal(err)
	}
	begin := func(ex captures.Exchange) captures.Recording {
		rec, err := s.Begin(ex)
		if err != nil {
			t.Fatal(err)
		}
		return rec
	}
	up, down, final := captures.Up, captures.Down, captures.OpFinal

	shake := begin(captures.Exchange{Method: "GET", URL: "https://chat.example/ws/42?v=1", HTTP: "1.1", Status: 101, ResponseHeaders: captures.Headers{{Name: "upgrade", Value: "websocket"}}})
	shake.EndAt(time.Millisecond, captures.Complete, "")
	ws := begin(captures.Exchange{Transport: captures.WebSocket, URL: "wss://chat.example/ws/42?v=1", HTTP: "1.1"})
	ws.Relate(captures.HandshakeOf, shake.ID())
	at := func(i int) time.Duration { return time.Duration(i) * time.Millisecond }
	ws.MessageAt(up, at(1), captures.OpText|final, []byte(`{"type":"login","token":"`+secret+`"}`))
	ws.MessageAt(down, at(2), captures.OpText, []byte(`{"type":"welcome",`))
	ws.MessageAt(down, at(3), captures.OpContinuation|final, []byte(`"user":"kim"}`))
	ws.MessageAt(down, at(4), captures.OpPing|final, []byte("beat"))
	ws.MessageAt(up, at(5), captures.OpPong|final, []byte("beat"))
	ws.MessageAt(down, at(6), captures.OpBinary|final, protowire.AppendString([]byte{0x08, 0x01, 0x12}, "a needle in a message"))
	ws.MessageAt(down, at(7), captures.OpClose|final, []byte("\x03\xe8bye"))
	ws.EndAt(at(8), captures.Complete, "")

	raw := begin(captures.Exchange{Transport: captures.RawTLS, URL: "tls://mail.example:465"})
	raw.ChunkAt(down, at(1), []byte("220 mail.example ready\r\n"))
	raw.ChunkAt(up, at(2), []byte("AUTH "+secret+"\r\n"))
	raw.ChunkAt(down, at(3), []byte("\x00\xff\x01\x02 binary"))
	raw.EndAt(at(4), captures.Complete, "")

	tcp := begin(captures.Exchange{Transport: captures.RawTCP, URL: "tcp://feed.example:7000"})
	var stream []byte
	for i := range 12 {
		m := protowire.AppendString([]byte{0x08, byte(i + 1), 0x12}, strings.Repeat("quote ", 1+i%3)+"of the feed")
		stream = append(protowire.AppendVarint(stream, uint64(len(m))), m...)
	}
	for i := 0; i < len(stream); i += 17 {
		tcp.ChunkAt(down, at(i), stream[i:min(i+17, len(stream))])
	}
	tcp.EndAt(at(500), captures.Complete, "")

	call := begin(captures.Exchange{
		Method: "POST", URL: "https://h.example/demo.v1.Things/Get", HTTP: "2",
		RequestHeaders: captures.Headers{{Name: "content-type", Value: "application/proto"}},
	})
	call.ChunkAt(up, at(1), []byte{0x08, 0x07})
	call.Response(200, captures.Headers{{Name: "content-type", Value: "application/proto"}})
	call.ChunkAt(down, at(2), protowire.AppendString([]byte{0x0a}, "a thing"))
	call.EndAt(at(3), captures.Complete, "")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// Exchanges without HTTP are listed and shown.
func TestTransportsAreShown(t *testing.T) {
	t.Parallel()
	file := recordTransports(t, "hunter2-hunter2-hunter2")
	for _, c := range []struct {
		args string
		want []string
	}{
		{"ls F", []string{"2\twss://chat.example/ws/42?v=1\twebsocket\tmixed\tHTTP/1.1\t\tok\t2\t4", "handshake of #2", "opened by exchange #1", "3\ttls://mail.example:465\ttls\t\t\t\tok\t1\t2", "tcp://feed.example:7000"}},
		{"ls --json F", []string{`"protocol":"websocket"`, `"transport":"tcp"`, `"relations":[{"kind":"handshake","exchange":2,"target":1}]`}},
		{"show F 1", []string{"handshake of #2"}},
		{"show F 2", []string{"wss://chat.example/ws/42?v=1\nexchange 2 · websocket (messages in several formats) · HTTP/1.1 · code ok", "opened by exchange #1", `"type":"welcome","user":"kim"`, "ping", "close 1000: bye", "a needle in a message"}},
		{"show --json F 2", []string{`"opcode":"text"`, `"opcode":"ping"`, `"close":{"code":1000,"reason":"bye"}`}},
		{"show F#2/down/2", []string{"2: string \"a needle in a message\""}},
		{"show --hex F#2/down/2", []string{"61 20 6e 65"}},
		{"show F 3", []string{"exchange 3 · tls · code ok", "220 mail.example ready", "00 ff 01 02"}},
		{"show --json F#3/down/1", []string{`"raw":"AP8BAiBiaW5hcnk="`, `"off":24`}},
		{"show --as delimited F 4", []string{"↓ frame 11", "quote of the feed"}},
		{"show --as delimited F#4/down/3", []string{"1: int64 4"}},
		{"decode --as delimited F#4/down/3", []string{"1: 4"}},
		{"decode F#2/down/2", []string{"needle"}},
		{"decode F#2/up/0", []string{"login"}},
	} {
		args := strings.Fields(strings.ReplaceAll(c.args, "F", file))
		status, out, talk := run(args...)
		if status != 0 {
			t.Errorf("%s: status %d, %s", c.args, status, talk)
		}
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s%s", c.args, want, out, talk)
			}
		}
	}
}

// commandRow is a line of help that names a command: a word and its text.
var commandRow = regexp.MustCompile(`(?m)^  ([a-z][a-z-]*)  +[A-Z]`)

// commandsOfHelp are the commands that a help text lists.
func commandsOfHelp(t *testing.T, args ...string) []string {
	t.Helper()
	_, out, _ := run(append(args, "--help")...)
	var names []string
	for _, m := range commandRow.FindAllStringSubmatch(out, -1) {
		names = append(names, strings.Join(append(args, m[1]), " "))
	}
	if len(names) == 0 {
		t.Fatalf("%v: no commands in %q", args, out)
	}
	return names
}

// Every command reads exchanges without HTTP, or refuses them by name.
func TestEveryCommandKnowsTransports(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-hunter2-hunter2"
	file := recordTransports(t, secret)
	dir := t.TempDir()
	refused := "and is not an RPC call"
	cases := []struct {
		args   string
		status int
		want   string // in the output or the diagnostics
	}{
		{"ls F", 0, "websocket"},
		{"show F#2", 0, "close 1000"},
		{"show F#3", 0, "220 mail"},
		{"show --as 1.2:string F#3", 2, "no message in the input"},
		{"show --as delimited F#5", 2, "is only for connections without HTTP"},
		{"show --as delimited32be F#3", 3, "the bytes are not messages with a length prefix"},
		{"decode F#2/down/2", 0, "needle"},
		{"decode F#3/down/1", 0, ""},
		{"decode --as delimited32le F#3/down/0", 0, ""},
		{"decode --as delimited32le F", 2, "connections without HTTP"},
		{"grep -i AUTH F", 0, "#3/up/0"},
		{"grep --as delimited --path 1 F#4", 0, "#4/down/11"},
		{"grep --as words x F", 2, "--as"},
		{"diff F F", 0, "0 differences"},
		{"diff F#2 F#3", 1, "client frame 0"},
		{"diff F#2/down/2 F#3/down/0", 1, ""},
		{"diff --as delimited F#4/down/0 F#4/down/1", 1, "~ field 1"},
		{"diff --series F#2 F#2", 0, ""},
		{"chat --empty F", 0, "needle"},
		{"chat --empty F#2", 0, "needle"},
		{"chat F#3", 3, "no conversation"},
		{"chat --json F#4", 3, "protocol tcp"},
		{"audit F", 1, "#2/up/0"},
		{"redact F -o D/clean.uwc", 0, "5 exchanges"},
		{"schema infer F", 0, "message ChatExampleWsUpLogin"},
		{"schema infer F#2", 0, "message ChatExampleWsDownWelcome"},
		{"schema infer F#3", 3, "connections without HTTP"},
		{"schema infer --as delimited F#4", 0, "message FeedExampleDown"},
		{"schema infer --evidence D/ev.json -o D/inferred F", 0, ""},
		{"schema merge-evidence D/ev.json", 0, ""},
		{"schema history D/ev.json", 3, "does not name the version of the client"},
		{"schema check F", 1, "ignores 1 WebSocket and 2 connections without HTTP, which are not RPC calls"},
		{"schema check F#2", 3, refused},
		{"schema match --profile cursor F#2", -1, "messages that the server sends in websocket /ws/42"},
		{"schema match --profile cursor F#3", 1, "nothing to match"},
		{"schema match --profile cursor --as delimited F#4", -1, "tcp feed.example:7000:down"},
		{"schema update --proto D/inferred --from F", 0, "schema update ignores 1 WebSocket and 2 connections"},
		{"schema update --proto D/inferred --from F#3", 3, refused},
		{"schema diff F F", 3, "contains no definitions"},
		{"schema extract F", 3, ""},
		{"schema find --proto D/inferred welcome", 0, "ChatExampleWsDownWelcome"},
		{"schema ls --proto D/inferred", 0, ""},
		{"schema print --proto D/inferred inferred.ChatExampleWsUpLogin", 0, "string type"},
		{"schema refs --proto D/inferred demo.v1.GetRequest", 0, ""},
		{"align F", 3, "align ignores 1 WebSocket and 2 connections without HTTP"},
		{"align F#3", 3, refused},
		{"drift F F", 3, ""},
		{"probe --from F#2 --to http://127.0.0.1:1", 3, refused},
		{"probe --from F#3 --to http://127.0.0.1:1", 3, refused},
		{"call --like F#2 --to http://127.0.0.1:1", 3, refused},
		{"call --like F#3 --to http://127.0.0.1:1", 3, refused},
		{"probe-client --dry-run F", 0, "demo.v1.Things/Get"},
		{"encode F", 3, ""},
		{"note F#2/down/1 beat", 0, ""},
		{"use D/inferred F", 0, ""},
		{"config", 0, ""},
	}
	known := map[string]bool{}
	for _, c := range cases {
		args := strings.Fields(c.args)
		known[args[0]] = true
		if args[0] == "schema" {
			known[args[0]+" "+args[1]] = true
		}
		for i, a := range args {
			if a == "F" || strings.HasPrefix(a, "F#") {
				args[i] = file + a[1:]
			}
			args[i] = strings.Replace(args[i], "D/", dir+"/", 1)
		}
		status, out, talk := run(args...)
		if status != c.status && (c.status >= 0 || status > 1) {
			t.Errorf("%s: status %d, want %d: %s", c.args, status, c.status, talk)
		}
		if !strings.Contains(out+talk, c.want) {
			t.Errorf("%s: no %q in\n%s%s", c.args, c.want, out, talk)
		}
	}

	// These read no capture, or are about requests and formats, which have tests of their own.
	for _, name := range []string{
		"ca", "capture", "completion", "credentials", "demo", "doctor", "help", "intercept", "mcp", "mock", "reflection", "serve", "standin", "ui",
		"import", "export", "replay", "version",
	} {
		known[name] = true
	}
	for _, name := range append(commandsOfHelp(t), commandsOfHelp(t, "schema")...) {
		if !known[name] {
			t.Errorf("%s is not tried with a capture that has exchanges without HTTP", name)
		}
	}

	// The copy without secrets has all messages, and knows what opened what.
	clean := filepath.Join(dir, "clean.uwc")
	for args, want := range map[string]string{
		"ls": "opened by exchange #1", "show 2": "close 1000: bye", "show 3": "AUTH redacted-", "show --as delimited 4": "↓ frame 11",
	} {
		words := strings.Fields(args)
		if len(words) > 1 {
			words = append(words[:len(words)-1], clean, words[len(words)-1])
		} else {
			words = append(words, clean)
		}
		if status, out, talk := run(words...); status != 0 || !strings.Contains(out, want) || strings.Contains(out, secret) {
			t.Errorf("%s: status %d, %s%s", args, status, out, talk)
		}
	}
	if status, out, talk := run("audit", clean); status != 0 {
		t.Errorf("secrets are left: %s%s", out, talk)
	}
}
