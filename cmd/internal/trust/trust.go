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

// A Store is a place where programs look for the CAs to trust.
type Store string

const (
	System Store = "system" // the operating system's: curl, Go, .NET, most others
	NSS    Store = "nss"    // Firefox's and, on Linux, Chrome's databases
	Java   Store = "java"   // the Java runtime's
)

// commandTimeout is what one command gets.
const commandTimeout = 2 * time.Minute

// ErrNotRoot is wrapped where only the administrator may do what is planned.
var ErrNotRoot = errors.New("needs administrator rights")

// A Machine is where the stores are. Root is put in front of the system's
// folders; tests set it.
type Machine struct {
	OS       string // as runtime.GOOS has it
	Root     string
	Home     string
	JavaHome string // "" : where keytool in the PATH leads
	Admin    bool   // may write the system's folders
	LookPath func(string) (string, error)
}

// A Cert is the CA to be installed.
type Cert struct {
	*x509.Certificate
	File string // where it is in PEM
}

// Name is the one under which stores have it: it tells machines apart.
func (c Cert) Name() string { return c.Subject.CommonName }

// fileName is the name of its file in a folder of CAs.
func (c Cert) fileName(ext string) string {
	return strings.ReplaceAll(strings.ToLower(c.Name()), " ", "-") + ext
}

// A Step is one change: a file to be written or removed, or a command to be run.
type Step struct {
	Write  string
	Data   []byte
	Remove string
	Run    []string
	May    bool // the command may fail: what it removes may not be there
}

// String is the step as a line for people.
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

// Plan says what installing, or with remove removing, a CA takes.
//
// Errors: where the store is not on this machine, or a tool for it is missing.
// Where rights are missing the steps are returned with ErrNotRoot.
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
		err = fmt.Errorf("no store %q: there are system, nss and java", store)
	}
	if err != nil {
		err = fmt.Errorf("trust: %s store: %w", store, err)
	}
	return steps, err
}

// Do makes the changes, in order, and stops at the first that fails.
func Do(ctx context.Context, steps []Step) error {
	for _, s := range steps {
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("trust: %w", err)
		}
	}
	return nil
}

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

// PEM is the certificate in PEM.
func (c Cert) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}
