package credential

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"unwire/captures/profile"
)

// A system is where a client may have stored its secrets.
type system struct {
	// os is the operating system, as runtime.GOOS has it.
	os      string
	getenv  func(string) string
	keyring func(service, account string) (string, error)
}

// errMissing is wrapped where a place has no such secret.
var errMissing = errors.New("not there")

// maxTokenFile bounds the client's file, in bytes.
const maxTokenFile = 1 << 20

// findStored reads one of a client's own secrets, which what names: from the
// Keychain on macOS, and elsewhere from the file that the client writes. from
// says where, without the secret.
//
// Errors: errMissing; what the key store or the file system says.
func findStored(tokens *profile.Tokens, place profile.Place, what string, at system) (secret, from string, err error) {
	if at.os == "darwin" {
		from = "keyring:" + place.Service + "/" + tokens.Account
		if secret, err = at.keyring(place.Service, tokens.Account); err != nil {
			return "", from, err
		}
		return secret, from, nil
	}

	from = tokenFile(tokens, at)
	f, err := os.Open(from)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return "", from, fmt.Errorf("%s: %w", from, errMissing)
		}
		return "", from, err
	}
	defer f.Close()

	data, err := io.ReadAll(io.LimitReader(f, maxTokenFile))
	var members map[string]json.RawMessage
	if err == nil {
		err = json.Unmarshal(data, &members)
	}
	for _, p := range []profile.Place{tokens.AccessToken, tokens.RefreshToken, tokens.APIKey} {
		value, merr := stringMember(members, p.Member)
		err = errors.Join(err, merr)
		if p == place {
			secret = value
		}
	}
	// The error's text may quote the file.
	if err != nil {
		return "", from, fmt.Errorf("%s is no JSON object of strings", from)
	}
	if secret == "" {
		return "", from, fmt.Errorf("%s has no %s: %w", from, what, errMissing)
	}
	return secret, from, nil
}

// stringMember returns the string that a member of an object is, which may be
// spelt in another case; "" if it is not there.
func stringMember(members map[string]json.RawMessage, name string) (value string, err error) {
	raw, ok := members[name]
	for other := range members {
		if !ok && strings.EqualFold(other, name) {
			raw, ok = members[other], true
		}
	}
	if ok {
		err = json.Unmarshal(raw, &value)
	}
	return value, err
}

// tokenFile is the file with the client's tokens.
func tokenFile(tokens *profile.Tokens, at system) string {
	if at.os == "windows" {
		return filepath.Join(at.getenv("APPDATA"), tokens.WindowsFolder, tokens.File)
	}
	config := at.getenv("XDG_CONFIG_HOME")
	if config == "" {
		config = filepath.Join(at.getenv("HOME"), ".config")
	}
	return filepath.Join(config, tokens.Folder, tokens.File)
}
