package trust

import (
	"errors"
	"os"
	"path/filepath"
)

// nssFolders are the folders below the home folder that may have NSS certificate databases; * matches any
// name.
var nssFolders = []string{
	".pki/nssdb", // Chrome and Chromium
	"snap/chromium/current/.pki/nssdb",
	".mozilla/firefox/*",
	".config/mozilla/firefox/*",
	"snap/firefox/common/.mozilla/firefox/*",
	"Library/Application Support/Firefox/Profiles/*",
}

// nss returns the steps that install or remove the CA in the certificate databases of Firefox and Chrome.
func (m Machine) nss(c Cert, remove bool) ([]Step, error) {
	if m.OS == "windows" {
		return nil, errors.New("unwire cannot change this store on Windows: import the certificate in Firefox's settings, or let Firefox use the system's store")
	}
	var steps []Step
	var certutil string
	for _, db := range m.nssDatabases() {
		if certutil == "" {
			var err error
			if certutil, err = m.LookPath("certutil"); err != nil {
				return nil, errors.New("cannot find certutil: install the package libnss3-tools (on other systems nss-tools, or nss with Homebrew)")
			}
		}
		if remove {
			steps = append(steps, Step{Run: []string{certutil, "-D", "-d", db, "-n", c.Name()}, May: true})
		} else {
			steps = append(steps, Step{Run: []string{certutil, "-A", "-d", db, "-t", "C,,", "-n", c.Name(), "-i", c.File}})
		}
	}
	if len(steps) == 0 {
		return nil, errors.New("cannot find a certificate database of Firefox or Chrome in the home folder: start the browser once to create it")
	}
	return steps, nil
}

// nssDatabases returns the existing NSS databases in the notation of certutil, such as sql:FOLDER.
func (m Machine) nssDatabases() []string {
	var found []string
	for _, pattern := range nssFolders {
		folders, err := filepath.Glob(filepath.Join(m.Home, filepath.FromSlash(pattern)))
		if err != nil {
			continue // a home folder with a bracket in its name
		}
		for _, folder := range folders {
			if exists(filepath.Join(folder, "cert9.db")) {
				found = append(found, "sql:"+folder)
			} else if exists(filepath.Join(folder, "cert8.db")) {
				found = append(found, "dbm:"+folder)
			}
		}
	}
	return found
}

// exists reports whether a file or folder exists.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
