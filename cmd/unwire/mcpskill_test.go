package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSkillCommands runs the commands that the skill teaches, on the capture of the demo. Those that
// record or send need a server, and are checked by the tests of their commands.
func TestSkillCommands(t *testing.T) {
	t.Parallel()
	dir := demoCapture(t)
	if err := os.Rename(filepath.Join(dir, "demo.uwc"), filepath.Join(dir, "F.uwc")); err != nil {
		t.Fatal(err)
	}
	skill, _ := unwireIn(t, dir, "mcp", "skill")
	ran := 0
	for line := range strings.Lines(skill) {
		command, _, isCommand := strings.Cut(line, "  # ")
		if !strings.HasPrefix(line, "unwire ") || !isCommand || strings.Contains(command, "COMMAND") || strings.Contains(command, "--to URL") {
			continue
		}
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "UNWIRE_CONFIG="+filepath.Join(dir, "config"))
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code > 1 {
			t.Errorf("%s: %v: %s", command, err, out)
		}
		ran++
	}
	if ran < 12 {
		t.Errorf("only %d commands were run", ran)
	}
}
