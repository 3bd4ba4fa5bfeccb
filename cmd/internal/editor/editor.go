// Package editor has the user edit a text in their own editor. Commands that send or forward an edited message use it.
//
//	edited, err := editor.Edit(a.Signals.ChildRuns, "message.txt", text)
package editor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// maxEdited is the largest edited text in bytes.
const maxEdited = 64 << 20

// Edit lets the user edit a text in $VISUAL or $EDITOR, and returns the edited text. The editor gets a
// temporary file called name that only the user can read. childRuns is called before the editor starts,
// and ended after it has exited; in between, signals are the editor's.
func Edit(childRuns func() (ended func(), err error), name string, text []byte) (edited []byte, err error) {
	command := os.Getenv("VISUAL")
	if command == "" {
		command = os.Getenv("EDITOR")
	}
	if command == "" {
		return nil, errors.New("no editor is set: set VISUAL or EDITOR to a command")
	}
	dir, err := os.MkdirTemp("", "unwire-edit-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	// The variable is a command with its arguments, as a shell reads it.
	cmd := exec.Command("sh", "-c", command+` "$1"`, "sh", file)
	if runtime.GOOS == "windows" {
		cmd = exec.Command("cmd", "/c", command+" "+file)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stderr, os.Stderr
	// An editor has its own use for Ctrl-C.
	ended, err := childRuns()
	if err != nil {
		return nil, err
	}
	defer ended()
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("the editor %q failed: %w", command, err)
	}
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxEdited {
		return nil, fmt.Errorf("the edited text has %d bytes; the limit is %d", info.Size(), maxEdited)
	}
	return os.ReadFile(file)
}
