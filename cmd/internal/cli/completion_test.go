package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/store"
)

// completed are the candidates for the last of some words, without their descriptions.
func completed(t *testing.T, args ...string) []string {
	t.Helper()
	status, out, talk := run(append([]string{"__complete"}, args...)...)
	if status != 0 {
		t.Fatalf("%q: status %d, %s", args, status, talk)
	}
	for _, r := range out {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			t.Errorf("%q: a control character in %q", args, out)
		}
	}
	var words []string
	for line := range strings.Lines(out) {
		word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		words = append(words, word)
	}
	return words
}

// Exchanges, methods, types, words and suffixes of files are offered.
func TestCompletion(t *testing.T) {
	t.Parallel()
	file := recordTransports(t, "hunter2-hunter2-hunter2")
	protos := filepath.Join(t.TempDir(), "a.proto")
	if err := os.WriteFile(protos, []byte(`syntax = "proto3"; package demo.v1; message Thing {}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		want []string
	}{
		{"show F _", []string{"1", "2", "3", "4", "5", ":4"}},
		{"show F#_", []string{"F#1", "F#5", ":4"}},
		{"show _", []string{"uwc", ":8"}},
		{"replay F _", []string{"5"}},
		{"grep x F --method _", []string{"demo.v1.Things/Get", ":4"}},
		{"probe --like F#5 --method _", []string{"/demo.v1.Things/Get"}},
		{"decode --proto P --type demo.v1._", []string{"demo.v1.Thing", ":4"}},
		{"decode --format _", []string{"text", "json", ":4"}},
		{"drift --format _", []string{"md"}},
		{"replay suite --format _", []string{"tap", "table", "junit"}},
		{"grep --dir _", []string{"up", "down"}},
		{"schema check --proto _", []string{"proto", "binpb"}},
		{"replay --upstream-ca _", []string{"pem", ":8"}},
		{"replay _", []string{"suite", "verify"}},
		{"ls --color _", []string{"auto", "always", "never", ":4"}},
		{"ls --profile _", []string{"none", "auto", ":4"}},
		{"call agent.v1.AgentService/R_", []string{"agent.v1.AgentService/Run", ":4"}},
		{"schema in_", []string{"infer"}},
	} {
		var args []string
		for _, arg := range strings.Fields(c.args) {
			args = append(args, strings.NewReplacer("F", file, "P", protos).Replace(strings.TrimSuffix(arg, "_")))
		}
		got := completed(t, args...)
		// On a busy machine the time limit may have ended it.
		for begun := time.Now(); len(got) == 1 && time.Since(begun) < 30*time.Second; {
			got = completed(t, args...)
		}
		for _, want := range c.want {
			if !slices.Contains(got, strings.ReplaceAll(want, "F", file)) {
				t.Errorf("%s: no %q in %q", c.args, want, got)
			}
		}
	}
}

// What hostile captures hold does not reach the shell: names with control characters, files
// that are none, and many exchanges.
func TestCompletionOfHostileCaptures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "hostile.uwc")
	s, err := store.Create(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2000 {
		rec, err := s.Begin(captures.Exchange{Method: "POST", URL: "https://h.example/a.v1.S/$(reboot)\x1b]0;x\a\n`id`", HTTP: "2"})
		if err != nil {
			t.Fatal(err)
		}
		rec.EndAt(0, captures.Complete, "")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	junk := filepath.Join(dir, "junk.uwc")
	if err := os.WriteFile(junk, []byte("SQLite format 3\x00junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"show", path, ""}, {"show", path + "#"}, {"grep", "x", path, "--method", ""}, {"show", junk, ""}, {"show", filepath.Join(dir, "none.uwc"), ""}} {
		begun := time.Now()
		got := completed(t, args...)
		if spent := time.Since(begun); spent > 5*time.Second {
			t.Errorf("%q took %v", args, spent)
		}
		for _, word := range got {
			if strings.ContainsAny(word, "$`\x1b") || len(got) > 600 {
				t.Errorf("%q: %q, %d candidates", args, word, len(got))
			}
		}
	}
}
