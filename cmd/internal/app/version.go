package app

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"unwire/cmd/internal/contract"
)

// development is the version of a program that was built without a version, from a source folder.
const development = "(devel)"

// Version returns the version of the program: the module's version, or the revision from which it was
// built.
func Version() string {
	b := Build()
	v := b.Version
	if v == development && b.Commit != "" {
		v = b.Commit[:min(12, len(b.Commit))]
	}
	return fmt.Sprintf("%s %s %s", v, b.Go, b.Platform)
}

// Build returns the version, commit and platform of this program.
func Build() *contract.Build {
	b := &contract.Build{Version: development, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	changed := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			b.Commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "-dirty"
		}
	}
	if b.Commit != "" {
		b.Commit += changed
	}
	return b
}
