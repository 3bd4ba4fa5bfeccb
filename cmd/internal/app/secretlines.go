package app

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// ReadSecretLines reads a file that has one secret on each line; empty lines are skipped. A secret
// shorter than least bytes is an error. No error text contains a secret.
func ReadSecretLines(path string, least int) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("%s contains secrets, but other users can read it (mode %04o): run 'chmod 600' on it", path, mode)
	}
	var secrets []string
	sc := bufio.NewScanner(f)
	for n := 1; sc.Scan(); n++ {
		line := strings.TrimSpace(sc.Text())
		if line == "" {
			continue
		}
		if len(line) < least {
			return nil, fmt.Errorf("%s: line %d has fewer than %d bytes, which is too short for a secret", path, n, least)
		}
		secrets = append(secrets, line)
	}
	return secrets, sc.Err()
}
