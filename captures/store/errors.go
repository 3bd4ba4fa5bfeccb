package store

import (
	"fmt"
)

// pathError wraps err with the path of the file. It returns nil if err is nil.
func pathError(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("captures: %s: %w", path, err)
}
