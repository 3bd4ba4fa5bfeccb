// Package nodetest starts servers on Node for tests.
package nodetest

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"unwire/captures/need"
)

// Serve runs a script with Node.js, and returns the port that the script prints as the one on which it
// listens. The script must exit when its standard input ends. Its arguments are the paths of temporary
// files with the contents files. If Node.js or the packages of the script's folder are missing, the
// test is skipped.
func Serve(t testing.TB, script string, files ...[]byte) (port string) {
	t.Helper()
	cmd := exec.Command(need.Node(t, filepath.Dir(script)), script)
	for i, data := range files {
		name := filepath.Join(t.TempDir(), strconv.Itoa(i))
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd.Args = append(cmd.Args, name)
	}
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// The script ends with its standard input.
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}
