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

// A system is how to access the places on this machine where a client may have stored its secrets.
type system struct {
	// os is the operating system, as in runtime.GOOS.
	os string

	// getenv returns the value of an environment variable.
	getenv func(string) string

	// keyring reads an item of the key store.
	keyring func(service, account string) (string, error)
}

// errMissing reports that a secret does not exist in the key store or file where it was looked up.
var errMissing = errors.New("the secret was not found")

// maxTokenFile limits how many bytes of a client's file are read.
const maxTokenFile = 1 << 20

// findStored reads a secret that a client has stored: from the Keychain on macOS, from the client's
// file on other systems. tokens and place describe both; what names the secret in error messages. from
// is the name of the key store item or the file.
//
// Errors: errMissing; errors of the key store or the file system.
func findStored(tokens *profile.Tokens, place profile.TokenPlace, what string, at system) (secret, from string, err error) {
	if at.os == "darwin" {
		from = "keyring:" + place.Service + "/" + tokens.Account
		if secret, err = at.keyring(place.Service, tokens.Account); err != nil {
			return "", from, err
		}
		return secret, from, nil
	}

	// Other systems keep the tokens in a JSON file.
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

	// Every member is checked, so that a damaged file is reported whichever token is asked for.
	for _, p := range []profile.TokenPlace{tokens.AccessToken, tokens.RefreshToken, tokens.APIKey} {
		value, merr := stringMember(members, p.Member)
		err = errors.Join(err, merr)
		if p == place {
			secret = value
		}
	}
	// The error's text may quote the file, which has secrets.
	if err != nil {
		return "", from, fmt.Errorf("%s is not a JSON object of strings", from)
	}
	if secret == "" {
		return "", from, fmt.Errorf("%s has no %s: %w", from, what, errMissing)
	}
	return secret, from, nil
}

// stringMember returns the string in a member of a JSON object, whose name is compared without regard
// to case; "" if there is none.
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

// tokenFile returns the path of the file with the client's tokens.
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
