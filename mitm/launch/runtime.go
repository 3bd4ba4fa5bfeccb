package launch

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A Runtime is the kind of runtime of a program, such as Node or Go. It determines how the program's traffic
// can be recorded.
type Runtime string

const (
	unknown Runtime = ""
	// Node is Node.js.
	Node Runtime = "node"
	// NodeSEA is a single executable application of Node, i.e. Node with a program inside.
	NodeSEA Runtime = "node (bundled)"
	// Bun, Deno and Electron are the JavaScript runtimes of these names; Go is a program that was compiled
	// from Go.
	Bun      Runtime = "bun"
	Deno     Runtime = "deno"
	Electron Runtime = "electron"
	Go       Runtime = "go"

	// Static programs load no libraries, so hooks and interposers cannot reach them.
	Static Runtime = "static"
)

const (
	// Sizes in bytes of the parts of a file that are read: maxShebang of a script's first line, maxScript of a
	// script, trailerBytes of an executable's end, and maxSearched of an executable in blocks of searchBlock.
	maxShebang   = 256
	maxScript    = 4096
	trailerBytes = 64 << 10
	maxSearched  = 256 << 20
	searchBlock  = 1 << 20
)

// runtimeNames maps the names of executables to their runtimes.
var runtimeNames = map[string]Runtime{
	"node": Node, "nodejs": Node, "npm": Node, "npx": Node,
	"bun": Bun, "bunx": Bun, "deno": Deno, "electron": Electron,
}

// Byte sequences that identify runtimes in executables. A compiled Bun or Deno program ends with the mark and a
// few bytes; a single executable application of Node contains its fuse, a text whose last character was changed
// from 0 to 1.
var (
	markBun  = []byte("\n---- Bun! ----\n")
	markDeno = []byte("d3n0l4nd")
	markSEA  = []byte("NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2:1")
)

// Inspect detects the runtime of a command by the name and the contents of its executable. For a script, it
// inspects the interpreter. It does not run the command.
//
// Limits: 256 MiB of an executable are searched.
func Inspect(command string) Runtime {
	path, err := exec.LookPath(command)
	if err != nil {
		return unknown
	}
	return inspectFile(path, true)
}

// inspectFile detects the runtime of the file path. If follow is set and it is a script, the interpreter is
// inspected.
func inspectFile(path string, follow bool) Runtime {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	name := strings.TrimSuffix(strings.ToLower(filepath.Base(path)), ".exe")
	if r, ok := runtimeNames[name]; ok {
		return r
	}
	f, err := os.Open(path)
	if err != nil {
		return unknown
	}
	defer func() { _ = f.Close() }()

	// Reading a pipe or a device could block or have side effects.
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return unknown
	}
	head := make([]byte, maxScript)
	n, _ := io.ReadFull(f, head)
	if head = head[:n]; bytes.HasPrefix(head, []byte("#!")) {
		return inspectScript(head, follow)
	}

	// A file without Go build information is a candidate for the other runtimes.
	_, notGo := buildinfo.Read(f)
	switch tail := readTail(f); {
	// A Go program can contain the marks, as this one does.
	case notGo == nil:
		return Go
	case isElectron(path):
		return Electron
	case bytes.Contains(tail, markBun):
		return Bun
	case bytes.Contains(tail, markDeno):
		return Deno
	case containsMark(f, markSEA):
		return NodeSEA
	}
	if isStatic(f) {
		return Static
	}
	return unknown
}

// inspectScript detects the runtime of a script from its first line, which is in head.
func inspectScript(head []byte, follow bool) Runtime {
	line, _, _ := bytes.Cut(head[:min(len(head), maxShebang)], []byte("\n"))
	words := strings.Fields(string(line[2:]))
	for len(words) > 0 && (filepath.Base(words[0]) == "env" || strings.HasPrefix(words[0], "-") || strings.Contains(words[0], "=")) {
		words = words[1:]
	}
	if len(words) == 0 || !follow {
		return unknown
	}
	if r, ok := runtimeNames[filepath.Base(words[0])]; ok {
		return r
	}
	path, err := exec.LookPath(words[0])
	if err != nil {
		return unknown
	}
	if r := inspectFile(path, false); r != Static && r != Go {
		return r
	}
	// A static shell does not mean that the programs it runs are static.
	return unknown
}

// isElectron reports whether files that accompany Electron programs are next to the executable.
func isElectron(path string) bool {
	dir := filepath.Dir(path)
	for _, names := range [][]string{{"resources/app.asar"}, {"resources/app/package.json", "chrome_100_percent.pak"}, {"../Resources/app.asar"}} {
		all := true
		for _, n := range names {
			if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(n))); err != nil {
				all = false
			}
		}
		if all {
			return true
		}
	}
	return false
}

// readTail returns the last trailerBytes bytes of a file.
func readTail(f *os.File) []byte {
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	n := min(info.Size(), trailerBytes)
	tail := make([]byte, n)
	got, _ := f.ReadAt(tail, info.Size()-n)
	return tail[:got]
}

// containsMark reports whether a file contains a mark. It searches block by block; blocks overlap by the length
// of the mark.
func containsMark(f *os.File, mark []byte) bool {
	buf := make([]byte, searchBlock+len(mark))
	for off := int64(0); off < maxSearched; off += searchBlock {
		n, err := f.ReadAt(buf, off)
		if bytes.Contains(buf[:n], mark) {
			return true
		}
		if err != nil {
			return false
		}
	}
	return false
}

// isStatic reports whether an executable is an ELF file that needs no dynamic linker.
func isStatic(f *os.File) bool {
	e, err := elf.NewFile(f)
	if err != nil {
		return false
	}
	for _, p := range e.Progs {
		if p.Type == elf.PT_INTERP {
			return false
		}
	}
	return e.Type == elf.ET_EXEC || e.Type == elf.ET_DYN
}
