package capturetext

import (
	"fmt"
	"path/filepath"
	"strings"

	"unwire/mitm/launch"
	"unwire/mitm/refusal"
)

// A trustFix says how a program is told to trust a CA.
type trustFix struct {
	// names are executables. One of four letters and more stands for all that begin
	// with it, unless it has a = before it.
	names string

	// fix has %[1]s for the CA's file.
	fix string
}

// trustFixes are the programs that are known.
var trustFixes = []trustFix{
	{"curl", "call it with --cacert %[1]s, or set CURL_CA_BUNDLE=%[1]s"},
	{"wget", "call it with --ca-certificate=%[1]s, or put ca_certificate=%[1]s into its ~/.wgetrc"},
	{"git git-remote-", "set GIT_SSL_CAINFO=%[1]s"},
	{"node npm npx", "set NODE_EXTRA_CA_CERTS=%[1]s"},
	{"bun", "set NODE_EXTRA_CA_CERTS=%[1]s"},
	{"deno", "set DENO_CERT=%[1]s"},
	{"python pip uv", "set REQUESTS_CA_BUNDLE=%[1]s (requests, pip), SSL_CERT_FILE=%[1]s (others) or\nGRPC_DEFAULT_SSL_ROOTS_FILE_PATH=%[1]s (grpcio)"},
	{"java", "import %[1]s into its trust store with keytool -importcert -cacerts, or run it by 'unwire capture -- CMD',\nwhich gives it one by JAVA_TOOL_OPTIONS"},
	{"ruby", "set SSL_CERT_FILE=%[1]s"},
	{"perl", "set PERL_LWP_SSL_CA_FILE=%[1]s, or SSL_CERT_FILE=%[1]s"},
	{"php", "call it with -d curl.cainfo=%[1]s -d openssl.cafile=%[1]s"},
	{"dotnet", "set SSL_CERT_FILE=%[1]s"},
	{"cargo", "set CARGO_HTTP_CAINFO=%[1]s"},
	{"apt =http =https", "call apt with -o Acquire::https::CAInfo=%[1]s"},
	{"chrom google-chrome chrome msedge brave opera vivaldi firefox", "record a browser with 'unwire capture --browser URL', or import\n%[1]s into its list of authorities"},
	{"go", goFix},
}

// maxExact is how long the names are that are compared in full.
const maxExact = 3

const (
	goFix    = "a Go program takes SSL_CERT_FILE=%[1]s on Linux; elsewhere it takes\nthe system's trust store ('unwire ca')"
	otherFix = "SSL_CERT_FILE=%[1]s works for many programs; others take\nthe system's trust store ('unwire ca') or an option of their own"
)

// RefusedCertificate names the program that does not accept the proxy's certificate.
func RefusedCertificate(r refusal.Refusal) string {
	who := "a program"
	switch p := r.Process; {
	case p.Name != "" && p.PID != 0:
		who = fmt.Sprintf("%s (process %d)", p.Name, p.PID)
	case p.PID != 0:
		who = fmt.Sprintf("process %d", p.PID)
	}
	return fmt.Sprintf("%s does not accept the proxy's certificate for %s, so nothing of that is recorded", who, r.Host)
}

// TrustFix says how a program is told to trust the proxy's CA. Caller is what its
// executable turned out to be.
func TrustFix(r refusal.Refusal, caller launch.Runtime, caFile string) string {
	return fmt.Sprintf(trustFixOf(r.Process.Name, caller), caFile) +
		".\nIf it does trust the CA, it expects one certain certificate (pinning), and no proxy can read it:\n" +
		"'unwire capture --passive -- CMD' can, if the program logs its TLS keys"
}

func trustFixOf(name string, caller launch.Runtime) string {
	name = strings.ToLower(filepath.Base(name))
	for _, f := range trustFixes {
		for prefix := range strings.FieldsSeq(f.names) {
			if exact, ok := strings.CutPrefix(prefix, "="); ok && name == exact || name == prefix || strings.HasPrefix(name, prefix) && len(prefix) > maxExact {
				return f.fix
			}
		}
	}
	switch caller {
	case launch.Node, launch.NodeSEA, launch.Bun:
		return "set NODE_EXTRA_CA_CERTS=%[1]s"
	case launch.Deno:
		return "set DENO_CERT=%[1]s"
	case launch.Electron:
		return "set NODE_EXTRA_CA_CERTS=%[1]s for its Node side; its windows take the authorities of\nChromium: certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n unwire -i %[1]s"
	case launch.Go:
		return goFix
	}
	return otherFix
}
