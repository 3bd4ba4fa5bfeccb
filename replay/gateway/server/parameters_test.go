package server_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"unwire/replay/gateway/server"
)

var update = flag.Bool("update", false, "write ../PARAMETERS.md anew")

// TestParametersDocument compares PARAMETERS.md with the tables that the front ends use.
func TestParametersDocument(t *testing.T) {
	t.Parallel()
	const file = "../PARAMETERS.md"
	var page strings.Builder
	if err := server.WriteParameters(&page); err != nil {
		t.Fatal(err)
	}
	want := page.String()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the front ends do: go test ./replay/gateway/server -run TestParametersDocument -update", file)
	}
}
