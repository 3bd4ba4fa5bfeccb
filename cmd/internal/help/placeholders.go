package help

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"unwire/cmd/internal/options"
)

// A placeholder is a word that stands for a value in a usage line or in the name of a flag, such as FILE.
type placeholder struct {
	// Name is the word.
	Name string

	// Text explains the value; "" if the description of each flag with this placeholder is sufficient.
	Text string

	// Commands are the commands, without "unwire", in which the placeholder has this meaning; empty for all
	// commands that no other row of the same name lists.
	Commands []string
}

// placeholders explains every placeholder of every command. Help prints the rows that a command uses, so that a
// word is explained in the same way everywhere.
var placeholders = []placeholder{
	// Captures and what is in them
	{Name: "F.uwc", Text: "a capture: a file with recorded traffic, written by 'unwire capture' or 'unwire import'"},
	{Name: "F.uwc", Text: "the capture file to write; the name is your choice", Commands: []string{"capture", "import"}},
	{Name: "F.uwc", Text: "a capture (a file with recorded traffic), or a folder of captures", Commands: []string{"ui", "mcp", "mcp install"}},
	{Name: "F.uwc", Text: "a capture (a file with recorded traffic), or one exchange of a capture: F.uwc#7 is exchange 7", Commands: []string{"export", "diff", "call"}},
	{Name: "F.uwc", Text: "a capture (a file with recorded traffic), an exchange of a capture (F.uwc#7 is exchange 7), or a message (F.uwc#7/up/0 is the first message of the client in exchange 7)", Commands: []string{"grep", "schema match"}},
	{Name: "F.uwc", Text: "a capture (a file with recorded traffic); F.uwc#7 is exchange 7 of the capture, and F.uwc#7/down/0 is the first message that the server sent in exchange 7", Commands: []string{"show"}},
	{Name: "CLEAN.uwc", Text: "the new capture file, in which secrets are replaced"},
	{Name: "ID", Text: "the number of an exchange (a request and its answer), which 'unwire ls F.uwc' prints first in each line; F.uwc#7 is short for F.uwc 7"},
	{Name: "ID", Text: "the number of a message that capture holds back; intercept prints this number first in each line; or the word first, for the message that capture has held for the longest time", Commands: []string{"intercept"}},
	{Name: "FRAME", Text: "a message of a capture: F.uwc#7/up/0 is the first message that the client sent in exchange 7, and F.uwc#7/down/0 is the first message that the server sent"},
	{Name: "FRAME", Text: "the number of a message that the client sent, counted from 0", Commands: []string{"replay"}},
	{Name: "ADDRESS", Text: "7 for exchange 7 of the capture, 7/up/0 for the first message that the client sent in it, 7/up/0/1.2 for field 1.2 of this message; down instead of up is for messages of the server", Commands: []string{"note"}},
	{Name: "ADDRESS", Text: ""},
	{Name: "A", Text: "the first of two captures (F.uwc), exchanges (F.uwc#7 is exchange 7), messages (F.uwc#7/up/0 is the first message that the client sent in exchange 7; down is for the server), or files; B is the second", Commands: []string{"diff"}},
	{Name: "B", Text: ""},

	// Fields and values
	{Name: "PATH", Text: "the path of a field: 1.2 is field 2 of the message in field 1; if field 2 is repeated, 1.2[0] is its first element"},
	{Name: "PATH", Text: "the path of a field, with numbers or names: 1.2 is field 2 of the message in field 1; items[0].price is the field price of the first element of the repeated field items", Commands: []string{"replay", "intercept"}},
	{Name: "KIND", Text: "the type of a field, such as string, bytes, bool, int32, sint64, fixed32, double or message", Commands: []string{"replay", "intercept"}},
	{Name: "KIND", Text: ""},
	{Name: "VALUE", Text: "the new value of a field: as in JSON, but without quotes around text; write bytes as hex:00ff or base64:AP8=", Commands: []string{"replay", "intercept"}},
	{Name: "VALUE", Text: ""},
	{Name: "HEX", Text: "bytes in hex, such as 0a05"},
	{Name: "TEXT", Text: "the text of the note; without TEXT, note prints the existing notes"},
	{Name: "PATTERN", Text: "a regular expression that grep searches for in the values of fields; with -F, the text itself"},
	{Name: "FILTER", Text: "conditions that select exchanges or messages, such as 'host:api.* method:Run code:!ok'; 'unwire ls --help' explains all conditions"},
	{Name: "JSON", Text: "a message as JSON, @FILE to read it from a file, or - to read stdin", Commands: []string{"call"}},
	{Name: "JSON", Text: ""},
	{Name: "ROLE", Text: ""},

	// Definitions
	{Name: "DEFINITIONS", Text: "protobuf definitions: a folder of .proto files, a .proto file, a descriptor set, a capture that contains definitions, or reflect:URL, which asks the server at URL by gRPC server reflection"},
	{Name: "TYPE", Text: "a message, enum or service: its full name, such as pkg.Message, or its last part if that is unique", Commands: []string{"schema print", "schema refs"}},
	{Name: "TYPE", Text: ""},
	{Name: "METHOD", Text: "an RPC method, such as pkg.Service/Method", Commands: []string{"call", "probe"}},
	{Name: "METHOD", Text: ""},
	{Name: "PREFIX", Text: "the beginning of the names that ls lists, such as the name of a package"},
	{Name: "WORD", Text: "a word that the name or the comment of a message, field, enum, value, service or method must contain", Commands: []string{"schema find"}},
	{Name: "WORD", Text: ""},
	{Name: "OLD", Text: "the older version; NEW is the newer version; both can be folders of .proto files, .proto files, descriptor sets, or the code of a program in which 'unwire schema extract' finds definitions", Commands: []string{"schema diff", "drift"}},
	{Name: "NEW", Text: ""},
	{Name: "SOURCE", Text: "where the new elements come from: captures, the code of a client, .proto files, descriptor sets, evidence files of 'unwire schema infer', or the JSON output of 'unwire align' or 'unwire probe'", Commands: []string{"schema update"}},
	{Name: "SOURCE", Text: ""},
	{Name: "EVIDENCE", Text: "a file with statistics about fields, written by 'unwire schema infer --evidence'", Commands: []string{"schema merge-evidence"}},
	{Name: "EVIDENCE", Text: "files with statistics about fields, written by the program unwire-pipeline: a file, a folder (its name must end with a slash), or a pattern such as 2026-*.pb", Commands: []string{"schema history"}},
	{Name: "INPUT", Text: "a capture, an evidence file (statistics about fields, written by 'unwire schema infer --evidence'), or with --raw a file with one serialized message; @LIST means all files whose names are in the file LIST", Commands: []string{"schema infer"}},
	{Name: "INPUT", Text: "a file or folder with the code of a program (JavaScript, packages, archives, executables), a descriptor set, a capture, or reflect:URL, which asks the server at URL by gRPC server reflection", Commands: []string{"schema extract"}},

	// Files, servers and programs
	{Name: "FILE", Text: "a file with protobuf bytes, also in hex or base64; - is stdin", Commands: []string{"decode"}},
	{Name: "FILE", Text: "a file with the output of 'unwire decode', or in the format that --in names; - is stdin", Commands: []string{"encode"}},
	{Name: "FILE", Text: "a recording: pcap, pcapng, HAR, JSON Lines of 'unwire export', or a flow file of mitmproxy", Commands: []string{"import"}},
	{Name: "FILE", Text: "the path of a .proto file, as in import statements", Commands: []string{"schema print"}},
	{Name: "FILE", Text: "a file with weights, which 'unwire chat fit' wrote", Commands: []string{"chat weights"}},
	{Name: "FILE", Text: ""},
	{Name: "LABELS", Text: "a file written by 'unwire chat --label', which has the true role (such as answer or thinking) of each text that you labelled"},
	{Name: "DIR", Text: "a folder of files with the extension .replay, each of which describes one request and the expected answer", Commands: []string{"replay suite"}},
	{Name: "DIR", Text: ""},
	{Name: "CMD", Text: "the program to run, with its arguments ARGS", Commands: []string{"capture", "probe-client"}},
	{Name: "CMD", Text: ""},
	{Name: "ARGS", Text: ""},
	{Name: "REFERENCE", Text: "where unwire finds secrets, such as tokens: a file with lines NAME: value (file mode 0600); env:NAME, an environment variable; keyring:SERVICE/ACCOUNT, an entry in the key store of the system; or the name of a service that unwire knows (see --profile): unwire then uses the token that the client of this service stored on this machine"},
	{Name: "SIZE", Text: "a number of bytes, or a number with a unit, such as 64KB (64,000 bytes) or 64KiB (65,536 bytes)"},
	{Name: "TIME", Text: "a time with its unit, such as 500ms, 20s, 5m or 1h30m"},

	// Values that the description of the flag explains
	{Name: "CLIENT"},
	{Name: "CODEC"},
	{Name: "COLUMN"},
	{Name: "COMMAND"},
	{Name: "DAY"},
	{Name: "DIRECTION"},
	{Name: "FORMAT"},
	{Name: "GLOB"},
	{Name: "HOST"},
	{Name: "HOW"},
	{Name: "IDS"},
	{Name: "KEY"},
	{Name: "LIMIT"},
	{Name: "MODEL"},
	{Name: "N"},
	{Name: "NAME"},
	{Name: "NAMES"},
	{Name: "NUMBER"},
	{Name: "ORIGIN"},
	{Name: "PACKAGE"},
	{Name: "PEM"},
	{Name: "PROFILE"},
	{Name: "PROGRAM"},
	{Name: "PROTOCOL"},
	{Name: "RANGES"},
	{Name: "SCOPE"},
	{Name: "STORE"},
	{Name: "TOOL"},
	{Name: "URL"},
	{Name: "VERSION"},
	{Name: "WHAT"},
	{Name: "WHEN"},
}

