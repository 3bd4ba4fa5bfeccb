package main

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"unwire/captures/need"
)

// aSocket is a call that strace shows with the address that it is about.
var aSocket = regexp.MustCompile(`^\d+ +(connect|sendto|sendmsg|sendmmsg)\(.*sa_family=(AF_\w+)`)

// No packet of a replay leaves the machine unasked: the kernel is watched while
// captures of another host are replayed in every way that is not --live.
func TestReplaySocketsStayOnTheMachine(t *testing.T) {
	strace := need.Program(t, "strace", "strace", "-f", "-o", os.DevNull, "true")
	bin := unwireCommand(t)
	s := &secretRun{t: t, bin: bin, work: t.TempDir(), ran: map[string]bool{}}
	standin := s.start("standin", "--json")
	s.ok(0, "capture", "-o", "a.uwc", "--upstream-ca", standin.CA, "--", bin, "demo-client", "--url", standin.URL)
	s.write("far.har", []byte(`{"log":{"entries":[{"startedDateTime":"2026-01-01T00:00:00Z","time":1,"request":{"method":"POST","url":"http://api.example.com/a.v1.A/B","httpVersion":"HTTP/1.1",
		"headers":[{"name":"Content-Type","value":"application/json"}],"postData":{"mimeType":"application/json","text":"{}"}},"response":{"status":200,"httpVersion":"HTTP/1.1",
		"headers":[{"name":"Content-Type","value":"application/json"}],"content":{"mimeType":"application/json","text":"{}"}}}]}}`))
	s.ok(0, "import", "-o", "far.uwc", "far.har")
	if err := os.Mkdir(filepath.Join(s.work, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.write("x/1.replay", []byte("exchange 1\nexpect verdict refused\n"))
	local := 0
	for i, args := range [][]string{
		{"replay", "a.uwc", "2", "--upstream-ca", standin.CA, "--omit-secrets"},
		{"replay", "a.uwc", "2", "--upstream-ca", standin.CA, "--omit-secrets", "--learn", "-o", "b.uwc"},
		{"replay", "a.uwc", "2", "--to", "https://localhost:" + standin.URL[strings.LastIndexByte(standin.URL, ':')+1:], "--upstream-ca", standin.CA, "--omit-secrets"},
		{"replay", "far.uwc", "1"},
		{"replay", "far.uwc", "1", "--dry-run"},
		{"replay", "far.uwc", "1", "--live", "--allow-host", "other.example.com"},
		{"replay", "far.uwc", "1", "--to", "http://192.0.2.1", "--learn"},
		{"replay", "suite", "x", "--capture", "far.uwc"},
		{"replay", "suite", "x", "--capture", "a.uwc", "--standin"},
	} {
		log := filepath.Join(t.TempDir(), "strace")
		cmd := s.command(args...)
		cmd.Path = strace
		cmd.Args = append([]string{strace, "-f", "-qq", "-e", "trace=network", "-o", log, bin}, args...)
		out, _ := cmd.CombinedOutput() // the results are none of this test's
		f, err := os.Open(log)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			m := aSocket.FindStringSubmatch(lines.Text())
			switch {
			case m == nil || m[2] == "AF_UNIX" || m[2] == "AF_NETLINK":
			case strings.Contains(lines.Text(), `"127.0.0.1"`), strings.Contains(lines.Text(), `"::1"`):
				local++
			default:
				t.Errorf("%d: unwire %s: %s", i, strings.Join(args, " "), lines.Text())
			}
		}
		_ = f.Close() // it was only read
	}
	if local < 4 {
		t.Errorf("only %d calls were seen: is the kernel watched at all?", local)
	}
}
