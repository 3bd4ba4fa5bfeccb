package replaycmd

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"unwire/cmd/internal/app"
	"unwire/replay/edit"
)

// maxEdited bounds in bytes what an editor may hand back.
const maxEdited = 64 << 20

// runEditor has the user edit text in $VISUAL or $EDITOR, in a file that only they
// can read.
func runEditor(a *app.App, name string, text []byte) (edited []byte, err error) {
	command := os.Getenv("VISUAL")
	if command == "" {
		command = os.Getenv("EDITOR")
	}
	if command == "" {
		return nil, errors.New("neither VISUAL nor EDITOR is set")
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
	ended, err := a.Signals.ChildRuns()
	if err != nil {
		return nil, err
	}
	defer ended()
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w", command, err)
	}
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxEdited {
		return nil, fmt.Errorf("%d bytes came back, more than %d", info.Size(), maxEdited)
	}
	return os.ReadFile(file)
}

// A patchFlag adds the edits of a file to those of the flags, in their place.
type patchFlag struct{ edits *[]edit.Edit }

func (p *patchFlag) String() string { return "" }
func (p *patchFlag) Type() string   { return "FILE" }

func (p *patchFlag) Set(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	edits, err := edit.ReadPatch(f, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	*p.edits = append(*p.edits, edits...)
	return nil
}