// placeholderWord matches a placeholder.
var placeholderWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b[A-Z]+\.uwc\b|\b[A-Z]+\b`) })

// unexplained is the explanation of a placeholder that the table lacks. No help text contains it.
const unexplained = "(not explained)"

// explanations returns the placeholders in the usage lines and in the flags of a command, each with its
// explanation. A placeholder that is in both is explained once, with the usage lines.
func explanations(cmd *cobra.Command) (arguments, values []row) {
	path := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	seen := map[string]bool{}
	explain := func(text string) (rows []row) {
		for _, name := range placeholderWord().FindAllString(text, -1) {
			if seen[name] {
				continue
			}
			seen[name] = true
			if meaning, known := meaningOf(path, name); !known {
				rows = append(rows, row{name, unexplained})
			} else if meaning != "" {
				rows = append(rows, row{name, meaning})
			}
		}
		return rows
	}
	if cmd.Runnable() {
		arguments = explain(cmd.Use)
	}

	// The flags of all commands have descriptions that explain their values.
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && options.Meanings[f.Name].Topic != options.TopicGlobal {
			// The short form of a flag can be a capital letter, which is not a placeholder.
			_, name, _ := strings.Cut(flagRow(f).Name, "--")
			values = append(values, explain(name)...)
		}
	})
	return arguments, values
}

// meaningOf returns the explanation of a placeholder in the help of a command, and whether there is one.
func meaningOf(path, name string) (text string, known bool) {
	for _, p := range placeholders {
		switch {
		case p.Name != name:
		case slices.Contains(p.Commands, path):
			return p.Text, true
		case len(p.Commands) == 0:
			text, known = p.Text, true
		}
	}
	return text, known
}
