//go:build unix

package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"unwire/cmd/internal/term"
)

// screenWidths are the terminals that every table has to fit.
var screenWidths = []int{80, 100, 120, 200}

// A terminal is a real one: a server of tmux with a session of a size.
type terminal struct {
	t      *testing.T
	dir    string
	socket string
	width  int
	env    []string
	n      int
}

// newTerminal starts a terminal whose commands run in dir.
func newTerminal(t *testing.T, dir string, width, height int, env ...string) *terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is missing: install it")
	}
	socket, err := os.MkdirTemp("", "tmux") // a socket's path has to be short
	if err != nil {
		t.Fatal(err)
	}
	x := &terminal{t: t, dir: dir, socket: filepath.Join(socket, "s"), width: width, env: env}
	t.Cleanup(func() {
		_ = exec.Command("tmux", "-S", x.socket, "kill-server").Run()
		_ = os.RemoveAll(socket)
	})
	x.tmux("-f", "/dev/null", "new-session", "-d", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height), "cat")
	x.tmux("set", "-g", "history-limit", "20000")
	return x
}

// tmux runs a command of tmux.
func (x *terminal) tmux(args ...string) string {
	x.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-u", "-S", x.socket}, args...)...)
	cmd.Dir = x.dir
	cmd.Env = append(append(os.Environ(), "LANG=C.UTF-8", "TZ=UTC", "TERM=xterm-256color", "UNWIRE_CONFIG="+filepath.Join(x.dir, "config")), x.env...)
	cmd.Env = slices.DeleteFunc(cmd.Env, func(v string) bool {
		return strings.HasPrefix(v, "TMUX") || strings.HasPrefix(v, "COLUMNS=") || strings.HasPrefix(v, "NO_COLOR=")
	})
	out, err := cmd.CombinedOutput()
	if err != nil {
		x.t.Fatalf("tmux %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// start runs a command line in a window of its own. Its exit status is written to a file
// when it has ended.
func (x *terminal) start(command string) (pane, status string) {
	x.t.Helper()
	x.n++
	status = filepath.Join(x.dir, fmt.Sprintf("status-%d-%d", x.width, x.n))
	// The status is written elsewhere first: whoever sees the file sees all of it.
	line := fmt.Sprintf("%s\necho $? >%[2]s.new; mv %[2]s.new %[2]s; exec sleep 600", command, status)
	return strings.TrimSpace(x.tmux("new-window", "-P", "-F", "#{pane_id}", "-c", x.dir, "sh", "-c", line)), status
}

// await waits until a window shows what is wanted.
func (x *terminal) await(pane, what string, is func() bool) {
	x.t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			x.t.Fatalf("no %s on the screen:\n%s", what, x.tmux("capture-pane", "-p", "-t", pane))
		}
	}
}

// run runs a command line and returns what stands on the screen and above it: lines as they
// were written, which are wider than the screen if they did not fit.
func (x *terminal) run(want int, command string) []string {
	x.t.Helper()
	pane, status := x.start(command)
	x.await(pane, "end of "+command, func() bool { _, err := os.Stat(status); return err == nil })
	code, err := os.ReadFile(status)
	if err != nil {
		x.t.Fatal(err)
	}
	screen := x.screen(pane)
	if got := strings.TrimSpace(string(code)); want >= 0 && got != strconv.Itoa(want) {
		x.t.Fatalf("%s: exit status %s, want %d\n%s", command, got, want, strings.Join(screen, "\n"))
	}
	x.tmux("kill-window", "-t", pane)
	return screen
}

// screen is what a window has shown, wrapped lines joined.
func (x *terminal) screen(pane string) []string {
	x.t.Helper()
	text := strings.TrimRight(x.tmux("capture-pane", "-p", "-J", "-S", "-", "-E", "-", "-t", pane), "\n ")
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

// A tableCommand is a command that prints tables.
type tableCommand struct {
	name string

	// line is the command line, and status its exit status; -1 is any.
	line   string
	status int

	// golden compares the screens with those of testdata/screens: what is printed is the
	// same in each run.
	golden bool
}

// tableCommands has every command that prints a table, and other commands whose lines fit.
var tableCommands = []tableCommand{
	{"ls", "unwire ls shop.uwc", 0, true},
	{"ls_demo", "unwire ls a.uwc", 0, false},
	{"ls_joined", "unwire ls split.uwc", 0, false},
	{"show", "unwire show --no-pager shop.uwc 2", 0, true},
	{"show_unary", "unwire show --no-pager shop.uwc 1", 0, true},
	{"note", "unwire note shop.uwc", 0, true},
	{"choices", "unwire show --choices shop.uwc", 0, true},
	{"grep", "unwire grep Backoff a.uwc", 0, false},
	{"explain", "unwire show --no-pager shop.uwc 2 --explain 1.2", 0, true},
	{"plan", "unwire replay a.uwc 2 --dry-run", 0, false},
	{"use", "unwire use --list used.uwc", 0, true},
	{"doctor", "unwire doctor", -1, false},
	{"audit", "unwire audit b.uwc", 1, false},
	{"import", "unwire import a.pcapng -o packets-$$.uwc", 0, false},
	{"diff_tsv", "unwire diff --format tsv --all 'shop.uwc#1' 'shop.uwc#3'", 1, true},
	{"diff_series", "unwire diff --series --all 'a.uwc#2' 'b.uwc#2'", -1, false},
	{"weights", "unwire chat weights", 0, true},
	{"credentials", "unwire credentials cursor file:missing env:UNWIRE_TOKEN", 4, false},
	{"suite", "unwire replay suite suite --format table --standin", 1, false},
	{"probe", "unwire probe --to $STANDIN --upstream-ca $STANDIN_CA --from 'a.uwc#1' --fields 1-20", -1, false},
	{"verify", "unwire replay verify a.uwc --to $STANDIN --upstream-ca $STANDIN_CA", -1, false},
	{"align", "unwire align a.uwc answers.uwc", 0, false},
	{"schema_ls", "unwire schema ls", 0, false},
	{"schema_find", "unwire schema find blob", 0, true},
	{"schema_refs", "unwire schema refs agent.v1.McpTools", 0, true},
	{"schema_diff", "unwire schema diff old new --captures shop.uwc", 1, true},
	{"schema_extract", "rm -rf extracted; unwire schema extract -o extracted app.js", 0, true},
	{"schema_match", "unwire schema match 'shop.uwc#2/up/0' 1", 0, true},
	{"schema_check", "unwire schema check shop.uwc", -1, true},
	{"schema_check_other", "unwire schema check --proto new shop.uwc", 1, true},
}

// TestTablesFitTheTerminal runs every command that prints a table on a terminal of each
// width. No line may be wider than the terminal, and no word may be broken: a word is one
// of the widest terminal's or shows by "…" that it was shortened.
func TestTablesFitTheTerminal(t *testing.T) {
	t.Parallel()
	dir, env := tableInputs(t)
	terminals := map[int]*terminal{}
	for _, width := range append([]int{wholeWidth}, screenWidths...) {
		terminals[width] = newTerminal(t, dir, width, 50, env...)
	}
	for _, c := range tableCommands {
		t.Run(c.name, func(t *testing.T) {
			whole := words(terminals[wholeWidth].within(t).run(c.status, c.line))
			for _, width := range screenWidths {
				lines := terminals[width].within(t).run(c.status, c.line)
				for _, line := range lines {
					if n := term.Cells(line); n > width {
						t.Errorf("%d columns: a line of %d:\n%s", width, n, line)
					}
				}
				if broken := brokenWords(lines, whole); len(broken) > 0 {
					t.Errorf("%d columns: %q are broken:\n%s", width, broken, strings.Join(lines, "\n"))
				}
				if c.golden {
					compareScreen(t, fmt.Sprintf("%s_%d.txt", c.name, width), lines)
				}
			}
		})
	}
}

// tableInputs makes a folder with what tableCommands read, and the environment that they
// run in, with a stand-in of the API to ask.
func tableInputs(t *testing.T) (dir string, env []string) {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is missing: install it")
	}
	s := &secretRun{t: t, bin: unwireCommand(t), work: t.TempDir(), config: clientConfig(t), ran: map[string]bool{}, unredacted: true}
	shop, err := filepath.Abs("testdata/screens/shop.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	s.ok(0, "import", shop, "-o", "shop.uwc")
	s.ok(0, "note", "shop.uwc", "2", "The agent reads the file before it answers: compare this call with the one of last week")
	s.ok(0, "note", "shop.uwc", "2/down/17", "the id of the tool call comes back in the next request")
	s.ok(0, "show", "shop.uwc", "2", "--as", "up/1.2:bytes")

	order := "syntax = \"proto3\";\npackage shop.inventory.v1;\n"
	s.write("old/shop/inventory/v1/order.proto", []byte(order+"message WarehouseOrder { string note = 1; int32 total = 2; repeated string items = 3; }\n"))
	s.write("new/shop/inventory/v1/order.proto", []byte(order+"message WarehouseOrder { string comment = 1; sint32 total = 2; repeated WarehouseOrderItem items = 4; }\n"+
		"// An item of an order, with what the warehouse knows of the place where it is stored.\nmessage WarehouseOrderItem { string name = 1; }\n"))
	s.write("app.js", []byte(`proto3.makeMessageType("a.B", () => [{ no: 1, name: "c", kind: "scalar", T: 9 }])`))
	s.ok(0, "import", shop, "-o", "used.uwc")
	s.ok(0, "use", "new", "used.uwc")

	standin := s.start("standin", "--json")
	client := []string{"--upstream-ca", standin.CA, "--", s.bin, "demo-client", "--url", standin.URL}
	s.ok(0, append([]string{"capture", "-o", "a.uwc"}, client...)...)
	s.ok(0, append([]string{"capture", "-o", "b.uwc", "--keep-secrets"}, client...)...)
	s.ok(0, append(append([]string{"capture", "-o", "split.uwc"}, client...), "--fallback", "hex")...)
	s.ok(0, "export", "a.uwc", "--format", "pcapng", "-o", "a.pcapng")
	s.ok(0, "replay", "a.uwc", "1", "--codec", "proto", "--refresh", "--to", standin.URL, "--upstream-ca", standin.CA, "-o", "answers.uwc")
	s.write("suite/one.replay", []byte("capture ../a.uwc\nexchange 2\nexpect verdict same\nexpect value 1.1.1~nothing\n"))
	return s.work, []string{"STANDIN=" + standin.URL, "STANDIN_CA=" + standin.CA, "UNWIRE_TOKEN=" + secret, "XDG_CONFIG_HOME=" + s.config, "SSL_CERT_FILE=/a/file.pem"}
}

// wholeWidth is a terminal on which nothing has to be shortened.
const wholeWidth = 1000

// changing are the words that differ from run to run: numbers, times, names of files.
var changing = regexp.MustCompile(`[0-9]`)

// words are the words on a screen.
func words(lines []string) map[string]bool {
	found := map[string]bool{}
	for _, line := range lines {
		for word := range strings.FieldsSeq(line) {
			found[strings.Trim(word, ",;:()")] = true
		}
	}
	return found
}

// brokenWords are words of lines that are none of whole, and do not show that they were
// shortened. A name may lack its package, and a URL its
// scheme.
func brokenWords(lines []string, whole map[string]bool) []string {
	lines = slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.Contains(line, " hidden at this width: ") })
	var broken []string
	for word := range words(lines) {
		if whole[word] || strings.Contains(word, "…") || changing.MatchString(word) {
			continue
		}
		if slices.ContainsFunc(slices.Collect(maps.Keys(whole)), func(full string) bool {
			return strings.HasSuffix(full, "."+word) || strings.HasSuffix(full, "/"+word)
		}) {
			continue
		}
		broken = append(broken, word)
	}
	return broken
}

