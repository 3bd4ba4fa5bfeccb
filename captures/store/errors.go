package store

import (
	"fmt"
)

// pathError wraps err with the file it is about.
func pathError(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("captures: %s: %w", path, err)
}
