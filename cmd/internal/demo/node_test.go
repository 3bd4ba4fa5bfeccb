package demo

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"unwire/replay/standin"
)

func TestNodeClientPlaysTheScenario(t *testing.T) {
	s := startStandin(t, standin.Options{})
	argv, env, err := NodeCommand("node", t.TempDir(), ClientOptions{URL: s.URL(), Token: token})
	if errors.Is(err, ErrNoNode) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(append(os.Environ(), env...), "NODE_EXTRA_CA_CERTS="+s.CAFile())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	checkLines(t, string(out))
}

func TestNodeCommandSaysWhatIsMissing(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("there is no node in PATH")
	}
	_, _, err := NodeCommand(t.TempDir(), t.TempDir(), ClientOptions{})
	if !errors.Is(err, ErrNoNode) || !strings.Contains(err.Error(), "client.mjs") {
		t.Errorf("for an empty folder: %v", err)
	}
}
