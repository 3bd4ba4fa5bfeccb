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

// A lockedPackage is the entry of one package in a package-lock.json file.
type lockedPackage struct {
	// Optional means that npm may leave the package uninstalled.
	Optional bool `json:"optional"`
	// OS lists the operating systems that the package supports, such as "linux", or, with a leading "!", does
	// not support; empty means all.
	OS []string `json:"os"`
	// CPU lists the processor architectures that the package supports, such as "x64", or, with a leading "!",
	// does not support; empty means all.
	CPU []string `json:"cpu"`
	// Libc lists the C libraries that the package supports, "glibc" or "musl", or, with a leading "!", does
	// not support; empty means all.
	Libc []string `json:"libc"`
}

// nodeCPU maps GOARCH to npm's names of processors, where the two differ.
var nodeCPU = map[string]string{"amd64": "x64", "386": "ia32"}

// isForHere reports whether npm would install the package on this operating system and processor. It ignores
// the C library.
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

// checkModules returns an error if the node_modules directory in folder lacks packages that package-lock.json
// lists.
//
// Shape: npm writes node_modules/.package-lock.json last, so its absence means an interrupted installation.
// Optional packages are required only if they are for this system. Of packages that differ only in the C library
// (musl or glibc), one is enough.
func checkModules(folder string) error {
	const install = "run 'make test-deps'"
	data, err := os.ReadFile(filepath.Join(folder, "package-lock.json"))
	if err != nil {
		return err
	}

	// Decode only what is needed from the lock file.
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
		return fmt.Errorf("%s/node_modules is incomplete, because npm did not finish: %s", folder, install)
	}

	// families maps packages that differ only in the C library to whether one of them is installed.
	families := map[string]bool{}
	for name, p := range lock.Packages {

		// The entry "" is the project itself. Optional packages that name no system are never required.
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
