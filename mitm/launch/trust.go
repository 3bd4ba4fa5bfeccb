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

	"software.sslmate.com/src/go-pkcs12"
)

// bundleVariables name a file of all the CAs to trust, replacing the system's.
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

// extraVariables name a file of CAs to trust besides the built-in ones.
var extraVariables = []string{"NODE_EXTRA_CA_CERTS", "DENO_CERT"}

// systemBundles are where systems keep their CAs in one file.
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

// The files that a command finds its CAs in. All are public but wget's configuration,
// which may have the user's passwords.
const (
	bundleFile    = "ca-bundle.pem"
	extraFile     = "ca-extra.pem"
	javaStoreFile = "ca-store.p12"
	wgetFile      = "wgetrc"
	aptFile       = "apt.conf"

	publicFile  = 0o644
	privateFile = 0o600
)

// Variables that name a configuration, or have options.
const (
	wgetVariable = "WGETRC"
	aptVariable  = "APT_CONFIG"
	javaVariable = "JAVA_TOOL_OPTIONS"
)

// javaPassword is the one that every Java runtime's store is shipped with.
const javaPassword = "changeit"

// trustCA makes the command trust the CA in addition to those that it trusts already:
// a host that is not captured still shows its own certificate. Its files are in dir,
// where programs that give up their rights, as apt does, can read those with CAs too.
func (e *env) trustCA(caFile, dir string) error {
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return fmt.Errorf("CA: %w", err)
	}
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
		return fmt.Errorf("trust store for Java: %w", err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		return err
	}

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

// wgetConfiguration is the user's configuration of wget with the CAs to trust: wget of
// GnuTLS reads no other variable.
func (e *env) wgetConfiguration(bundle string) ([]byte, error) {
	file := e.get(wgetVariable)
	if home := e.get("HOME"); file == "" && home != "" {
		file = filepath.Join(home, ".wgetrc")
	}
	var own []byte
	if file != "" {
		var err error
		if own, err = os.ReadFile(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("configuration of wget: %w", err)
		}
	}
	return fmt.Appendf(own, "\nca_certificate = %s\n", bundle), nil
}

// aptConfiguration has apt trust a bundle, besides what the configuration says that the
// variable names already.
func (e *env) aptConfiguration(bundle string) []byte {
	var b bytes.Buffer
	if own := e.get(aptVariable); own != "" {
		fmt.Fprintf(&b, "#include %q;\n", own)
	}
	fmt.Fprintf(&b, "Acquire::https::CAInfo %q;\n", bundle)
	return b.Bytes()
}

// javaStore is a trust store for Java with the certificates of a bundle. What Java
// would not read is left out. Its password protects nothing: the content is public.
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
	// All versions of Java read the oldest of the encodings.
	return pkcs12.LegacyDES.EncodeTrustStore(certs, javaPassword)
}

// proxyJava has Java programs use the proxy, loopback hosts too: Java reads no proxy
// variables.
func (e *env) proxyJava(proxy *url.URL) {
	for _, scheme := range []string{"http", "https"} {
		e.javaOptions("-D"+scheme+".proxyHost="+proxy.Hostname(), "-D"+scheme+".proxyPort="+proxy.Port())
	}
	e.javaOptions("-Dhttp.nonProxyHosts=")
}

// javaOptions adds options to those that every Java runtime takes from the environment.
// They come last, since the last of equal options counts.
func (e *env) javaOptions(options ...string) {
	for i, o := range options {
		if strings.ContainsAny(o, " \t") {
			options[i] = `"` + o + `"`
		}
	}
	e.set(javaVariable, strings.TrimSpace(e.get(javaVariable)+" "+strings.Join(options, " ")))
}

// privateKey is a private key in PEM, which a file of CAs should not have.
var privateKey = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?-----END [A-Z0-9 ]*PRIVATE KEY-----`)

// bundleCAs joins the CA with the files that the variables name now and with the
// system's, if one is given.
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
			continue // then the command did without it so far
		}
		if err != nil {
			return nil, fmt.Errorf("trusted CAs: %w", err)
		}
		out.WriteByte('\n')
		out.Write(privateKey.ReplaceAll(data, nil)) // the bundle is public
	}
	return out.Bytes(), nil
}

func systemBundle() string {
	for _, f := range systemBundles {
		if info, err := os.Stat(f); err == nil && info.Mode().IsRegular() {
			return f
		}
	}
	return ""
}
