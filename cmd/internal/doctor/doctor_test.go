package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"unwire/mitm/ca"
)

// machine is one with nothing set, where the real programs are.
func machine(t *testing.T, env map[string]string) Machine {
	t.Helper()
	if env == nil {
		env = make(map[string]string)
	}
	if _, set := env["PATH"]; !set {
		env["PATH"] = os.Getenv("PATH")
	}
	return Machine{
		CADir: filepath.Join(t.TempDir(), "ca"), Folder: t.TempDir(), TempDir: t.TempDir(),
		Getenv: func(name string) string { return env[name] }, Now: time.Now,
		Transparent: func(context.Context) error { return nil },
	}
}

// wants checks the status and a word of what one check found.
func wants(t *testing.T, all []check, name string, status Status, word string) {
	t.Helper()
	for _, c := range all {
		if c.Name != name {
			continue
		}
		if c.Status != status || !strings.Contains(c.What+" "+c.Do, word) {
			t.Errorf("%+v, want %s with %q", c, status, word)
		}
		if c.Status != statusOK && c.Do == "" {
			t.Errorf("%+v does not say what to do", c)
		}
		return
	}
	t.Errorf("no check %s in %+v", name, all)
}

func TestRun(t *testing.T) {
	all := machine(t, nil).Run(t.Context())
	seen := make(map[string]bool)
	for _, c := range all {
		seen[c.Name] = true
		if c.What == "" {
			t.Errorf("%+v says nothing", c)
		}
	}
	for _, name := range []string{"CA", "system store", "proxy variables", "CA variables", "Node", "loopback port", "transparent capture", "clock", "this folder", "curl", "tshark", "protoc"} {
		if !seen[name] {
			t.Errorf("no check %s", name)
		}
	}
	wants(t, all, "loopback port", statusOK, "can listen")
	wants(t, all, "clock", statusOK, "new files get the same time")
	wants(t, all, "proxy variables", statusOK, "none")
	if Worst(all) == Fail {
		t.Errorf("something fails here: %+v", all)
	}
}

func TestTransparent(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // the answer is the same whatever was tried
	}
	m := machine(t, nil)
	wants(t, m.transparent(t.Context()), "transparent capture", statusOK, "its own network namespace")
	m.Transparent = func(context.Context) error { return errors.New("no user namespace") }
	wants(t, m.transparent(t.Context()), "transparent capture", statusWarn, "no user namespace")
}

func TestCA(t *testing.T) {
	m := machine(t, nil)
	wants(t, m.ca(t.Context()), "CA", statusOK, "no CA yet")
	if _, err := os.Stat(m.CADir); err == nil {
		t.Fatal("looking has made a CA")
	}
	if _, err := ca.Load(m.CADir); err != nil {
		t.Fatal(err)
	}
	wants(t, m.ca(t.Context()), "CA", statusOK, "valid until")
	wants(t, m.systemTrust(t.Context()), "system store", statusOK, "does not trust")
	at := func(d time.Duration) Machine {
		later := m
		later.Now = func() time.Time { return time.Now().Add(d) }
		return later
	}
	wants(t, at(-48*time.Hour).ca(t.Context()), "CA", Fail, "clock")
	wants(t, at(3*365*24*time.Hour-20*24*time.Hour).ca(t.Context()), "CA", statusWarn, "expires on")
	wants(t, at(4*365*24*time.Hour).ca(t.Context()), "CA", statusWarn, "expired on")

	key, cert := filepath.Join(m.CADir, keyFile), filepath.Join(m.CADir, certFile)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(os.Chmod(key, 0o644))
	wants(t, m.ca(t.Context()), "CA", Fail, "chmod 600")
	check(os.Chmod(key, 0o600))
	other := filepath.Join(t.TempDir(), "ca")
	if _, err := ca.Load(other); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(other, certFile))
	check(err)
	check(os.WriteFile(cert, data, 0o644))
	wants(t, m.ca(t.Context()), "CA", Fail, "do not match")
	check(os.WriteFile(cert, []byte("nothing"), 0o644))
	wants(t, m.ca(t.Context()), "CA", statusWarn, "contains no certificate")
}

func TestVariables(t *testing.T) {
	there := filepath.Join(t.TempDir(), "bundle.pem")
	if err := os.WriteFile(there, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m := machine(t, map[string]string{
		"https_proxy": "http://user:made-up-password@proxy.example:3128", "NO_PROXY": "example.com, 127.0.0.0/8",
		"SSL_CERT_FILE": there, "NODE_EXTRA_CA_CERTS": there + "-not",
	})
	proxies := m.proxyVariables(t.Context())
	if len(proxies) != 2 || proxies[0].Status != statusWarn || !strings.Contains(proxies[0].What, "http://proxy.example:3128") || !strings.Contains(proxies[1].What, "127.0.0.0/8") {
		t.Errorf("%+v", proxies)
	}
	for _, c := range proxies {
		if strings.Contains(c.What+c.Do, "made-up-password") {
			t.Errorf("%+v shows a password", c)
		}
	}
	cas := m.caVariables(t.Context())
	if len(cas) != 2 || !strings.Contains(cas[0].What, there) || !strings.Contains(cas[1].What, "cannot be read") {
		t.Errorf("%+v", cas)
	}
	for list, want := range map[string]string{
		"": "", "example.com": "", "*": "*", "a,localhost": "localhost", ".localhost": ".localhost", "127.0.0.1:80": "127.0.0.1:80", "::1": "::1", "[::1]:443": "[::1]:443", "10.0.0.0/8": "", "::/0": "::/0",
	} {
		if got := coversLoopback(list); got != want {
			t.Errorf("NO_PROXY=%s: %q", list, got)
		}
	}
}

// A program in the PATH stands for a Node of another kind.
func TestNode(t *testing.T) {
	for _, c := range []struct {
		script string
		status Status
		word   string
	}{
		{"", statusOK, "not installed"},
		{"exit 3", statusWarn, "does not run"},
		{"echo v16.20.0", statusWarn, "Node 20 or newer"},
		{"echo v22.1.0", statusWarn, "ignores NODE_OPTIONS"},
		{`if [ "$1" = -p ]; then echo "${NODE_OPTIONS#--title=}"; else echo v22.1.0; fi`, statusOK, "v22.1.0"},
	} {
		dir := t.TempDir()
		if c.script != "" {
			if err := os.WriteFile(filepath.Join(dir, "node"), []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		m := machine(t, map[string]string{"PATH": dir, "NODE_OPTIONS": "--require /x --title=made-up"})
		all := m.node(t.Context())
		wants(t, all, "Node", c.status, c.word)
		if c.word == "v22.1.0" {
			wants(t, all, "NODE_OPTIONS", statusWarn, "--require --title")
		}
	}
}

func TestClockAndDisk(t *testing.T) {
	m := machine(t, nil)
	m.Now = func() time.Time { return time.Now().Add(time.Hour) }
	wants(t, m.clock(t.Context()), "clock", statusWarn, "by 1h0m0s")
	m.Now = func() time.Time { return time.Unix(0, 0) }
	wants(t, m.clock(t.Context()), "clock", Fail, "set the clock")
	m.Folder = filepath.Join(t.TempDir(), "missing")
	wants(t, m.disk(t.Context()), "this folder", statusWarn, "not writable")
	if free, err := freeBytes(t.TempDir()); err != nil || free == 0 {
		t.Errorf("%d bytes are free, %v", free, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wants(t, m.port(ctx), "loopback port", Fail, "sandbox")
}
