// Package browser prepares Chromium, or a browser based on it, for recording: it creates a profile that trusts
// the proxy's CA and uses the proxy, and disables the browser's own traffic. The command capture uses it.
//
//	b, err := browser.Prepare(ctx, browser.Options{URL: url, ProxyAddr: addr, CAFile: file, SPKI: hash})
//	...
//	defer b.Close()
//	cmd := exec.Command(b.Argv[0], b.Argv[1:]...)
//	cmd.Env = b.Env
//
// On Linux with certutil, the CA is added to the certificate database of the profile, and the browser verifies
// certificates as usual. Elsewhere, the browser gets the hash of the CA's key and accepts any chain with that
// key, which is less strict.
//
// Limits: browsers installed as a snap or a Flatpak may not be able to use the profile's folder.
package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

const (
	// removeTime is how long Close tries to delete the browser profile, with a pause of removePause between
	// attempts, because processes of the browser may still write to it.
	removeTime  = 2 * time.Second
	removePause = 50 * time.Millisecond
)

// nowhere is a host name that never resolves (RFC 6761).
const nowhere = "browser.unwire.invalid"

// programs are the names and paths of browsers, in the order in which find tries them.
var programs = []string{
	"chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome", "microsoft-edge-stable", "microsoft-edge", "brave-browser",
	"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
	"/Applications/Chromium.app/Contents/MacOS/Chromium",
	`C:\Program Files\Google\Chrome\Application\chrome.exe`,
	`C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe`,
}

// quiet are the flags that disable the browser's own traffic and its questions to the user.
//
// Source: chromium, chrome/common/chrome_switches.cc and others
var quiet = []string{
	"--no-first-run", "--no-default-browser-check", "--no-service-autorun", "--no-pings",
	"--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--disable-sync",
	"--disable-client-side-phishing-detection", "--disable-domain-reliability", "--disable-breakpad",
	"--disable-component-extensions-with-background-pages", "--disable-search-engine-choice-screen",
	"--disable-field-trial-config", "--metrics-recording-only", "--safebrowsing-disable-auto-update",
	"--password-store=basic", "--use-mock-keychain", "--simulate-outdated-no-au=Tue, 31 Dec 2099 23:59:59 GMT",
	"--disable-features=" + strings.Join([]string{
		"AutofillServerCommunication", "CertificateTransparencyComponentUpdater", "DialMediaRouteProvider", "MediaRouter",
		"InterestFeedContentSuggestions", "NetworkTimeServiceQuerying", "OptimizationGuideModelDownloading", "OptimizationHints",
		"OptimizationHintsFetching", "Translate", "DnsOverHttps", "NetworkPrediction", "PreloadTopChromeWebUI",
	}, ","),
}

// Options are the options for preparing a browser.
type Options struct {
	// URL is the web page to open.
	URL string

	// ProxyAddr is the host and port of the recording proxy.
	ProxyAddr string

	// CAFile is the path of the CA's certificate in PEM.
	CAFile string

	// SPKI is the SHA-256 hash of the CA's public key (RFC 7469) in base64, by which the browser trusts the CA.
	SPKI string

	// Args are additional command-line flags for the browser.
	Args []string
}

// A Browser is a command line and environment for starting a web browser once, with a temporary profile.
type Browser struct {
	// Argv is the command line of the browser, and Env its environment.
	Argv, Env []string

	// profile is the path of the temporary browser profile.
	profile string
}

// errMissing means that no browser was found; its text suggests remedies.
var errMissing = errors.New("no Chromium or Chrome was found: install one ('apt install chromium', 'brew install --cask chromium'), or start a browser with --proxy-server=http://ADDR, the address of 'unwire capture --listen ADDR'")

// find returns the path of an installed browser.
//
// Errors: errMissing.
func find() (string, error) {
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errMissing
}

