// Package need is for tests that run other programs. Where a program is missing,
// too old or only half installed, a test is skipped with a message that says what
// to install; .ci/run installs everything and fails if a test was skipped.
//
//	curl := need.Curl(t, "HTTP2")
//
// Modules are packages of Node: each in a package-lock.json must be installed.
// OtherUser is the right to run a program as somebody else.
//
// Shape: each function skips the test or returns the program's path. The Check
// functions return the reason instead, for the conditions of scripts.
package need

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// trialTimeout is how long a program has to answer a trial.
const trialTimeout = time.Minute

// skipIf ends the test if there is a reason.
func skipIf(t testing.TB, path string, err error) string {
	t.Helper()
	if err != nil {
		t.Skip(err)
	}
	return path
}

// runTrial runs a program and returns what it prints; the error has its first line.
func runTrial(argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), trialTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return "", fmt.Errorf("%w: %s", err, line)
	}
	return string(out), nil
}

// CheckProgram finds a program that the package pkg of Debian has. With args, it has to
// end without an error when it is called with them.
func CheckProgram(name, pkg string, args ...string) (path string, err error) {
	if path, err = exec.LookPath(name); err != nil {
		return "", fmt.Errorf("%s is not installed: install %s", name, pkg)
	}
	if len(args) == 0 {
		return path, nil
	}
	if _, err := runTrial(append([]string{path}, args...)...); err != nil {
		return "", fmt.Errorf("%s does not run here: install %s, or allow what it needs: %w", name, pkg, err)
	}
	return path, nil
}

// Program needs what CheckProgram finds.
func Program(t testing.TB, name, pkg string, args ...string) string {
	t.Helper()
	path, err := CheckProgram(name, pkg, args...)
	return skipIf(t, path, err)
}

// CheckProtoc finds a protoc that knows proto3's optional fields and has
// protobuf's own files to import: distributions pack them apart from it.
func CheckProtoc() (string, error) {
	path, err := CheckProgram("protoc", "protobuf-compiler")
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "unwire-need-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is a folder of temporary files
	const file = "syntax = \"proto3\";\nimport \"google/protobuf/timestamp.proto\";\nmessage M { optional google.protobuf.Timestamp at = 1; optional int32 n = 2; }\n"
	name := filepath.Join(dir, "need.proto")
	if err := os.WriteFile(name, []byte(file), 0o600); err != nil {
		return "", err
	}
	if _, err := runTrial(path, "-I"+dir, "-o", os.DevNull, name); err != nil {
		return "", fmt.Errorf("protoc cannot compile a file that imports google/protobuf/timestamp.proto: install protobuf-compiler and libprotobuf-dev: %w", err)
	}
	return path, nil
}

// Protoc needs what CheckProtoc finds.
func Protoc(t testing.TB) string {
	t.Helper()
	path, err := CheckProtoc()
	return skipIf(t, path, err)
}

// CheckCurl finds a curl that has TLS and the features, as `curl --version` calls them:
// HTTP2, or a library such as OpenSSL.
func CheckCurl(features ...string) (string, error) {
	path, err := CheckProgram("curl", "curl")
	if err != nil {
		return "", err
	}
	out, err := runTrial(path, "--version")
	if err != nil {
		return "", fmt.Errorf("curl does not run: install curl: %w", err)
	}
	words := strings.Fields(out)
	for _, f := range append([]string{"SSL"}, features...) {
		if !slices.ContainsFunc(words, func(w string) bool { return w == f || strings.HasPrefix(w, f+"/") }) {
			return "", fmt.Errorf("this curl has no %s: install one that has", f)
		}
	}
	return path, nil
}

// Curl needs what CheckCurl finds.
func Curl(t testing.TB, features ...string) string {
	t.Helper()
	path, err := CheckCurl(features...)
	return skipIf(t, path, err)
}

// systemPython is the one that packages of modules are for.
const systemPython = "/usr/bin/python3"

// Python needs a python3 that has the modules: the first one of PATH, or the system's.
func Python(t testing.TB, modules ...string) string {
	t.Helper()
	path := Program(t, "python3", "python3")
	trial := []string{"-c", "import " + strings.Join(append([]string{"sys"}, modules...), ", ")}
	_, err := runTrial(append([]string{path}, trial...)...)
	if err == nil {
		return path
	}
	if _, err := runTrial(append([]string{systemPython}, trial...)...); err != nil {
		t.Skipf("no python3 here has %s: install python3 and python3-grpcio: %v", strings.Join(modules, ", "), err)
	}
	return systemPython
}

// OutputHas needs a program whose output to args has a word: of a help text, an option.
func OutputHas(t testing.TB, word, name, pkg string, args ...string) string {
	t.Helper()
	path := Program(t, name, pkg)
	if out, err := runTrial(append([]string{path}, args...)...); err != nil || !strings.Contains(out, word) {
		t.Skipf("this %s has no %s: install a newer %s", name, word, pkg)
	}
	return path
}

// leastNode is the oldest Node that has fetch, which the tests' clients use.
const leastNode = 18

// CheckNode finds a Node that is new enough.
func CheckNode() (string, error) {
	path, err := CheckProgram("node", "nodejs")
	if err != nil {
		return "", err
	}
	out, err := runTrial(path, "-p", "process.versions.node")
	if err != nil {
		return "", fmt.Errorf("node does not run: install nodejs: %w", err)
	}
	major, _, _ := strings.Cut(strings.TrimSpace(out), ".")
	if n, err := strconv.Atoi(major); err != nil || n < leastNode {
		return "", fmt.Errorf("node is %s, %d is needed: install a newer nodejs", strings.TrimSpace(out), leastNode)
	}
	return path, nil
}

// Node needs Node, and of each folder all the packages that its lock file names.
func Node(t testing.TB, folders ...string) string {
	t.Helper()
	path, err := CheckNode()
	for _, f := range folders {
		if err == nil {
			err = checkModules(f)
		}
	}
	return skipIf(t, path, err)
}

// Modules needs the packages that the lock file of a folder names.
func Modules(t testing.TB, folder string) {
	t.Helper()
	skipIf(t, "", checkModules(folder))
}
