package trust

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// anchorFolders lists the folders in which Linux distributions look for additional CAs, with the
// command that then rebuilds the trust store.
var anchorFolders = []struct {
	folder, ext string
	update      []string
}{
	// Fedora, RHEL
	{"/etc/pki/ca-trust/source/anchors", ".pem", []string{"update-ca-trust", "extract"}},
	// Debian, Ubuntu, Alpine
	{"/usr/local/share/ca-certificates", ".crt", []string{"update-ca-certificates"}},
	// Arch
	{"/etc/ca-certificates/trust-source/anchors", ".crt", []string{"trust", "extract-compat"}},
	// SUSE
	{"/usr/share/pki/trust/anchors", ".pem", []string{"update-ca-certificates"}},
}

// system returns the steps that install or remove the CA in the trust store of the operating system. If
// they need administrator rights that are missing, it also returns ErrNotRoot.
func (m Machine) system(c Cert, remove bool) ([]Step, error) {
	var steps []Step
	var err error
	switch m.OS {
	case "darwin":
		args := []string{"security", "add-trusted-cert", "-d", "-r", "trustRoot", "-k", "/Library/Keychains/System.keychain", c.File}
		if remove {
			args = []string{"security", "remove-trusted-cert", "-d", c.File}
		}
		steps = []Step{{Run: args}}
	case "windows":
		// The user's store: it needs no administrator, and Windows asks by itself.
		args := []string{"certutil", "-user", "-addstore", "Root", c.File}
		if remove {
			args = []string{"certutil", "-user", "-delstore", "Root", fmt.Sprintf("%x", c.SerialNumber)}
		}
		return []Step{{Run: args}}, nil
	default:
		steps, err = m.anchors(c, remove)
	}
	if err == nil && !m.Admin && len(steps) > 0 {
		err = ErrNotRoot
	}
	return steps, err
}

// anchors returns the steps for Linux: write or remove the certificate in the distribution's folder, and
// rebuild the trust store.
func (m Machine) anchors(c Cert, remove bool) ([]Step, error) {
	for _, a := range anchorFolders {
		folder := filepath.Join(m.Root, a.folder)
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			continue
		}
		update, err := m.LookPath(a.update[0])
		if err != nil {
			continue // the folder of another tool
		}
		file := filepath.Join(folder, c.fileName(a.ext))
		run := Step{Run: append([]string{update}, a.update[1:]...)}
		if remove {
			if _, err := os.Lstat(file); errors.Is(err, os.ErrNotExist) {
				return nil, nil
			}
			return []Step{{Remove: file}, run}, nil
		}
		return []Step{{Write: file, Data: c.PEM()}, run}, nil
	}
	return nil, errors.New("cannot find the folder for additional CAs, or the command that rebuilds the store: install the package ca-certificates")
}
