package store

import (
	"fmt"
)

// pathError adds the path of the file to err. It returns nil for nil.
func pathError(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("captures: %s: %w", path, err)
}
