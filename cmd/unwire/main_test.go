package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"unwire/captures/need"
)

var update = flag.Bool("update", false, "update testdata: write what the tests expect anew")

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "unwire" {
		// Tests may be run with signals ignored, as nohup and shells do in the background,
		// which the programs that they start would inherit. A signal that is caught has its
		// default again in a child.
		for _, s := range []os.Signal{syscall.SIGHUP, os.Interrupt} {
			if signal.Ignored(s) {
				signal.Notify(make(chan os.Signal, 1), s)
			}
		}
	}
	testscript.Main(m, map[string]func(){
		"unwire": runUnwire,

		// Both ends of conversations without HTTP.
		"talkserver": talkServer,
		"talkclient": talkClient,

		// A server of calls of all kinds.
		"rpcserver": rpcServer,
	})
}

// unwireCommand is the path of the program that TestMain makes of this test.
// To build it once more for each test would take longer than most of them.
func unwireCommand(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("unwire")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestScript runs testdata/script/*.txtar: one behaviour of the command line a file.
func TestScript(t *testing.T) {
	definitions, err := filepath.Abs("../../proto")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Condition:           conditions(),
		Setup: func(env *testscript.Env) error {
			env.Setenv("UNWIRE_CONFIG", env.WorkDir+"/config")
			env.Setenv("NO_COLOR", "1")
			env.Setenv("PROTO", definitions)
			env.Values[processesKey{}] = map[string]*process{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"spawn":  cmdSpawn,
			"signal": cmdSignal,
			"bytes":  cmdBytes,
			"status": cmdStatus,
			"head":   cmdHead,
			"found":  cmdFound,
		},
	})
}

// conditions are those of scripts: [curl] is a curl that works, and so on.
func conditions() func(string) (bool, error) {
	known := map[string]func() bool{
		"curl":     sync.OnceValue(func() bool { _, err := need.CheckCurl("HTTP2"); return err == nil }),
		"node":     sync.OnceValue(func() bool { _, err := need.CheckNode(); return err == nil }),
		"protoc":   sync.OnceValue(func() bool { _, err := need.CheckProtoc(); return err == nil }),
		"chromium": sync.OnceValue(func() bool { _, err := need.CheckProgram("chromium", "chromium", "--version"); return err == nil }),
		"otheruser": sync.OnceValue(func() bool {
			_, err := need.CheckProgram("setpriv", "util-linux", "--reuid=65534", "--clear-groups", "true")
			return err == nil
		}),
		"keyring": sync.OnceValue(func() bool {
			_, bus := need.CheckProgram("dbus-run-session", "dbus", "--", "true")
			_, daemon := need.CheckProgram("gnome-keyring-daemon", "gnome-keyring", "--version")
			_, tool := need.CheckProgram("secret-tool", "libsecret-tools")
			return bus == nil && daemon == nil && tool == nil
		}),
	}
	return func(name string) (bool, error) {
		if holds := known[name]; holds != nil {
			return holds(), nil
		}
		return false, fmt.Errorf("no condition is called %q", name)
	}
}
