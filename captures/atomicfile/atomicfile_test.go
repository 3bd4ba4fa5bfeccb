package atomicfile_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"unwire/captures"
	"unwire/captures/atomicfile"
)

// entries are the names in a folder.
func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func content(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "a.txt")
	for _, text := range []string{"first", "second"} {
		f, err := atomicfile.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if text == "second" && content(t, name) != "first" {
			t.Error("the file changes before it is complete")
		}
		if err := f.Commit(); err != nil {
			t.Fatal(err)
		}
		if content(t, name) != text {
			t.Errorf("it has %q", content(t, name))
		}
	}
	f, err := atomicfile.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Discard(); err != nil {
		t.Fatal(err)
	}
	if got := entries(t, dir); len(got) != 1 || content(t, name) != "second" {
		t.Errorf("the folder has %q", got)
	}
	if _, err := atomicfile.Create(filepath.Join(dir, "none", "a")); !errors.Is(err, captures.ErrNoFolder) {
		t.Errorf("a missing folder: %v", err)
	}

	// A folder of that name cannot be replaced; nothing is left.
	if err := os.MkdirAll(filepath.Join(dir, "b", "c"), 0o700); err != nil {
		t.Fatal(err)
	}
	if f, err = atomicfile.Create(filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); err == nil || len(entries(t, dir)) != 2 {
		t.Errorf("%v, %q", err, entries(t, dir))
	}
}

func TestFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "new", "out")
	for _, text := range []string{"first", "second"} {
		f, err := atomicfile.CreateFolder(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{"a", text} {
			if err := os.WriteFile(filepath.Join(f.Path, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(entries(t, name), " "); got != "a first second" || content(t, filepath.Join(name, "a")) != "second" {
		t.Errorf("the folder has %s", got)
	}
	if got := entries(t, filepath.Dir(name)); len(got) != 1 {
		t.Errorf("left: %q", got)
	}
	if _, err := atomicfile.CreateFolder(filepath.Join(name, "a")); err == nil {
		t.Error("a file is no folder")
	}
	f, err := atomicfile.CreateFolder(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Discard(); err != nil || len(entries(t, name)) != 3 {
		t.Errorf("%v, %q", err, entries(t, name))
	}
}

// TestMain is the process of TestAbandoned that is killed.
func TestMain(m *testing.M) {
	name := os.Getenv("ATOMICFILE_TEST")
	if name == "" {
		os.Exit(m.Run())
	}
	f, err := atomicfile.Create(name)
	if err == nil {
		_, err = f.WriteString("partial")
	}
	if err == nil {
		err = os.WriteFile(f.Name()+"-wal", nil, 0o600)
	}
	if err == nil {
		_, err = atomicfile.CreateFolder(name)
	}
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString("begun\n") //nolint:errcheck // its reader waits for it
	select {}
}

// TestAbandoned kills a process that writes: the next one removes what it left, and nothing else.
func TestAbandoned(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("folders of killed processes stay on Windows")
	}
	dir := t.TempDir()
	name := filepath.Join(dir, "a.uwc")
	child := func() (kill func()) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "ATOMICFILE_TEST="+name)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		return func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	}
	kill := child()
	alive := entries(t, dir)
	if len(alive) != 3 {
		t.Fatalf("the process has made %q", alive)
	}
	other := []string{".a.uwc.unwire-partial-mine", ".b.uwc.unwire-partial-1", "a.uwc.unwire-partial-1"}
	for _, name := range other {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	// What a process is writing stays.
	commit := func() {
		t.Helper()
		f, err := atomicfile.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(bytes.Repeat([]byte("x"), 10)); err != nil {
			t.Fatal(err)
		}
		if err := f.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	commit()
	for _, name := range alive {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("of a process that writes: %v", err)
		}
	}
	kill()
	commit()
	for _, name := range alive {
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("of a killed process: %s, %v", name, err)
		}
	}
	if got := entries(t, dir); len(got) != len(other)+1 {
		t.Errorf("the folder has %q", got)
	}
}

// Errors about a temporary file name the result.
func TestResultNames(t *testing.T) {
	dir := t.TempDir()
	f, err := atomicfile.Create(filepath.Join(dir, "a.har"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Discard() //nolint:errcheck // the folder is temporary
	text := "write " + f.Name() + ": no space left on device"
	if got, want := atomicfile.ResultNames(text), "write "+filepath.Join(dir, "a.har")+": no space left on device"; got != want {
		t.Errorf("%q is %q, want %q", text, got, want)
	}
}
