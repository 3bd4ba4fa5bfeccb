package extract

import (
	"errors"
	"fmt"

	"unwire/captures/budget"
	"unwire/schema/archive"
)

// Limits of the definitions in one file, by their estimated memory in bytes. They protect against hostile
// files: 180,000 distinct messages fit into a compressed file of 1 MB, and would take 1 GB and 9 s. Real
// definitions take less than 120 bytes of memory for each byte of a compressed file.
const (
	// minDefinitions is the memory in bytes allowed for any file, however small.
	minDefinitions = 32 << 20
	// definitionsPerByte is the memory in bytes additionally allowed for each byte of the file.
	definitionsPerByte = 160
)

// ErrTooManyDefinitions is wrapped by the error for a file with far more definitions than real files of its
// size have.
var ErrTooManyDefinitions = errors.New("the file contains too many definitions for its size")

// A definitionLimit counts the estimated memory for the definitions in one file: used so far, of at most most,
// both in bytes.
type definitionLimit struct {
	// used is the estimated memory of the definitions so far, in bytes.
	used int64

	// most is the maximum of used, in bytes.
	most int64
}

// newDefinitionLimit returns the limit for a file of size bytes.
func newDefinitionLimit(size int64) definitionLimit {
	return definitionLimit{most: minDefinitions + min(size, maxArchive)*definitionsPerByte}
}

// spendDefinitions counts bytes of memory for definitions of the current file, and for the budget of the
// command.
//
// Errors: ErrTooManyDefinitions, and budget.ErrExceeded.
func (c *collector) spendDefinitions(bytes int) error {
	if c.definitions.used += int64(bytes); c.definitions.used > c.definitions.most {
		return fmt.Errorf("%w: the definitions need more than %d MiB of memory", ErrTooManyDefinitions, c.definitions.most>>20)
	}
	return c.shared.Spend(budget.Definitions, int64(bytes))
}

// isBomb reports whether an error is that of a file that costs much more than its size, such as an archive
// bomb.
func isBomb(err error) bool {
	return errors.Is(err, archive.ErrBomb) || errors.Is(err, ErrTooManyDefinitions) || errors.Is(err, budget.ErrExceeded)
}
