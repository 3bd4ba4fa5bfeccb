package trust

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// javaPassword is the default password of the trust store of Java runtimes.
const javaPassword = "changeit"

// java returns the steps that install or remove the CA in the trust store of the Java runtime.
func (m Machine) java(c Cert, remove bool) ([]Step, error) {
	keytool, store, err := m.keystore()
	if err != nil {
		return nil, err
	}
	alias := strings.ReplaceAll(strings.ToLower(c.Name()), " ", "-")
	run := Step{Run: []string{keytool, "-importcert", "-noprompt", "-keystore", store, "-storepass", javaPassword, "-alias", alias, "-file", c.File}}
	if remove {
		run = Step{Run: []string{keytool, "-delete", "-noprompt", "-keystore", store, "-storepass", javaPassword, "-alias", alias}, May: true}
	}
	f, err := os.OpenFile(store, os.O_RDWR, 0)
	switch {
	case errors.Is(err, os.ErrPermission):
		return []Step{run}, fmt.Errorf("cannot write %s: %w", store, ErrNotRoot)
	case err != nil:
		return nil, err
	}
	return []Step{run}, f.Close()
}

// keystore returns the path of the Java runtime's keytool program, and of its trust store.
func (m Machine) keystore() (keytool, store string, err error) {
	home := m.JavaHome
	if home == "" {
		if keytool, err = m.LookPath("keytool"); err != nil {
			return "", "", errors.New("cannot find keytool: PATH does not contain it, and JAVA_HOME is not set; install Java, or set JAVA_HOME")
		}
		real, err := filepath.EvalSymlinks(keytool)
		if err != nil {
			return "", "", err
		}
		home = filepath.Dir(filepath.Dir(real))
	} else {
		keytool = filepath.Join(home, "bin", "keytool")
		if m.OS == "windows" {
			keytool += ".exe"
		}
		if !exists(keytool) {
			return "", "", fmt.Errorf("JAVA_HOME is %q, but this folder contains no bin/keytool", home)
		}
	}
	for _, below := range []string{"lib/security/cacerts", "jre/lib/security/cacerts"} {
		if store = filepath.Join(home, filepath.FromSlash(below)); exists(store) {
			return keytool, store, nil
		}
	}
	return "", "", fmt.Errorf("cannot find lib/security/cacerts in %s", home)
}
