package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/decode/envelope"
)

// hostileText drives a terminal that shows it as it is: it sets the title, clears the screen, rings, goes back, turns
// the direction of writing, and begins lines.
const hostileText = "x\x1b]0;owned\x07\x1b[2J\x1b[31m\u009b31m\u0090q\u202eevil\u2066\u200f\u2028\u2029\u0085\r\nforged line\b\x7f\x00"

// driving are what reaches a terminal only if text is shown as it is.
var driving = regexp.MustCompile("[\x00-\x06\x07\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f\u0080-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]|\x1b[^\\[]|\x1b\\[[^mK]*[^mK0-9;]")

// ownSequences are those that unwire itself writes with NO_COLOR set: it clears the line of its progress.
var ownSequences = regexp.MustCompile("\x1b\\[[0-9]*K")

// terminalOutput runs a command on a pseudo-terminal and returns what it wrote there.
func terminalOutput(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("this system has no pseudo-terminals: %v", err)
	}
	defer master.Close()
	fd := int(master.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err = errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0), unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 120})); err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := errors.Join(cmd.Start(), tty.Close()); err != nil {
		t.Fatal(err)
	}
	out, _ := io.ReadAll(master) // it ends with an error when the terminal is closed
	_ = cmd.Wait()               // hostile captures may be refused
	return string(out)
}

// hostileCapture makes a capture of a call whose texts are hostile. The columns of text are, too, but for those that
// keep names.
func hostileCapture(t *testing.T, keep ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "h.uwc")
	s, err := store.Create(file, store.Options{KeepSecrets: true})
	if err != nil {
		t.Fatal(err)
	}
	headers := captures.Headers{{Name: "content-type", Value: "application/connect+proto"}, {Name: "x-hostile", Value: hostileText}, {Name: "x" + hostileText, Value: "1"}}
	for range 2 {
		rec, err := s.Begin(captures.Exchange{
			Method: "POST", URL: "http://127.0.0.1:1/agent.v1.AgentService/Run?q=" + hostileText, HTTP: "2", Started: time.Now(), RequestHeaders: headers,
			Client: hostileText, Server: hostileText, Process: captures.Process{PID: 1, Name: hostileText},
		})
		if err != nil {
			t.Fatal(err)
		}
		text := []byte(hostileText)
		frame := append([]byte{0x0a, byte(len(text))}, text...)
		rec.Chunk(captures.Up, envelope.Append(nil, 0, frame))
		rec.Response(200, headers)
		rec.Chunk(captures.Down, envelope.Append(nil, 0, frame))
		rec.Chunk(captures.Down, envelope.Append(nil, envelope.EndStream, []byte(`{"error":{"code":"`+"x\u202e\u009b"+`","message":"\u001b[2J\u009b\u2028"}}`)))
		rec.End(captures.Failed, hostileText)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	alterTexts(t, file, keep)
	return file
}

// alterTexts makes each column of text hostile.
func alterTexts(t *testing.T, file string, keep []string) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	rows, err := db.Query(`SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table' AND c.type = 'TEXT' AND c.pk = 0`)
	if err != nil {
		t.Fatal(err)
	}
	var columns [][2]string
	for rows.Next() {
		var table, column string
		if err := rows.Scan(&table, &column); err != nil {
			t.Fatal(err)
		}
		columns = append(columns, [2]string{table, column})
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		t.Fatal(err)
	}
	altered := 0
	for _, c := range columns {
		if slices.Contains(keep, c[1]) || c[0] == "headers" {
			continue
		}
		if _, err := db.Exec(fmt.Sprintf(`UPDATE %s SET %s = ?`, c[0], c[1]), hostileText); err != nil {
			t.Logf("%s.%s: %v", c[0], c[1], err)
			continue
		}
		altered++
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if altered < 5 {
		t.Fatalf("only %d columns of %v are hostile", altered, columns)
	}
}

// TestHostileTextOnATerminal shows captures whose texts are hostile on a terminal, by every command that reads
// captures, and definitions of that kind: nothing in them drives the terminal.
func TestHostileTextOnATerminal(t *testing.T) {
	bin := unwireCommand(t)
	t.Run("every column", func(t *testing.T) {
		showHostile(t, bin, hostileCapture(t))
	})
	t.Run("readable", func(t *testing.T) {
		showHostile(t, bin, hostileCapture(t, "method", "protocol", "http", "url", "outcome", "source", "kind", "codec"))
	})
}

