package replaycmd

import (
	"fmt"
	"os"

	"unwire/replay/edit"
)

// A patchFlag is a flag that names a patch file. Its edits are appended to the same list as those of the
// other edit flags, so that the order on the command line counts.
type patchFlag struct {
	// edits is the list that the flag appends to.
	edits *[]edit.Edit
}

// String returns "": the flag has no default value.
func (p *patchFlag) String() string { return "" }

// Type returns the name of the value in help.
func (p *patchFlag) Type() string { return "FILE" }

// Set reads the patch file at path, and appends its edits to the list.
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
