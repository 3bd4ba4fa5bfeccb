// Package doctor looks at what recording needs of this machine and says what
// to do about what is missing. It changes nothing, and uses no network beyond
// loopback.
//
// The checks are: the CA and whether the system trusts it, network variables and
// ports, programs that are of use, capture in a network namespace (transparent), and
// the file system: free space for captures, its clock, and leftovers of killed
// captures. Package capturetext prints them.
package doctor

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A Status is the severity of a check's result.
type Status string

const (
	statusOK   Status = "ok"
	statusWarn Status = "warn" // something will not work, or not as expected
	Fail       Status = "fail" // recording will not work
)

// A check is the result of examining one requirement of recording.
type check struct {
	// Name is the name of the requirement, such as "clock".
	Name string

	// Status is the severity of the result.
	Status Status

	// What describes what was found.
	What string

	// Do tells the user what to do about it; "" if nothing.
	Do string
}

// commandTimeout limits each program that a check runs.
const commandTimeout = 10 * time.Second

// A Machine gives the checks access to the system: environment, folders, programs. Tests replace its
// parts.
type Machine struct {
	// CADir is the folder of unwire's CA.
	CADir string

	// Folder is the folder in which captures are written.
	Folder string
	// TempDir is the folder in which passive captures store packets and TLS keys while they run.
	TempDir string

	// Getenv reads an environment variable.
	Getenv func(string) string

	// Now returns the current time.
	Now func() time.Time
	// Transparent runs an empty command as `capture --transparent` does, and returns the error if that
	// fails.
	Transparent func(context.Context) error
}

// Run runs all checks, and returns their results in the order of the report.
func (m Machine) Run(ctx context.Context) []check {
	var all []check
	for _, check := range []func(context.Context) []check{
		m.ca, m.systemTrust, m.proxyVariables, m.caVariables, m.node, m.port, m.transparent, m.clock, m.disk, m.leftOver, m.tools,
	} {
		all = append(all, check(ctx)...)
	}
	return all
}

// Worst returns the most severe status of the results.
func Worst(all []check) Status {
	worst := statusOK
	for _, c := range all {
		if c.Status == Fail || c.Status == statusWarn && worst == statusOK {
			worst = c.Status
		}
	}
	return worst
}

// ok returns the result of a successful check, as a list of one.
func ok(name, what string) []check { return []check{{name, statusOK, what, ""}} }

// warn returns a warning: what was found, and what to do about it.
func warn(name, what, do string) []check { return []check{{name, statusWarn, what, do}} }

// failed returns the result of a failed check: what was found, and what to do about it.
func failed(name, what, do string) []check { return []check{{name, Fail, what, do}} }

// output runs a program from PATH with additional environment variables, and returns the first line that
// it prints.
func (m Machine) output(ctx context.Context, env []string, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	path, err := m.lookPath(argv[0])
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, path, argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line, err
}

// lookPath returns the path of a program in the machine's PATH.
func (m Machine) lookPath(name string) (string, error) {
	for _, dir := range filepath.SplitList(m.Getenv("PATH")) {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil && dir != "" {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}