// Prepare finds a browser and creates a temporary profile for it, which Close deletes. It does not start the
// browser.
func Prepare(ctx context.Context, o Options) (*Browser, error) {
	path, err := find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "unwire-browser-") // mode 0700
	if err != nil {
		return nil, fmt.Errorf("the browser's profile cannot be prepared: %w", err)
	}
	b := &Browser{profile: dir, Env: environment(dir)}
	b.Argv = slices.Concat([]string{
		path,
		"--user-data-dir=" + filepath.Join(dir, "profile"),
		"--proxy-server=http://" + o.ProxyAddr,
		// Requests to this machine use the proxy too. Requests of the browser that cannot be disabled are sent
		// to a host that does not exist.
		"--proxy-bypass-list=<-loopback>;" + nowhere,
		"--host-resolver-rules=MAP " + nowhere + " ~NOTFOUND",
		"--gaia-url=https://" + nowhere,
		"--component-updater=url-source=https://" + nowhere,
		"--apps-gallery-update-url=https://" + nowhere,
		"--disable-quic",
		"--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
	}, quiet)
	// The sandbox refuses to run as root.
	if os.Geteuid() == 0 {
		b.Argv = append(b.Argv, "--no-sandbox")
	}
	if err := writePreferences(filepath.Join(dir, "profile", "Default")); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	switch trusted, err := trustByDatabase(ctx, dir, o.CAFile); {
	case err != nil:
		return nil, errors.Join(err, b.Close())
	case !trusted:
		b.Argv = append(b.Argv, "--ignore-certificate-errors-spki-list="+o.SPKI)
	}
	b.Argv = append(append(b.Argv, o.Args...), o.URL)
	return b, nil
}

// preferences are the settings of the temporary profile: no sign-in, no prefetching and no search suggestions.
const preferences = `{
	"signin": {"allowed": false, "allowed_on_next_startup": false},
	"net": {"network_prediction_options": 2},
	"search": {"suggest_enabled": false},
	"safebrowsing": {"enabled": false},
	"alternate_error_pages": {"enabled": false}
}`

// writePreferences writes preferences to the profile in a folder.
func writePreferences(folder string) error {
	err := os.MkdirAll(folder, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "Preferences"), []byte(preferences), 0o600)
	}
	if err != nil {
		return fmt.Errorf("the browser's profile cannot be prepared: %w", err)
	}
	return nil
}

// environment returns the environment of this process with dir as its home folder, which contains the browser's
// certificate database.
func environment(dir string) []string {
	var env []string
	home, hasAuthority := os.Getenv("HOME"), false
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "SSLKEYLOGFILE":
			continue
		case "XAUTHORITY":
			hasAuthority = true
		}
		env = append(env, v)
	}
	if runtime.GOOS != "linux" {
		return os.Environ()
	}
	if !hasAuthority && home != "" {
		env = append(env, "XAUTHORITY="+filepath.Join(home, ".Xauthority"))
	}
	return append(env, "HOME="+dir)
}

// trustByDatabase adds the CA in caFile to the NSS certificate database of a home folder. It returns false if
// browsers on this system use no such database, or if the tool certutil is missing.
func trustByDatabase(ctx context.Context, home, caFile string) (bool, error) {
	certutil, err := exec.LookPath("certutil")
	if runtime.GOOS != "linux" || err != nil {
		return false, nil
	}
	folder := filepath.Join(home, ".pki", "nssdb")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return false, fmt.Errorf("the browser cannot be made to trust the CA: %w", err)
	}
	for _, args := range [][]string{
		{"-N", "--empty-password"},
		{"-A", "-n", "unwire", "-t", "C,,", "-i", caFile},
	} {
		args = append([]string{"-d", "sql:" + folder}, args...)
		if out, err := exec.CommandContext(ctx, certutil, args...).CombinedOutput(); err != nil {
			return false, fmt.Errorf("the browser cannot be made to trust the CA: certutil: %w: %.200s", err, strings.TrimSpace(string(out)))
		}
	}
	return true, nil
}

// Close deletes the temporary browser profile.
func (b *Browser) Close() error {
	end := time.Now().Add(removeTime)
	for {
		err := os.RemoveAll(b.profile)
		if err == nil || time.Now().After(end) {
			return err
		}
		time.Sleep(removePause)
	}
}
