package launch_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"unwire/captures/need"
	"unwire/mitm/launch"
)

// TestInspect puts together what runtimes leave behind.
func TestInspect(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	filler := bytes.Repeat([]byte{0x7f}, 3<<20)
	join := func(parts ...string) []byte {
		out := bytes.Clone(filler)
		for _, p := range parts {
			out = append(out, p...)
		}
		return out
	}
	write("app/resources/app.asar", nil)
	if err := os.Symlink(write("real/bun", filler), filepath.Join(dir, "linked")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		path string
		want launch.Runtime
	}{
		"node by name":     {write("a/node", filler), launch.Node},
		"by a link":        {filepath.Join(dir, "linked"), launch.Bun},
		"script of node":   {write("cli", []byte("#!/usr/bin/env -S node --no-warnings\nx")), launch.Node},
		"script of bun":    {write("cli2", []byte("#!/usr/bin/env bun\n")), launch.Bun},
		"script of deno":   {write("cli3", []byte("#!/opt/x/deno run\n")), launch.Deno},
		"shell script":     {write("cli4", []byte("#!/bin/sh\nexec true\n")), launch.Runtime("")},
		"empty shebang":    {write("cli5", []byte("#!\n")), launch.Runtime("")},
		"compiled by bun":  {write("b", join("\n---- Bun! ----\n", "12345678")), launch.Bun},
		"compiled by deno": {write("d", join("d3n0l4nd", "0000000000000000")), launch.Deno},
		"node inside":      {write("sea", join("NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2:1", string(filler))), launch.NodeSEA},
		"node, fuse unset": {write("nosea", join("NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2:0", string(filler))), launch.Runtime("")},
		"electron":         {write("app/editor", filler), launch.Electron},
		"go":               {os.Args[0], launch.Go},
		"empty":            {write("empty", nil), launch.Runtime("")},
		"absent":           {filepath.Join(dir, "absent"), launch.Runtime("")},
	} {
		if got := launch.Inspect(c.path); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if sh, err := exec.LookPath("sh"); err == nil {
		if got := launch.Inspect(sh); got != launch.Runtime("") && got != launch.Static {
			t.Errorf("sh is taken for %q", got)
		}
	}
}

// TestReport: the hook says that it was loaded; a Node that was told to take
// no options does not load it.
func TestReport(t *testing.T) {
	path := need.Node(t)
	r := newRecorder(t)
	for name, c := range map[string]struct {
		argv   []string
		hooked bool
	}{
		"node":    {[]string{path, "-e", "0"}, true},
		"refused": {[]string{"env", "-u", "NODE_OPTIONS", path, "-e", "0"}, false},
		"no node": {[]string{"true"}, false},
	} {
		var report launch.Report
		code, _, stderr, err := r.run("", c.argv, func(o *launch.Options) { o.Report = &report })
		if code != 0 || err != nil {
			t.Fatal(code, err, stderr)
		}
		if report.Hooked != c.hooked {
			t.Errorf("%s: hooked is %v", name, report.Hooked)
		}
	}
}