// hostileFolder makes a folder with definitions and settings whose texts are hostile.
func hostileFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	line := strings.NewReplacer("\n", " ", "\r", " ", "\x00", "", "\u2028", "", "\u2029", "", "\u0085", "").Replace(hostileText)
	files := map[string]string{
		"defs/h.proto": "syntax = \"proto3\";\npackage h.v1;\n// " + line + "\nmessage M {\n  string a = 1; // " + line + "\n}\n" +
			"service S {\n  // " + line + "\n  rpc R(M) returns (M);\n}\n",
		"unwire.yaml": "proto: " + strconv.Quote("defs/"+line) + "\nprofile: " + strconv.Quote(line) + "\n" + strconv.Quote(line) + ": 1\n",
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// showHostile runs the commands.
func showHostile(t *testing.T, bin, file string) {
	t.Helper()
	folder := hostileFolder(t)
	defs := filepath.Join(folder, "defs")
	commands := append(readers(file, t.TempDir()), [][]string{
		{"ls", file},
		{"ls", "--long", file},
		{"show", "--no-pager", "--hex", file, "1"},
		{"show", "--no-pager", file + "#1/down/0"},
		{"note", file},
		{"use", "--list", file},
		{"show", "--choices", file},
		{"chat", "--no-pager", file, "1"},
		{"grep", "--json", "evil", file},
		{"diff", "--format", "tsv", "--all", file + "#1", file + "#2"},
		{"replay", "--dry-run", "--omit-secrets", "--json", file, "1"},
		{"doctor"},
		{"ls", "--filter", "text:" + hostileText[1:9], file},
		{"decode", file + hostileText[:9]},
		{"show", "--copy", "curl", file, "1"},
		{"show", "--copy", "go", file, "1"},
		{"show", "--timeline", file, "1"},
		{"show", "--no-pager", "--explain", "1", file, "1"},
		{"show", "--no-pager", "--format", "prototext", file, "1"},
		{"show", "--no-pager", "--as", "1" + hostileText[:9] + ":string", file, "1"},
		{"show", "--no-pager", "--full", file, "1"},
		{"ls", "--json", "--filter", "path:1=" + hostileText[1:9], file},
		{"grep", "-l", "evil", file},
		{"grep", "-c", "x", file},
		{"chat", "--json", file, "1"},
		{"note", file, "1", "a" + hostileText[:9]},
		{"note", file},
		{"note", "--json", file},
		{"drift", file, file},
		{"schema", "history", file, file},
		{"align", "--json", file, file},
		{"schema", "check", "--json", file},
		{"mock", "--to" + hostileText[:9], file},
		{"replay", "--omit-secrets", "--to", "http://127.0.0.1:1", file, "1"},
		{"call", "/agent.v1.AgentService/Run", "--like", file + "#1", "--data", "{}", "--to", "http://127.0.0.1:1"},
		{"schema", "ls", "--proto", defs},
		{"schema", "print", "--proto", defs, "h.v1.M"},
		{"schema", "find", "--proto", defs, "a"},
		{"schema", "diff", defs, t.TempDir()},
		{"schema", "check", "--proto", defs, file},
		{"config"},
		{"export", "--as-recorded", "--format", "har", file},
		{"audit", "--json", file},
	}...)
	for _, args := range commands {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, bin, args...)
		cmd.Dir = folder
		cmd.Env = append(os.Environ(), "NO_COLOR=1", "TERM=xterm-256color", "UNWIRE_TOKEN=made-up-token", "UNWIRE_CONFIG="+t.TempDir())
		out := terminalOutput(t, cmd)
		cancel()
		out = ownSequences.ReplaceAllString(out, "")
		if at := driving.FindStringIndex(out); at != nil {
			t.Errorf("%s: %q reaches the terminal in %q", strings.Join(args, " "), out[at[0]:at[1]], out[max(0, at[0]-60):min(len(out), at[1]+40)])
		}
		if strings.Contains(out, "\nforged line") || strings.Contains(out, "\x1b[31m") {
			t.Errorf("%s: a forged line or colour in %.500q", strings.Join(args, " "), out)
		}
	}
}
