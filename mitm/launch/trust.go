package launch

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"software.sslmate.com/src/go-pkcs12"
)

// bundleVariables are environment variables that name a file with all trusted CAs, which replaces the system's.
var bundleVariables = []string{
	"SSL_CERT_FILE",                      // OpenSSL, Go, Ruby, rustls-native-certs
	"REQUESTS_CA_BUNDLE",                 // Python requests
	"CURL_CA_BUNDLE",                     // curl
	"GIT_SSL_CAINFO",                     // git
	"CARGO_HTTP_CAINFO",                  // cargo
	"AWS_CA_BUNDLE",                      // AWS tools
	"PIP_CERT",                           // pip
	"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",   // gRPC's C core
	"NIX_SSL_CERT_FILE",                  // Nix's builds of OpenSSL
	"npm_config_cafile",                  // npm, whatever its configuration names
	"YARN_HTTPS_CA_FILE_PATH",            // Yarn since 2
	"PERL_LWP_SSL_CA_FILE",               // Perl's LWP
	"HTTPS_CA_FILE",                      // Perl's Crypt::SSLeay
	"BUNDLE_SSL_CA_CERT",                 // Ruby's Bundler
	"HEX_CACERTS_PATH",                   // Elixir's Hex
	"CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", // gcloud
	"CONDA_SSL_VERIFY",                   // conda
}

// extraVariables are environment variables that name a file with CAs that are trusted in addition to built-in
// ones.
var extraVariables = []string{"NODE_EXTRA_CA_CERTS", "DENO_CERT"}

// systemBundles are the files in which operating systems store their CAs.
var systemBundles = []string{
	// Debian, Ubuntu, Arch, Alpine.
	"/etc/ssl/certs/ca-certificates.crt",
	// Fedora, RHEL.
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
	// Older RHEL.
	"/etc/pki/tls/certs/ca-bundle.crt",
	// SUSE.
	"/etc/ssl/ca-bundle.pem",
	// macOS, BSD.
	"/etc/ssl/cert.pem",
}

// Names of the files in which a command finds its CAs, and their modes. All are public except wget's
// configuration, which may contain passwords of the user.
const (
	bundleFile    = "ca-bundle.pem"
	extraFile     = "ca-extra.pem"
	javaStoreFile = "ca-store.p12"
	wgetFile      = "wgetrc"
	aptFile       = "apt.conf"

	publicFile  = 0o644
	privateFile = 0o600
)

// Environment variables that name a configuration file, or contain options.
const (
	wgetVariable = "WGETRC"
	aptVariable  = "APT_CONFIG"
	javaVariable = "JAVA_TOOL_OPTIONS"
)

// javaPassword is the default password of Java's trust stores.
const javaPassword = "changeit"

// trustCA sets environment variables so that the command trusts the proxy's CA in addition to the system's CAs,
// which are still needed for hosts that are not recorded. It creates files in dir, which are readable by
// programs that drop privileges, such as apt.
func (e *env) trustCA(caFile, dir string) error {
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return fmt.Errorf("the CA cannot be written for the command: %w", err)
	}
	// Some variables replace the system's CAs, so their file needs all of them; others only add to
	// these.
	bundle, err := e.bundleCAs(ca, bundleVariables, systemBundle())
	if err != nil {
		return err
	}
	extra, err := e.bundleCAs(ca, extraVariables, "")
	if err != nil {
		return err
	}
	store, err := javaStore(bundle)
	if err != nil {
		return fmt.Errorf("the trust store for Java cannot be created: %w", err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		return err
	}

	// The files are public, so that the command can read them after it has changed its user.
	path := func(name string) string { return filepath.Join(dir, name) }
	wget, err := e.wgetConfiguration(path(bundleFile))
	if err != nil {
		return err
	}
	if err := os.WriteFile(path(wgetFile), wget, privateFile); err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		bundleFile: bundle, extraFile: extra, javaStoreFile: store, aptFile: e.aptConfiguration(path(bundleFile)),
	} {
		if err := os.WriteFile(path(name), data, publicFile); err != nil {
			return err
		}
	}
	for _, name := range bundleVariables {
		e.set(name, path(bundleFile))
	}
	for _, name := range extraVariables {
		e.set(name, path(extraFile))
	}
	e.set(wgetVariable, path(wgetFile))
	e.set(aptVariable, path(aptFile))
	e.javaOptions("-Djavax.net.ssl.trustStore="+path(javaStoreFile), "-Djavax.net.ssl.trustStorePassword="+javaPassword)
	return nil
}

