package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"time"

	"github.com/spf13/pflag"

	"unwire/captures/objectstore"
	"unwire/captures/store"
	"unwire/cmd/internal/term"
	"unwire/proto"
	"unwire/replay"
	"unwire/replay/credential"
	"unwire/replay/outbound"
)

// A Target holds the values of the flags that choose the server for requests, and the hosts that
// requests may be sent to.
type Target struct {
	// To is the URL of the server that gets the requests; "" means the server in the capture.
	To string
	// Live allows requests to hosts other than this machine (--live).
	Live bool
	// Allow lists the hosts to which requests may be sent if Live is set (--allow-host).
	Allow []string

	// UpstreamCA is a PEM file with CA certificates for verifying the server, in addition to the system's
	// (--upstream-ca).
	UpstreamCA string

	// Insecure disables the verification of the server's certificate.
	Insecure bool

	// Credentials names the source of the secrets to send: a file, env:NAME or keyring:SERVICE/ACCOUNT
	// (--credentials).
	Credentials string

	// OmitSecrets sends a request without those of its headers whose secrets are not available, instead of
	// failing.
	OmitSecrets bool
}

// CredentialsUsage returns the help text of --credentials.
func CredentialsUsage() string {
	return "source of the secrets, such as tokens, that the request must contain: FILE, env:NAME, keyring:SERVICE/ACCOUNT or the name of a profile; 'unwire credentials --help' explains these sources"
}

// Server returns the URL in To, nil if To is "", and the policy about allowed hosts. The policy does not
// have the CAs yet; Load adds them.
func (t *Target) Server() (to *url.URL, p outbound.Policy, err error) {
	p = outbound.Policy{Live: t.Live, AllowHosts: t.Allow, Insecure: t.Insecure}
	if t.Live && len(t.Allow) == 0 {
		return nil, p, Fail(ExitUsage, errors.New("--live requires --allow-host HOST, which names an allowed host"), "")
	}
	if t.To == "" {
		return nil, p, nil
	}
	to, err = url.Parse(t.To)
	if err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" {
		return nil, p, Usagef("--to must be a URL such as https://127.0.0.1:9443, not %q", t.To)
	}
	return to, p, nil
}

// Load reads the CA file and the credentials, and stores them in o.
func (t *Target) Load(o *replay.Options) (err error) {
	if o.Roots, err = UpstreamRoots(t.UpstreamCA); err != nil {
		return err
	}
	o.Credentials, err = credential.Resolver{Getenv: os.Getenv, Profile: proto.Profile()}.Load(t.Credentials)
	return err
}

// Refusal wraps an error about a target that is not allowed, so that the program exits with the status
// for refused requests.
func Refusal(err error) error {
	if errors.Is(err, outbound.ErrRefused) {
		return Fail(ExitUsage, err, "to send to another machine, use --live and --allow-host HOST")
	}
	return err
}

// Send executes a replay plan. The response is recorded in the capture file out; "" records nothing.
func (a *App) Send(ctx context.Context, plan *replay.Plan, out string) (result *replay.Result, err error) {
	var answers *store.Store
	if out != "" {
		if answers, err = store.Create(out, a.IndexedWhenClosed(store.Options{NoAdditions: true})); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, answers.Close()) }()
	}
	return plan.Send(ctx, answers)
}

// SayWaiting prints that the program waits because the server's retry-after header asks for it.
func (a *App) SayWaiting(wait time.Duration, answer string) {
	a.Say("unwire: the server answered %s; waiting %s, as its Retry-After asks", term.Clean(answer), wait.Round(time.Millisecond))
}

// OpenJournal opens a journal of sent requests for appending. If resume is false, the file must not
// exist yet.
func OpenJournal(path string, resume bool) (*os.File, error) {
	j, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, ForOwner)
	if err != nil {
		return nil, err
	}
	end, err := j.Seek(0, io.SeekEnd)
	if err == nil && end > 0 && !resume {
		err = Fail(ExitUsage, fmt.Errorf("the journal %s exists already, from an earlier run", path), "continue the earlier run with --resume, or name another file with --journal")
	}
	if err == nil {
		_, err = j.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// An ObjectStore holds the values of the flags for connections to object stores: s3://BUCKET/… and
// gs://BUCKET/….
type ObjectStore struct {
	// Endpoint is the URL of the S3 server.
	Endpoint string

	// CA is the path of the file with the CA certificate of the S3 server.
	CA string

	// Encryption is the server-side encryption that the S3 server applies.
	Encryption string

	// Live allows connections to object stores on other machines (--live).
	Live bool

	// Allow lists the hosts that Live allows (--allow-host).
	Allow []string
}

// AddTo adds the flags for object stores to a command. writes also adds the flag for server-side
// encryption of written objects.
func (o *ObjectStore) AddTo(flags *pflag.FlagSet, writes bool) {
	flags.StringVar(&o.Endpoint, "store-endpoint", "", "URL of the S3 service that stores s3://BUCKET (default: AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, else Amazon S3)")
	flags.StringVar(&o.CA, "store-ca", "", "PEM file with the certificates of additional CAs that unwire trusts when it connects to the object store")
	if writes {
		flags.StringVar(&o.Encryption, "store-encryption", "", "ask the object store to encrypt the stored files by this method: AES256, aws:kms or aws:kms:KEY")
	}
	flags.BoolVar(&o.Live, "live", false, "allow connections to object stores and servers on other machines; --allow-host must name each machine")
	flags.StringSliceVar(&o.Allow, "allow-host", nil, "with --live: a host to which unwire may connect, as HOST, HOST:PORT or *.DOMAIN")
}

// Open returns the object store that a URL or local path names, and the key of the object in it. It sends
// nothing.
func (o *ObjectStore) Open(name string) (objectstore.Store, string, error) {
	if o.Live && len(o.Allow) == 0 {
		return nil, "", Fail(ExitUsage, errors.New("--live requires --allow-host HOST, which names an allowed host"), "")
	}
	opts := objectstore.Options{Endpoint: o.Endpoint, Encryption: o.Encryption}
	endpoint, err := objectstore.Endpoint(name, opts)
	if err != nil {
		return nil, "", Usagef("--store-endpoint: %v", err)
	}
	if endpoint != nil {
		if err := o.allow(endpoint, &opts); err != nil {
			return nil, "", err
		}
	}
	s, key, err := objectstore.Open(name, opts)
	if err != nil {
		return nil, "", Usagef("%v", err)
	}
	return s, key, nil
}

// allow sets in opts the HTTP transport for an endpoint. It is an error if the endpoint is on another
// machine and the user has not allowed that.
func (o *ObjectStore) allow(endpoint *url.URL, opts *objectstore.Options) error {
	policy := outbound.Policy{Live: o.Live, AllowHosts: o.Allow}
	if err := outbound.CheckTarget(endpoint, policy.Live, policy.AllowHosts); err != nil {
		return Fail(ExitUsage, err, "to use an object store on another machine, use --live and --allow-host "+endpoint.Hostname())
	}
	var err error
	if policy.Roots, err = UpstreamRoots(o.CA); err != nil {
		return err
	}
	opts.Transport = outbound.New(endpoint.Scheme, "1.1", false, false, policy)
	return nil
}