// within is the terminal for a subtest.
func (x *terminal) within(t *testing.T) *terminal {
	x.t = t
	return x
}

// compareScreen compares a screen with a file of testdata/screens, or with -update writes it.
func compareScreen(t *testing.T, name string, lines []string) {
	t.Helper()
	path := filepath.Join("testdata", "screens", name)
	got := []byte(strings.Join(lines, "\n") + "\n")
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: go test ./cmd/unwire -run %s -update writes it", err, t.Name())
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (-update writes it anew): got\n%swant\n%s", name, got, want)
	}
}

// A pager shows what is longer than the screen. To quit it ends the command at once,
// without an error.
func TestPager(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("less"); err != nil {
		t.Skip("less is missing: install it")
	}
	dir := t.TempDir()
	s := &secretRun{t: t, bin: unwireCommand(t), work: dir, config: dir, ran: map[string]bool{}, unredacted: true}
	shop, err := filepath.Abs("testdata/screens/shop.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	s.ok(0, "import", shop, "-o", "shop.uwc")
	x := newTerminal(t, dir, 100, 20, "LESS=FRX", "PAGER=less")

	pane, status := x.start("unwire show --full shop.uwc 2")
	x.await(pane, "prompt of the pager", func() bool {
		return strings.HasSuffix(strings.TrimSpace(x.tmux("capture-pane", "-p", "-t", pane)), ":")
	})
	if _, err := os.Stat(status); err == nil {
		t.Error("the command ended while its pager ran")
	}
	if lines := x.screen(pane); !strings.Contains(lines[0], "POST https://api.shop.example") {
		t.Errorf("the pager does not begin with the exchange: %q", lines)
	}
	x.tmux("send-keys", "-t", pane, "q")
	x.await(pane, "end of the command", func() bool { _, err := os.Stat(status); return err == nil })
	if code, err := os.ReadFile(status); err != nil || strings.TrimSpace(string(code)) != "0" {
		t.Errorf("exit status %s after the pager was quit (%v):\n%s", code, err, strings.Join(x.screen(pane), "\n"))
	}
	for _, line := range x.screen(pane) {
		if strings.Contains(line, "unwire: error") {
			t.Errorf("quitting is an error: %s", line)
		}
	}

	// What fits the screen needs no pager, and neither does a pipe.
	for _, command := range []string{
		"UNWIRE_PAGER='echo paged; cat' unwire show 'shop.uwc#2/up/1'",
		"UNWIRE_PAGER='echo paged; cat' unwire show --no-pager --full shop.uwc 2",
		"UNWIRE_PAGER= unwire show --full shop.uwc 2",
		"UNWIRE_PAGER='echo paged; cat' unwire show --full shop.uwc 2 | cat",
	} {
		if lines := x.run(0, command); slices.Contains(lines, "paged") || len(lines) < 2 {
			t.Errorf("%s:\n%s", command, strings.Join(lines, "\n"))
		}
	}
	if lines := x.run(0, "UNWIRE_PAGER='echo paged; cat' unwire show --full shop.uwc 2"); lines[0] != "paged" || len(lines) < 400 {
		t.Errorf("a pager of one's own shows %d lines: %q", len(lines), lines[:min(len(lines), 3)])
	}
	if lines := x.run(0, "UNWIRE_PAGER=/not/there unwire show --full shop.uwc 2"); !strings.Contains(strings.Join(lines, " "), "not/there") {
		t.Errorf("a pager that is not there: %q", lines)
	}
}

// Colours are for terminals, and for whoever asks for them.
func TestColourOfShow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := &secretRun{t: t, bin: unwireCommand(t), work: dir, config: dir, ran: map[string]bool{}, unredacted: true}
	shop, err := filepath.Abs("testdata/screens/shop.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	s.ok(0, "import", shop, "-o", "shop.uwc")
	plain := s.ok(0, "show", "--proto", "none", "shop.uwc", "2")
	if bytes.ContainsRune(plain, '\x1b') {
		t.Error("a pipe gets colours")
	}
	coloured := s.ok(0, "show", "--color", "always", "--proto", "none", "shop.uwc", "2")
	for what, code := range map[string]string{"texts": "\x1b[32m\"", "numbers": "\x1b[33m", "types": "\x1b[2mstring\x1b[0m", "doubt": "\x1b[31m(probability 0."} {
		if !bytes.Contains(coloured, []byte(code)) {
			t.Errorf("no colour for %s", what)
		}
	}
	if got := regexp.MustCompile("\x1b\\[[0-9]*m").ReplaceAll(coloured, nil); !bytes.Equal(got, plain) {
		t.Error("colours change the text")
	}
	if folded := s.ok(0, "show", "--full=false", "shop.uwc", "2"); bytes.Count(folded, []byte("\n")) > 40 || !bytes.Contains(folded, []byte("×42")) {
		t.Errorf("folded:\n%s", folded)
	}
}
