package demo

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"unwire/captures/need"
	"unwire/replay/standin"
)

func TestNodeClientPlaysTheScenario(t *testing.T) {
	need.Node(t, "node")
	s := startStandin(t, standin.Options{})
	argv, env, err := NodeCommand("node", t.TempDir(), ClientOptions{URL: s.URL(), Token: token})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(append(os.Environ(), env...), "NODE_EXTRA_CA_CERTS="+s.CAFile)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	checkLines(t, string(out))
}

func TestNodeClientFailsWithOneLine(t *testing.T) {
	need.Node(t, "node")
	s := startStandin(t, standin.Options{Script: []byte(`{"v":1,"turns":[{"steps":[{"text":"a"},{"reset":true}]}]}`)})
	for name, c := range map[string]struct {
		o    ClientOptions
		want string
	}{
		"no URL":        {ClientOptions{Token: token}, "demo client: UNWIRE_DEMO_URL is not set"},
		"another token": {ClientOptions{URL: s.URL(), Token: "x"}, "demo client: [unauthenticated]"},
		"a reset":       {ClientOptions{URL: s.URL(), Token: token}, "demo client: ["},
	} {
		argv, env, err := NodeCommand("node", t.TempDir(), c.o)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Env = append(append(os.Environ(), env...), "NODE_EXTRA_CA_CERTS="+s.CAFile)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		if err := cmd.Run(); err == nil {
			t.Errorf("%s: the client succeeded", name)
		}
		if got := stderr.String(); !strings.HasPrefix(got, c.want) || strings.Count(got, "\n") != 1 {
			t.Errorf("%s: %q, want one line with %q", name, got, c.want)
		}
	}
}

func TestNodeCommandSaysWhatIsMissing(t *testing.T) {
	need.Node(t)
	_, _, err := NodeCommand(t.TempDir(), t.TempDir(), ClientOptions{})
	if !errors.Is(err, ErrNoNode) || !strings.Contains(err.Error(), "client.mjs") {
		t.Errorf("for an empty folder: %v", err)
	}
}
