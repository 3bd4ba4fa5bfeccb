package launch

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// redirectPath is the control endpoint of the proxy that returns the address for redirected connections.
	redirectPath    = "/.well-known/unwire/redirect"
	redirectTimeout = 5 * time.Second
	maxAnswer       = 4 << 10

	// hookLoadedFile and noTokenFile are the names of files that the hook creates when Node has loaded it, and
	// when it has found no token.
	hookLoadedFile = "loaded"
	noTokenFile    = "no-token"

	// tokenVariable is the environment variable with the token for the control endpoints, and tokenHeader the
	// header in which the hook sends it.
	tokenVariable = "UNWIRE_HOOK_TOKEN"
	tokenHeader   = "Unwire-Token"
)

// hookSource is the JavaScript source of the hook that Node programs load.
//
//go:embed hook.cjs
var hookSource []byte

// proxyVariables are the environment variables that name the proxy, in upper and lower case: some programs,
// such as curl, read only one of the two.
var proxyVariables = []string{"HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy"}

// proxyEnvironment returns the environment of a command that uses the proxy. It creates files for it in dir.
func proxyEnvironment(ctx context.Context, o Options, dir string) ([]string, error) {
	proxy, err := url.Parse(o.ProxyURL)
	if err != nil || proxy.Scheme != "http" || proxy.Port() == "" {
		return nil, fmt.Errorf("the proxy URL must be http://host:port, not %q", o.ProxyURL)
	}
	env := newEnv(o.Env)
	for _, name := range proxyVariables {
		env.set(name, "http://"+proxy.Host)
	}
	env.set("NO_PROXY", "")
	env.set("no_proxy", "")
	env.proxyJava(proxy)
	if err := env.trustCA(o.CAFile, dir); err != nil {
		return nil, err
	}
	if err := env.loadNodeHook(ctx, proxy, o.ControlToken, dir); err != nil {
		return nil, err
	}
	return env.list, nil
}

// directEnvironment returns the environment of a command whose connections the kernel redirects to unwire. It
// contains no proxy variables.
func directEnvironment(o Options, dir string) ([]string, error) {
	env := newEnv(o.Env)
	for _, name := range proxyVariables {
		env.unset(name)
	}
	if err := env.trustCA(o.CAFile, dir); err != nil {
		return nil, err
	}
	return env.list, nil
}

// An env is an environment as a list of NAME=value, each name only once.
type env struct {
	// list are the variables as NAME=value.
	list []string
}

// newEnv returns an env with the last value of each name in list.
func newEnv(list []string) *env {
	if list == nil {
		list = os.Environ()
	}
	return &env{slices.Clone(list)}
}

// get returns the value of a variable, or "".
func (e *env) get(name string) string {
	value := ""
	for _, v := range e.list {
		if rest, ok := strings.CutPrefix(v, name+"="); ok {
			value = rest
		}
	}
	return value
}

// set sets a variable.
func (e *env) set(name, value string) {
	e.unset(name)
	e.list = append(e.list, name+"="+value)
}

// unset removes a variable.
func (e *env) unset(name string) {
	e.list = slices.DeleteFunc(e.list, func(v string) bool { return strings.HasPrefix(v, name+"=") })
}

// loadNodeHook sets NODE_OPTIONS so that Node programs load a hook that redirects their connections to the
// proxy, because Node's http2.connect ignores proxy variables. The token for the proxy's control endpoints is
// passed only in the environment: other users can read arguments, and files might remain.
//
// Source: mitm/README.md#node-hook
func (e *env) loadNodeHook(ctx context.Context, proxy *url.URL, token, dir string) error {
	redirect, err := redirectAddr(ctx, proxy, token)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "hook.cjs")
	if err := os.WriteFile(path, hookSource, 0o600); err != nil {
		return err
	}
	proxyPort, err := strconv.Atoi(proxy.Port())
	if err != nil {
		return err
	}
	config, err := json.Marshal([]any{proxy.Hostname(), proxyPort, redirect.IP.String(), redirect.Port})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "hook.json"), config, 0o600); err != nil {
		return err
	}
	e.set(tokenVariable, token)
	e.set("NODE_OPTIONS", strings.TrimSpace("--require "+quoteNodeOption(path)+" "+e.get("NODE_OPTIONS")))
	return nil
}

// quoteNodeOption quotes a word for the variable NODE_OPTIONS.
func quoteNodeOption(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// redirectAddr asks the proxy for the address of its listener for redirected connections. token is the secret
// for its control endpoints.
func redirectAddr(ctx context.Context, proxy *url.URL, token string) (*net.TCPAddr, error) {
	ctx, cancel := context.WithTimeout(ctx, redirectTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+proxy.Host+redirectPath, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set(tokenHeader, token)
	// The transport uses no proxy either.
	tr := &http.Transport{DisableKeepAlives: true}
	res, err := tr.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("the proxy %s does not answer: %w", proxy.Host, err)
	}
	defer res.Body.Close()
	var answer struct {
		Addr string `json:"addr"`
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the proxy %s is not a proxy of unwire: it answered with status %d", proxy.Host, res.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(&answer); err != nil {
		return nil, fmt.Errorf("the proxy %s is not a proxy of unwire: %w", proxy.Host, err)
	}
	return net.ResolveTCPAddr("tcp", answer.Addr)
}
