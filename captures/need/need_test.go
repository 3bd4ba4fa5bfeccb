package need

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// program puts a shell script into a folder that is all of PATH.
func program(t *testing.T, name, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
}

// What is missing, too old or half installed is found, and the message says what
// to install.
func TestIncompletePrograms(t *testing.T) {
	protoc := func() error { _, err := CheckProtoc(); return err }
	curl := func() error { _, err := CheckCurl("HTTP2"); return err }
	node := func() error { _, err := CheckNode(); return err }
	for _, c := range []struct {
		name, program, script string
		check                 func() error
		want                  string // in the error; "": none
	}{
		{"no protoc", "other", "", protoc, "protoc is not installed: install protobuf-compiler"},
		{"protoc without its files", "protoc", "echo 'google/protobuf/timestamp.proto: File not found.' >&2; exit 1", protoc, "install protobuf-compiler and libprotobuf-dev: exit status 1: google/protobuf/timestamp.proto: File not found."},
		{"protoc", "protoc", "", protoc, ""},
		{"no curl", "other", "", curl, "curl is not installed: install curl"},
		{"curl without HTTP/2", "curl", "echo 'Features: IPv6 SSL'", curl, "this curl has no HTTP2"},
		{"curl without TLS", "curl", "echo 'Features: HTTP2'", curl, "this curl has no SSL"},
		{"broken curl", "curl", "echo 'no libcurl' >&2; exit 127", curl, "curl does not run: install curl: exit status 127: no libcurl"},
		{"curl", "curl", "echo 'Features: HTTP2 SSL'", curl, ""},
		{"no node", "other", "", node, "node is not installed: install nodejs"},
		{"old node", "node", "echo 12.22.9", node, "node is 12.22.9, 18 is needed: install a newer nodejs"},
		{"node", "node", "echo 24.1.0", node, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			program(t, c.program, c.script)
			err := c.check()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestIncompleteModules detects an installation that npm has not finished.
func TestIncompleteModules(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	missing := func(want string) {
		t.Helper()
		if err := checkModules(dir); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "run 'make test-deps'") {
			t.Errorf("%v, want %q", err, want)
		}
	}
	write("package-lock.json", `{"packages":{"":{},"node_modules/a":{},"node_modules/a/node_modules/b":{},
		"node_modules/c":{"optional":true,"os":["none"]},"node_modules/d":{"optional":true},"node_modules/e":{"optional":true,"os":["linux","darwin","win32"]}}}`)
	missing("node_modules is missing")
	write("node_modules/a/package.json", "{}")
	missing("npm did not finish")
	write("node_modules/.package-lock.json", "{}")
	missing("node_modules/")
	write("node_modules/e/package.json", "{}")
	missing("node_modules/a/node_modules/b is missing")
	write("node_modules/a/node_modules/b/package.json", "{}")
	if err := checkModules(dir); err != nil {
		t.Error(err)
	}
}
