package mcp

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/query"
)

// maxListed is the largest number of captures that are offered.
const maxListed = 1000

// A shelf finds the captures that an MCP client may read.
type shelf struct {
	// names are the paths of captures and folders of captures, as the user wrote them.
	names []string
}

// files returns the paths of the captures, each once. Folders are read again each time.
func (s *shelf) files() []string {
	var list []string
	add := func(path string) {
		if !slices.Contains(list, path) && len(list) < maxListed {
			list = append(list, path)
		}
	}
	for _, name := range s.names {
		if info, err := os.Stat(name); err != nil || !info.IsDir() {
			add(name)
			continue
		}
		found, err := app.CapturesIn(name)
		if err != nil {
			continue // a capture in it is reported as missing
		}
		for _, path := range found {
			add(path)
		}
	}
	return list
}

// file returns the path of the capture that a client names by its path, or by its base name if that is
// unique. If name is "", there must be only one capture. Its errors list the captures.
func (s *shelf) file(name string) (string, error) {
	files := s.files()
	switch {
	case len(files) == 0:
		return "", app.Fail(app.ExitUsage, errors.New("no capture has been recorded yet"), "record one with 'unwire capture -o F.uwc -- COMMAND', and name it for 'unwire mcp'")
	case name == "" && len(files) == 1:
		return files[0], nil
	case name == "":
		return "", app.Fail(app.ExitUsage, errors.New("the address does not name a capture, but several are open"), "name one of "+nameList(files))
	case slices.Contains(files, name):
		return name, nil
	}
	var found []string
	for _, f := range files {
		if filepath.Base(f) == name || samePath(f, name) {
			found = append(found, f)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", app.Fail(app.ExitUsage, fmt.Errorf("%q is not one of the open captures", name), "use "+nameList(files)+"; the tools can read only the captures that 'unwire mcp' was started with")
	}
	return "", app.Fail(app.ExitUsage, fmt.Errorf("several open captures have the name %q", name), "use the path: "+nameList(found))
}

// samePath reports whether two relative or absolute paths are the same.
func samePath(a, b string) bool {
	first, err1 := filepath.Abs(a)
	second, err2 := filepath.Abs(b)
	return err1 == nil && err2 == nil && first == second
}

// nameList joins the names of captures for an error message.
func nameList(names []string) string {
	const most = 10
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// bareAddress matches an address without a capture, such as 7, #7 or 7/up/0.
var bareAddress = regexp.MustCompile(`^#?([0-9]{1,18}(?:/.*)?)$`)

// maxAddress is the largest size of an address in bytes.
const maxAddress = 4096

// place parses the address of a capture, an exchange, a frame or a field that the client may read. path
// is the path of the field, or "".
func (s *shelf) place(text string) (at query.Address, path string, err error) {
	if len(text) > maxAddress {
		return at, "", app.Usagef("the address has %d bytes; the limit is %d", len(text), maxAddress)
	}
	if m := bareAddress.FindStringSubmatch(text); m != nil {
		file, err := s.file("")
		if err != nil {
			return at, "", err
		}
		text = file + "#" + m[1]
	}
	at, path = query.ParsePlace(text)
	if at.Exchange == 0 && strings.Contains(at.File, "#") {
		return at, "", app.Fail(app.ExitUsage, fmt.Errorf("%q is not an address in a capture", text), addressHint)
	}
	at.File, err = s.file(at.File)
	return at, path, err
}

// addressHint is the hint for errors about addresses.
const addressHint = "an address is F.uwc#7 for an exchange, F.uwc#7/up/0 for a frame; list gives the numbers of exchanges, and frames count from 0"

// address parses the address of a capture, exchange or frame, without a field.
func (s *shelf) address(text string) (query.Address, error) {
	at, path, err := s.place(text)
	if err == nil && path != "" {
		err = app.Fail(app.ExitUsage, fmt.Errorf("%q is the address of a field, but a frame is needed", text), "give the address of the frame as address, and the field as path")
	}
	return at, err
}

// exchange parses an address that must name one exchange or a frame of it.
func (s *shelf) exchange(text string) (query.Address, error) {
	at, err := s.address(text)
	if err == nil && at.Exchange == 0 {
		err = app.Fail(app.ExitUsage, fmt.Errorf("the address %q does not name an exchange", text), addressHint)
	}
	return at, err
}

// addresses parses the addresses that a client sent; an empty list means all captures.
func (s *shelf) addresses(texts []string) ([]query.Address, error) {
	const most = 1000
	if len(texts) > most {
		return nil, app.Usagef("the argument captures has %d addresses; the limit is %d", len(texts), most)
	}
	var list []query.Address
	if len(texts) == 0 {
		for _, f := range s.files() {
			list = append(list, query.Address{File: f, Frame: -1})
		}
		if len(list) == 0 {
			_, err := s.file("")
			return nil, err
		}
		return list, nil
	}
	for _, text := range texts {
		at, err := s.address(text)
		if err != nil {
			return nil, err
		}
		list = append(list, at)
	}
	return list, nil
}
