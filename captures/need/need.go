// Package need lets tests declare the external programs that they run. If a program is missing, too old or only
// partly installed, the test is skipped with a message that names the package to install. .ci/run installs all
// of them and fails if a test was skipped.
//
//	curl := need.Curl(t, "HTTP2") // the path of a curl with HTTP/2
//
// The functions named Check… return the reason as an error instead of skipping; conditions of testscript scripts
// use them. Modules requires the Node packages of a package-lock.json file, OtherUser the right to run a program
// as another user.
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

// trialTimeout limits how long runTrial lets a program run.
const trialTimeout = time.Minute

// skipOnError skips the test with the message of err if err is not nil. Otherwise, it returns path.
func skipOnError(t testing.TB, path string, err error) string {
	t.Helper()
	if err != nil {
		t.Skip(err)
	}
	return path
}

// runTrial runs a program, to see if it works, and returns its output. An error contains the first line of
// output.
func runTrial(argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), trialTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		// One line is enough for the reason of a skip.
		line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return "", fmt.Errorf("%w: %s", err, line)
	}
	return string(out), nil
}

// CheckProgram returns the path of a program; an error names the Debian package pkg, which contains it. If args
// are given, running the program with them must succeed.
func CheckProgram(name, pkg string, args ...string) (path string, err error) {
	if path, err = exec.LookPath(name); err != nil {
		return "", fmt.Errorf("%s is not installed: install %s", name, pkg)
	}
	if len(args) == 0 {
		return path, nil
	}
	if _, err := runTrial(append([]string{path}, args...)...); err != nil {
		return "", fmt.Errorf("%s cannot run here: install %s, or give it the missing permission: %w", name, pkg, err)
	}
	return path, nil
}

// Program returns the path of a program, or skips the test (see CheckProgram).
func Program(t testing.TB, name, pkg string, args ...string) string {
	t.Helper()
	path, err := CheckProgram(name, pkg, args...)
	return skipOnError(t, path, err)
}

// CheckProtoc returns the path of a protoc that supports optional fields in proto3 and finds protobuf's
// well-known types, which distributions package separately.
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

	// Only a compilation shows whether the well-known types are installed.
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

// Protoc returns the path of protoc, or skips the test (see CheckProtoc).
func Protoc(t testing.TB) string {
	t.Helper()
	path, err := CheckProtoc()
	return skipOnError(t, path, err)
}

// CheckCurl returns the path of a curl with TLS support and the given features, which are words in the
// output of `curl --version`: HTTP2, or a library such as OpenSSL.
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

// Curl returns the path of curl with the given features, or skips the test; see CheckCurl.
func Curl(t testing.TB, features ...string) string {
	t.Helper()
	path, err := CheckCurl(features...)
	return skipOnError(t, path, err)
}

// systemPython is the interpreter for which Debian packages Python modules.
const systemPython = "/usr/bin/python3"

// Python returns the path of a python3 that can import the modules, or skips the test. It tries the first
// python3 in PATH, then systemPython.
func Python(t testing.TB, modules ...string) string {
	t.Helper()
	path := Program(t, "python3", "python3")
	trial := []string{"-c", "import " + strings.Join(append([]string{"sys"}, modules...), ", ")}

	// The first python3 may lack modules that the system's has.
	_, err := runTrial(append([]string{path}, trial...)...)
	if err == nil {
		return path
	}
	if _, err := runTrial(append([]string{systemPython}, trial...)...); err != nil {
		t.Skipf("no python3 here has %s: install python3, python3-grpcio and python3-protobuf: %v", strings.Join(modules, ", "), err)
	}
	return systemPython
}

// OutputHas returns the path of a program whose output, when run with args, contains word, such as an
// option in a help text. Otherwise it skips the test.
func OutputHas(t testing.TB, word, name, pkg string, args ...string) string {
	t.Helper()
	path := Program(t, name, pkg)
	if out, err := runTrial(append([]string{path}, args...)...); err != nil || !strings.Contains(out, word) {
		t.Skipf("this %s has no %s: install a newer %s", name, word, pkg)
	}
	return path
}

// minNodeVersion is the oldest major version of Node with fetch, which clients in tests use.
const minNodeVersion = 18

// CheckNode returns the path of Node.js; older versions than required are an error.
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
	if n, err := strconv.Atoi(major); err != nil || n < minNodeVersion {
		return "", fmt.Errorf("node is %s, %d is needed: install a newer nodejs", strings.TrimSpace(out), minNodeVersion)
	}
	return path, nil
}

// Node returns the path of Node.js. It skips the test if Node.js is missing, or a package that
// package-lock.json in one of the folders lists.
func Node(t testing.TB, folders ...string) string {
	t.Helper()
	path, err := CheckNode()
	for _, f := range folders {
		if err == nil {
			err = checkModules(f)
		}
	}
	return skipOnError(t, path, err)
}

// Modules skips the test if a package that package-lock.json in the folder lists is not installed.
func Modules(t testing.TB, folder string) {
	t.Helper()
	skipOnError(t, "", checkModules(folder))
}

// File skips the test if the file name does not exist. The message names the Debian package pkg, which contains
// it.
func File(t testing.TB, name, pkg string) {
	t.Helper()
	if _, err := os.Stat(name); err != nil {
		t.Skipf("%v: install %s", err, pkg)
	}
}
