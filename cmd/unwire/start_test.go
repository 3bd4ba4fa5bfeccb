package main

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestStartIsCheap limits the memory that each package of this module allocates before main runs. Regular expressions
// and tables that only some commands need are to be made when they are first needed.
func TestStartIsCheap(t *testing.T) {
	// maxPackage and maxAll are limits in bytes for each package and for all of them.
	const maxPackage, maxAll = 48 << 10, 512 << 10

	cmd := exec.Command(unwireCommand(t), "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	packages := regexp.MustCompile(`(?m)^init (unwire/\S+) .* (\d+) bytes, `).FindAllStringSubmatch(string(out), -1)
	if len(packages) < 20 {
		t.Fatalf("only %d packages were initialized: %s", len(packages), out)
	}
	all := 0
	for _, p := range packages {
		// The test program starts as unwire, and has packages for tests.
		if strings.HasSuffix(p[1], "test") {
			continue
		}
		n, err := strconv.Atoi(p[2])
		if err != nil {
			t.Fatal(err)
		}
		if n > maxPackage {
			t.Errorf("%s allocates %d bytes at the start of every command, may allocate %d", p[1], n, maxPackage)
		}
		all += n
	}
	if all > maxAll {
		t.Errorf("the packages allocate %d bytes at the start of every command, may allocate %d", all, maxAll)
	}
}
