package replay

import (
	"errors"
	"strings"
	"testing"

	"unwire/proto"
	"unwire/replay/credential"
)

// stored is a resolver of a client that has stored secrets.
func stored(secrets map[string]string) credential.Resolver {
	return credential.Resolver{OS: "darwin", Profile: proto.Profile(), Keyring: func(service, account string) (string, error) {
		if s := secrets[service+"/"+account]; s != "" {
			return s, nil
		}
		return "", errors.New("not there")
	}}
}

func TestProfileGoesToItsHosts(t *testing.T) {
	c, err := stored(map[string]string{"cursor-access-token/cursor-user": "sesame"}).Load("cursor")
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]bool{"api2.cursor.sh": true, "127.0.0.1": true, "localhost": true, "api.example": false} {
		if _, _, ok := c.ForHost(host).Token(); ok != want {
			t.Errorf("%s: %v", host, ok)
		}
	}
	for _, ref := range []string{"keyring:cursor-access-token/cursor-user", "keyring:nothing/here", "keyring:x", "env:NOT_SET", "cursor"} {
		secrets := map[string]string{"cursor-access-token/cursor-user": "sesame"}
		if ref == "cursor" {
			secrets = nil
		}
		_, err := stored(secrets).Load(ref)
		if found := strings.HasSuffix(ref, "/cursor-user"); found != (err == nil) || !found && !errors.Is(err, credential.ErrCredentials) {
			t.Errorf("%s: %v", ref, err)
		}
	}
}
