package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"

	"unwire/captures/store"
	"unwire/proto"
	"unwire/replay"
	"unwire/replay/credential"
	"unwire/replay/outbound"
)

// A Target is what the flags say of the server that requests go to, and of what they
// may carry.
type Target struct {
	To          string // a URL; "" for where it was captured
	Live        bool
	Allow       []string // hosts that Live may send to
	UpstreamCA  string
	Insecure    bool
	Credentials string
	OmitSecrets bool
}

// CredentialsUsage is the help of --credentials.
func CredentialsUsage() string {
	return "where secrets are: a file (NAME: value a line, mode 0600), env:NAME, keyring:SERVICE/ACCOUNT, or " + proto.Profile().Name
}

// Server reads the URL, which is nil if there is none, and the policy, but for the CAs.
func (t *Target) Server() (to *url.URL, p outbound.Policy, err error) {
	p = outbound.Policy{Live: t.Live, AllowHosts: t.Allow, Insecure: t.Insecure}
	if t.Live && len(t.Allow) == 0 {
		return nil, p, Fail(ExitUsage, errors.New("--live needs --allow-host HOST: which host may be sent to"), "")
	}
	if t.To == "" {
		return nil, p, nil
	}
	to, err = url.Parse(t.To)
	if err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" {
		return nil, p, Usagef("--to wants a URL such as https://127.0.0.1:9443, not %q", t.To)
	}
	return to, p, nil
}

// Load reads the files of CAs and credentials into options.
func (t *Target) Load(o *replay.Options) (err error) {
	if o.Roots, err = UpstreamRoots(t.UpstreamCA); err != nil {
		return err
	}
	o.Credentials, err = credential.Resolver{Getenv: os.Getenv, Profile: proto.Profile()}.Load(t.Credentials)
	return err
}

// Refusal gives a target that may not be sent to its exit status.
func Refusal(err error) error {
	if errors.Is(err, outbound.ErrRefused) {
		return Fail(ExitUsage, err, "another host needs --live and --allow-host")
	}
	return err
}

// Send carries out a plan; the answer goes to the capture out, if one is named.
func (a *App) Send(ctx context.Context, plan *replay.Plan, out string) (result *replay.Result, err error) {
	var answers *store.Store
	if out != "" {
		if answers, err = store.Create(out, a.IndexedWhenClosed(store.Options{})); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, answers.Close()) }()
	}
	return plan.Send(ctx, answers)
}

// OpenJournal opens a journal to append to it.
func OpenJournal(path string, resume bool) (*os.File, error) {
	j, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, ForOwner)
	if err != nil {
		return nil, err
	}
	end, err := j.Seek(0, io.SeekEnd)
	if err == nil && end > 0 && !resume {
		err = Fail(ExitUsage, fmt.Errorf("the journal %s is there already", path), "--resume goes on with it; --journal names another")
	}
	if err == nil {
		_, err = j.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}
