package help

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// A variable is an environment variable that unwire reads or sets, as help describes it.
type variable struct {
	// Name is the name; several related names are separated by commas, and * matches any text.
	Name string

	// Meaning describes the value.
	Meaning string

	// Commands are the commands that read the variable, without "unwire"; empty for all.
	Commands []string

	// Internal marks variables that unwire sets for its own child processes and for its tests.
	Internal bool
}

var (
	sending   = []string{"replay", "replay suite", "replay verify", "probe", "serve", "mcp", "credentials"}
	recording = []string{"capture"}
)

// environment lists all environment variables for help and documents.
var environment = []variable{
	{Name: "UNWIRE_CONFIG", Meaning: "folder in which unwire stores its CA and its state (default: unwire in your configuration folder)", Commands: []string{"ca", "capture", "doctor", "standin"}},
	{Name: "UNWIRE_MAX_READ", Meaning: "maximum size to which unwire decompresses a body, such as 512MB"},
	{Name: "UNWIRE_PROTO", Meaning: ".proto definitions with which unwire decodes messages if you do not give --proto, such as a folder of .proto files"},
	{Name: "UNWIRE_PAGER, PAGER", Meaning: "program that displays long output on a terminal, such as less", Commands: []string{"show"}},
	{Name: "COLUMNS", Meaning: "width of the terminal in characters, if unwire cannot detect the width"},
	{Name: "UNWIRE_TOKEN", Meaning: "bearer token that unwire sends; a capture contains only a placeholder instead of the token", Commands: sending},
	{Name: "UNWIRE_COOKIE", Meaning: "value of the cookie header that unwire sends; a capture contains only a placeholder instead of the value", Commands: sending},
	{Name: "UNWIRE_API_KEY", Meaning: "API key, which 'unwire replay --refresh' exchanges for a token", Commands: []string{"replay", "credentials"}},
	{Name: "UNWIRE_HEADER_*", Meaning: "value of a header for which a capture contains only a placeholder; for example, unwire sends UNWIRE_HEADER_X_API_KEY as the header x-api-key", Commands: sending},
	{Name: "UNWIRE_QUERY_*", Meaning: "value of a query parameter for which a capture contains only a placeholder; for example, unwire sends UNWIRE_QUERY_API_KEY as the parameter api-key", Commands: sending},
	{Name: "UNWIRE_SECRET_*", Meaning: "value of a secret for which a capture contains only a placeholder; for example, unwire sends UNWIRE_SECRET_3F2A9C1B instead of [redacted:3f2a9c1b]", Commands: sending},
	{Name: "UNWIRE_MACHINE_ID", Meaning: "ID of a machine, from which unwire computes a checksum header; the servers of the service that --profile names require this header", Commands: []string{"replay", "replay suite", "serve"}},
	{Name: "UNWIRE_SERVE_KEY", Meaning: "API keys that 'unwire serve' accepts, separated by spaces", Commands: []string{"serve"}},
	{Name: "UNWIRE_MCP_TOKEN", Meaning: "token that clients of 'unwire mcp --listen' must send", Commands: []string{"mcp"}},
	{Name: "UNWIRE_STANDIN_TOKEN", Meaning: "the only bearer token that 'unwire standin' accepts (default: it accepts any token)", Commands: []string{"standin"}},
	{Name: "UNWIRE_HEADER_NAME, UNWIRE_METHOD, UNWIRE_URL", Meaning: "variables that unwire sets for the command of --header-from; they contain the name of the header, and the method and the URL of the request", Commands: []string{"replay", "replay suite"}},
	{Name: "HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY", Meaning: "the first three name the proxy through which capture connects to servers, and NO_PROXY lists the hosts to which capture connects directly; the names may be in lower case", Commands: recording},
	{Name: "JAVA_HOME", Meaning: "Java installation whose trust store 'unwire ca' changes", Commands: []string{"ca install", "ca remove"}},
	{Name: "VISUAL, EDITOR", Meaning: "editor that --edit opens", Commands: []string{"replay"}},
	{Name: "SSL_CERT_FILE, SSLKEYLOGFILE", Meaning: "CA file and TLS key log of the demo's client; capture sets both variables", Commands: []string{"demo-client"}, Internal: true},
	{Name: "HOME", Meaning: "your home folder, in which capture finds the trust store of the browser", Commands: recording},
	{Name: "XDG_RUNTIME_DIR", Meaning: "folder in which running captures create their sockets (default: the temporary folder)"},
	{Name: "GOGC", Meaning: "setting of Go's garbage collector; if this variable is set, unwire does not choose a setting itself"},
	{Name: "NO_COLOR, TERM", Meaning: "if NO_COLOR is set, or if TERM is dumb, unwire prints no colours, unless you give --color"},
	{Name: "UNWIRE_NAMESPACE_IPV6, UNWIRE_NAMESPACE_PACKETS", Meaning: "set by unwire for its helper process in a network namespace", Internal: true},
	{Name: "UNWIRE_HOOK_TOKEN", Meaning: "connects a Node process to the recorder that started it", Internal: true},
	{Name: "UNWIRE_DEMO_URL, UNWIRE_DEMO_TOKEN, UNWIRE_DEMO_DESCRIPTORS", Meaning: "server and credentials for the demo's Node client", Internal: true},
	{Name: "UNWIRE_EVAL, UNWIRE_LONG, UNWIRE_SEED", Meaning: "settings for tests", Internal: true},
}

// variablesOf returns the variables that a command's help lists: those that only some commands read, this
// one among them. The topic environmentTopic lists all.
func variablesOf(cmd *cobra.Command) []variable {
	path := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	var list []variable
	for _, v := range environment {
		if !v.Internal && (path == environmentTopic || slices.Contains(v.Commands, path)) {
			list = append(list, v)
		}
	}
	return list
}

// environmentTopic is the name of the help topic about environment variables: `unwire help
// environment`.
const environmentTopic = "environment"

// EnvironmentCommand returns the help topic that lists all environment variables.
func EnvironmentCommand() *cobra.Command {
	return &cobra.Command{
		Use:   environmentTopic,
		Short: "Environment variables",
		Long:  "unwire reads these environment variables. If a flag and a variable have the same purpose, the flag overrides the variable.",
	}
}
