package safetext_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"unwire/captures/safetext"
)

// TestShellFile has a shell open files by the words: each word names its file, and nothing else is run.
func TestShellFile(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the words are for a POSIX shell")
	}
	for _, name := range []string{
		"a.uwc", "dir-1/a.uwc", "a b", "it's", "''", `\'`, "$(touch gone)", "`touch gone`", "; touch gone", "&& touch gone", "$HOME", "~", "*", "[a]", "!x", "#c", "-rf", "--help", "@/etc/passwd", "a=b", "{a,b}",
		"é😀", "a\nb", "\x1b[2J", "a\u202eb", "\u009b", "\xff\xfe", "tab\t", "x\\", "\"q\"", "%s%n", "\ufffd",
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("this one"), 0o600); err != nil {
			t.Fatal(err)
		}
		word := safetext.ShellFile(name)
		if strings.ContainsFunc(word, safetext.IsUnsafe) || word[0] == '-' || word[0] == '@' {
			t.Errorf("%q is written as %q", name, word)
		}
		for _, shell := range []string{"sh", "bash"} {
			if _, err := exec.LookPath(shell); err != nil {
				continue
			}
			cmd := exec.Command(shell, "-c", "cat "+word)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != "this one" {
				t.Errorf("%s: %q is written as %s: %v: %s", shell, name, word, err, out)
			}
		}
		if _, err := os.Stat(filepath.Join(dir, "gone")); err == nil {
			t.Errorf("%q ran a command", name)
		}
	}
	if got := safetext.ShellFile(""); got != "''" {
		t.Errorf("no name is %s", got)
	}
}
