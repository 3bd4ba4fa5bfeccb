package replaycmd

import (
	"fmt"
	"os"

	"unwire/replay/edit"
)

// A patchFlag inserts the edits in a patch file at its position among the other edit flags.
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
