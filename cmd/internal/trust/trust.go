// Package trust puts the local CA into the trust stores of this machine, and
// takes it out again.
//
// What is to be done is planned first, as files and commands that can be shown
// to the user, and done only then.
//
// A Store is the system's, Java's or NSS's, which browsers use. The commands ca
// install and ca remove call this package.
package trust

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A Store is a kind of trust store: a place where programs look for trusted CAs.
type Store string

const (
	System Store = "system" // the operating system's: curl, Go, .NET, most others
	NSS    Store = "nss"    // Firefox's and, on Linux, Chrome's databases
	Java   Store = "java"   // the Java runtime's
)

// commandTimeout limits the time of each command that changes a trust store.
const commandTimeout = 2 * time.Minute

// ErrNotRoot is wrapped by errors that a change needs administrator rights.
var ErrNotRoot = errors.New("this step needs administrator rights")

// A Machine describes where this machine's trust stores are. Tests replace its parts.
type Machine struct {
	// OS is the operating system, a value of runtime.GOOS.
	OS string

	// Root is the root of the file system, prefixed to the paths of system folders; "" for /.
	Root string

	// Home is the user's home folder.
	Home string

	// JavaHome is the folder of the Java runtime; "" finds it by keytool in the PATH.
	JavaHome string

	// Admin means that the process may write system folders.
	Admin bool
	// LookPath returns the path of a program; see exec.LookPath.
	LookPath func(string) (string, error)
}

// A Cert is the CA certificate to be installed.
type Cert struct {
	// Certificate is the parsed certificate.
	*x509.Certificate

	// File is the path of the certificate in PEM format.
	File string
}

// Name returns the name of the certificate in trust stores. It contains an id of this machine's CA.
func (c Cert) Name() string { return c.Subject.CommonName }

// fileName returns the file name of the certificate in a folder of CAs.
func (c Cert) fileName(ext string) string {
	return strings.ReplaceAll(strings.ToLower(c.Name()), " ", "-") + ext
}

// A Step is one change to a trust store. It either writes a file, removes a file, or runs a command.
type Step struct {
	// Write is the path of the file to write; "" for none.
	Write string

	// Data is the content of that file.
	Data []byte

	// Remove is the path of the file to remove; "" for none.
	Remove string

	// Run is the command to run.
	Run []string

	// May means that the command may fail, since the certificate that it removes may not be installed.
	May bool
}

// String describes the step in one line for users.
func (s Step) String() string {
	switch {
	case s.Write != "":
		return "write " + s.Write
	case s.Remove != "":
		return "remove " + s.Remove
	}
	quoted := make([]string, len(s.Run))
	for i, arg := range s.Run {
		if quoted[i] = arg; arg == "" || strings.ContainsAny(arg, " \t'\"$\\*?;&|<>()") {
			quoted[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return "run " + strings.Join(quoted, " ")
}

// Plan returns the steps for installing a CA in a trust store or, if remove is set, for removing it.
//
// Errors: if the trust store does not exist on this machine, or a tool for it is missing. If root
// rights are missing, Plan returns the steps together with ErrNotRoot.
func (m Machine) Plan(store Store, c Cert, remove bool) ([]Step, error) {
	var steps []Step
	var err error
	switch store {
	case System:
		steps, err = m.system(c, remove)
	case NSS:
		steps, err = m.nss(c, remove)
	case Java:
		steps, err = m.java(c, remove)
	default:
		err = fmt.Errorf("unknown trust store %q: use system, nss or java", store)
	}
	if err != nil {
		err = fmt.Errorf("trust store %s: %w", store, err)
	}
	return steps, err
}

// Do executes the steps in order, and stops at the first error.
func Do(ctx context.Context, steps []Step) error {
	for _, s := range steps {
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("trust: %w", err)
		}
	}
	return nil
}

// do executes the step.
func (s Step) do(ctx context.Context) error {
	switch {
	case s.Write != "":
		return os.WriteFile(s.Write, s.Data, 0o644)
	case s.Remove != "":
		if err := os.Remove(s.Remove); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, s.Run[0], s.Run[1:]...).CombinedOutput()
	if err != nil && !s.May {
		return fmt.Errorf("%s: %w: %s", filepath.Base(s.Run[0]), err, bytes.TrimSpace(out[:min(len(out), 500)]))
	}
	return nil
}

// PEM returns the certificate in PEM format.
func (c Cert) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}