// wgetConfiguration returns the user's configuration of wget with the CA bundle added, because wget with GnuTLS
// reads no other variable.
func (e *env) wgetConfiguration(bundle string) ([]byte, error) {
	file := e.get(wgetVariable)
	if home := e.get("HOME"); file == "" && home != "" {
		file = filepath.Join(home, ".wgetrc")
	}
	var own []byte
	if file != "" {
		var err error
		if own, err = os.ReadFile(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("the configuration of wget cannot be written: %w", err)
		}
	}
	return fmt.Appendf(own, "\nca_certificate = %s\n", bundle), nil
}

// aptConfiguration returns a configuration that makes apt trust a CA bundle. It includes the configuration file
// that the environment names already.
func (e *env) aptConfiguration(bundle string) []byte {
	var b bytes.Buffer
	if own := e.get(aptVariable); own != "" {
		fmt.Fprintf(&b, "#include %q;\n", own)
	}
	fmt.Fprintf(&b, "Acquire::https::CAInfo %q;\n", bundle)
	return b.Bytes()
}

// javaStore returns a Java trust store with the certificates of a CA bundle, except those that Java cannot
// parse. Its password protects nothing, because the contents are public.
func javaStore(bundle []byte) ([]byte, error) {
	var certs []*x509.Certificate
	for rest := bundle; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil || slices.ContainsFunc(certs, cert.Equal) {
			continue
		}
		certs = append(certs, cert)
	}
	// All versions of Java read this oldest encoding.
	return pkcs12.LegacyDES.EncodeTrustStore(certs, javaPassword)
}

// proxyJava makes Java programs use the proxy, also for loopback hosts: Java ignores proxy variables.
func (e *env) proxyJava(proxy *url.URL) {
	for _, scheme := range []string{"http", "https"} {
		e.javaOptions("-D"+scheme+".proxyHost="+proxy.Hostname(), "-D"+scheme+".proxyPort="+proxy.Port())
	}
	e.javaOptions("-Dhttp.nonProxyHosts=")
}

// javaOptions adds options to the variable from which every Java runtime reads options. They come last, because
// the last of equal options counts.
func (e *env) javaOptions(options ...string) {
	for i, o := range options {
		if strings.ContainsAny(o, " \t") {
			options[i] = `"` + o + `"`
		}
	}
	e.set(javaVariable, strings.TrimSpace(e.get(javaVariable)+" "+strings.Join(options, " ")))
}

// privateKey matches PEM private keys, which must not be copied into a CA bundle.
var privateKey = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?-----END [A-Z0-9 ]*PRIVATE KEY-----`)
})

// bundleCAs returns a CA bundle: the proxy's CA, the files that the variables name now, and the system's
// bundle, if given.
func (e *env) bundleCAs(ca []byte, variables []string, system string) ([]byte, error) {
	var files []string
	for _, name := range variables {
		if f := e.get(name); f != "" && !slices.Contains(files, f) {
			files = append(files, f)
		}
	}
	if system != "" && !slices.Contains(files, system) {
		files = append(files, system)
	}
	out := bytes.NewBuffer(ca)
	for _, f := range files {
		data, err := os.ReadFile(f)
		if os.IsNotExist(err) {
			// The command has worked without it so far.
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("the list of trusted CAs cannot be written: %w", err)
		}
		out.WriteByte('\n')
		// The bundle is public, so it must not contain keys.
		out.Write(privateKey().ReplaceAll(data, nil))
	}
	return out.Bytes(), nil
}

// systemBundle returns the path of the system's CA bundle, or "".
func systemBundle() string {
	for _, f := range systemBundles {
		if info, err := os.Stat(f); err == nil && info.Mode().IsRegular() {
			return f
		}
	}
	return ""
}
