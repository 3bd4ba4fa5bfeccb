package need

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// A lockedPackage is the entry of one package in a package-lock.json.
type lockedPackage struct {
	Optional bool     `json:"optional"`
	OS       []string `json:"os"`
	CPU      []string `json:"cpu"`
	Libc     []string `json:"libc"`
}

// nodeCPU are the names that npm has for processors.
var nodeCPU = map[string]string{"amd64": "x64", "386": "ia32"}

// isForHere reports whether a package that is made for some systems is for this one,
// whatever its C library.
func (p *lockedPackage) isForHere() bool {
	system, cpu := runtime.GOOS, runtime.GOARCH
	if system == "windows" {
		system = "win32"
	}
	if name := nodeCPU[cpu]; name != "" {
		cpu = name
	}
	return (len(p.OS) == 0 || slices.Contains(p.OS, system)) && (len(p.CPU) == 0 || slices.Contains(p.CPU, cpu))
}

// checkModules reports what a folder's node_modules lacks of its package-lock.json.
//
// Shape: npm writes node_modules/.package-lock.json last, so an installation that was
// broken off has none. An optional package counts if it is made for this system; of
// those that differ in the C library alone, one has to be there.
func checkModules(folder string) error {
	const install = "run 'make test-deps'"
	data, err := os.ReadFile(filepath.Join(folder, "package-lock.json"))
	if err != nil {
		return err
	}
	var lock struct {
		Packages map[string]lockedPackage `json:"packages"`
	}
	if err := json.Unmarshal(data, &lock); err != nil {
		return fmt.Errorf("%s/package-lock.json: %w", folder, err)
	}
	if _, err := os.Stat(filepath.Join(folder, "node_modules")); err != nil {
		return fmt.Errorf("%s/node_modules is missing: %s", folder, install)
	}
	if _, err := os.Stat(filepath.Join(folder, "node_modules", ".package-lock.json")); err != nil {
		return fmt.Errorf("%s/node_modules is incomplete, as npm has not finished it: %s", folder, install)
	}

	// families are packages that differ in the C library only, and whether one of
	// them is installed.
	families := map[string]bool{}
	for name, p := range lock.Packages {
		if name == "" || p.Optional && (len(p.OS) == 0 || !p.isForHere()) {
			continue
		}
		_, err := os.Stat(filepath.Join(folder, name, "package.json"))
		if p.Optional && len(p.Libc) > 0 {
			family := strings.TrimSuffix(strings.TrimSuffix(name, "-musl"), "-gnu")
			families[family] = families[family] || err == nil
			continue
		}
		if err != nil {
			return fmt.Errorf("%s is incomplete, %s is missing: %s", filepath.Join(folder, "node_modules"), name, install)
		}
	}
	for family, there := range families {
		if !there {
			return fmt.Errorf("%s is incomplete, %s is missing: %s", filepath.Join(folder, "node_modules"), family, install)
		}
	}
	return nil
}
