package tools

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSchemaWithoutWorkingFolder compiles a schema in a folder that has been removed.
func TestSchemaWithoutWorkingFolder(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(gone, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(gone)
	if err := os.Remove(gone); err != nil {
		t.Skipf("this system does not remove the working folder: %v", err)
	}
	c, err := compile([]byte(`{"type":"object","properties":{"a":{"type":"string"}},"$defs":{"b":{}},"required":["a"]}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.validate([]byte(`{"a":1}`)); err == nil {
		t.Error("a wrong argument was accepted")
	}
}
