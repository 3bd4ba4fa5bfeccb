// Package arch holds the tests of the tree's shape: who may import whom, and
// that what the code cites exists.
package arch

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "unwire/"

// A row of the import table.
type row struct {
	// imports are the packages of this module that may be imported. A trailing
	// slash means all below.
	imports []string

	// tests are those that tests may import in addition.
	tests []string

	// why says why these and no others.
	why string
}

// table is the import table; the longest prefix that matches a package decides.
var table = map[string]row{
	"captures/redact": {
		imports: []string{"captures", "captures/profile", "captures/redact/internal/", "decode/envelope"}, tests: []string{"captures/internal/require", "proto"},
		why: "secrets are found in bytes and framing, without decoding them; a profile has some",
	},
	"captures/redact/internal/charset": {why: "sets of bytes are data"},
	"captures/redact/internal/match": {
		imports: []string{"captures/redact/internal/charset"},
		why:     "what follows a secret is a run of a set of bytes",
	},
	"captures/redact/internal/names": {
		imports: []string{"captures/redact/internal/charset"},
		why:     "names are told by their letters, and some by what a value looks like",
	},
	"captures/redact/internal/keyshape": {
		imports: []string{"captures/profile", "captures/redact/internal/charset", "captures/redact/internal/match"},
		why:     "a shape is a run of a set of bytes; a profile has some",
	},
	"captures/redact/internal/spelling": {why: "a secret is spelt as standards have it"},
	"captures/redact/internal/syntax": {
		imports: []string{"captures/redact/internal/charset", "captures/redact/internal/match", "captures/redact/internal/names"},
		why:     "a value is found by the name that stands in front of it",
	},
	"captures/store": {
		imports: []string{"captures", "captures/profile", "captures/redact", "captures/store/internal/"}, tests: []string{"captures/internal/require", "decode/envelope"},
		why: "the file keeps the record model, and redacts while it records",
	},
	"captures/series": {
		imports: []string{"captures", "captures/series/internal/", "captures/store"}, tests: []string{"captures/internal/require"},
		why: "a series is files of package store",
	},
	"captures/series/internal/ring": {why: "when files are removed is decided by their size, whatever they hold"},
	"captures/store/internal/additions": {
		imports: []string{"captures", "captures/store/internal/payload"},
		why:     "what is added is of the record model, and definitions are payloads",
	},
	"captures/store/internal/control": {
		imports: []string{"captures", "captures/store/internal/additions"},
		why:     "an addition is checked before the writer is asked to store it",
	},
	"captures/store/internal/database": {
		imports: []string{"captures", "captures/store/internal/schema"},
		why:     "a file is opened with the checks of its format, and errors are those of captures",
	},
	"captures/store/internal/engine":   {tests: []string{"captures/internal/require"}, why: "what SQLite is told has no part in what is recorded"},
	"captures/store/internal/fields":   {imports: []string{"captures"}, why: "a section of the record model as text"},
	"captures/store/internal/filelock": {imports: []string{"captures"}, why: "who does not get the lock is told in the words of captures"},
	"captures/store/internal/payload":  {imports: []string{"captures"}, tests: []string{"captures/internal/require"}, why: "what does not inflate is damage"},
	"captures/store/internal/rows":     {imports: []string{"captures", "captures/store/internal/"}, why: "rows of the record model are made of its parts"},
	"captures/store/internal/schema":   {imports: []string{"captures"}, why: "what has another schema is damage"},
	"captures/store/internal/segment":  {imports: []string{"captures"}, why: "a segment is chunks of the record model"},
	"captures/profile":                 {why: "what is known of a service is data, which every layer can be handed"},
	"captures/internal/require":        {why: "ends tests whose preparation fails"},
	"captures": {
		imports: []string{"captures/profile"}, tests: []string{"captures/", "decode"},
		why: "the record of what was seen knows nothing of its interpretation; tests redact real exports",
	},
	"captures/websocket": {
		imports: []string{"captures"},
		why:     "messages are found in frames, whoever has seen their bytes: a proxy, or a file of packets",
	},
	"captures/pcap": {
		imports: []string{"captures", "captures/pcap/packet", "captures/websocket", "decode/envelope"}, tests: []string{"decode", "mitm", "mitm/ca", "proto", "replay/standin", "schema"},
		why: "packets become the same exchanges as a proxy's, whose ends are found in their framing; tests compare the two",
	},
	"captures/passive": {
		imports: []string{"captures", "captures/pcap", "captures/pcapng", "captures/store"},
		why:     "packets that are recorded become exchanges of a capture meanwhile, or when their recorder was killed",
	},
	"captures/pcap/packet": {why: "packets of capture files become TCP segments, whatever is in these"},
	"mitm": {
		imports: []string{"captures", "captures/websocket", "mitm/access", "mitm/ca", "mitm/chain", "mitm/clientcert", "mitm/h1", "mitm/h2", "mitm/hosts", "mitm/process", "mitm/raw", "mitm/refusal", "mitm/routes", "mitm/socks", "mitm/upstream"}, tests: []string{"decode", "mitm/launch"},
		why: "the proxy relays and records bytes, and interprets none; tests record launched programs",
	},
	"mitm/ca":         {why: "keys and certificates need nothing of a capture"},
	"mitm/clientcert": {why: "certificates and keys are files, whoever asks for them"},
	"mitm/access":     {imports: []string{"mitm/process", "mitm/socks"}, why: "who may connect is decided by the user of a process, and answered in the client's protocol"},
	"mitm/process":    {imports: []string{"captures"}, why: "the program of a connection is recorded with its exchanges, whatever they are"},
	"mitm/refusal":    {imports: []string{"captures"}, why: "a refusal is worded alike by the proxy and those who show it"},
	"mitm/chain":      {why: "addresses lead to addresses, whatever passes between them"},
	"mitm/hosts":      {why: "patterns of hosts and paths are decided by text, whoever asks"},
	"mitm/raw":        {imports: []string{"captures"}, why: "what is not HTTP is passed on and recorded, whoever connected the two ends"},
	"mitm/routes":     {why: "a connection is paired with its address by a port, whatever it carries"},
	"mitm/socks":      {why: "the server's side of SOCKS is a protocol, not a policy"},
	"mitm/upstream":   {imports: []string{"mitm/socks"}, why: "the user's proxy carries bytes of any kind; another unwire is told where they come from"},
	"mitm/h1": {
		imports: []string{"captures"},
		why:     "the relay records what it forwards; it knows no proxy, and asks where a request goes",
	},
	"mitm/h2": {
		imports: []string{"captures", "decode/envelope"},
		why:     "the relay records what it forwards, and finds the end of a response in its framing; it knows no proxy",
	},
	"mitm/browser": {tests: []string{"captures", "captures/store", "mitm", "mitm/ca"}, why: "a browser is told the proxy's address and its CA; tests record one"},
	"mitm/quic":    {why: "a datagram opens a connection or does not, whoever asks"},
	"mitm/launch": {
		imports: []string{"mitm/process", "mitm/quic"}, tests: []string{"captures", "mitm", "mitm/ca"},
		why: "a command is told the proxy's address and its CA's file, and its QUIC is refused; a namespace hands out its sockets; tests start a proxy",
	},
	"decode/envelope":          {why: "framing is a format, not a policy"},
	"decode/fieldpath":         {why: "the language of paths is a leaf, so that every layer can be asked for a field"},
	"decode/jsontree":          {why: "JSON with the places of its values is a leaf, so that every layer can look into a text or edit it"},
	"decode/wire":              {imports: []string{"decode/fieldpath"}, tests: []string{"decode/internal/barewalk"}, why: "tags and lengths need nothing else; trees are followed by paths"},
	"decode/internal/barewalk": {why: "the benchmark's baseline, which must not share the code that it is compared with"},
	"decode/internal/samples":  {why: "makes files with the libraries that write them, for tests"},
	"decode/value": {
		tests: []string{"decode/internal/samples"},
		why:   "what a value looks like is in its bytes alone",
	},
	"decode/kind": {
		imports: []string{"decode/wire", "decode/value", "decode/fieldpath"}, tests: []string{"decode/internal/barewalk", "decode/internal/samples"},
		why: "evidence about a field comes from its bytes alone",
	},
	"decode/field": {
		imports: []string{"decode/wire", "decode/kind"},
		why:     "the contract's T is one type for decode and decode/text, and knows no captures",
	},
	"decode/text": {
		imports: []string{"decode/wire", "decode/kind", "decode/field", "decode/envelope", "decode/nested", "decode/known"}, tests: []string{"decode/internal/barewalk"},
		why: "text prints trees with their readings; it must not know captures",
	},
	"decode/nested": {
		imports: []string{"decode/wire", "decode/kind", "decode/envelope"},
		why:     "payloads in other encodings are recognised by their bytes",
	},
	"decode/known": {why: "the well-known types are a table"},
	"decode/filter": {
		imports: []string{"captures", "decode", "decode/envelope", "decode/fieldpath", "decode/jsontree", "decode/search", "decode/wire"},
		why:     "one language selects exchanges and frames, wherever they are listed, searched or ruled on",
	},
	"decode": {
		imports: []string{"captures/profile", "captures", "decode/"}, tests: []string{"proto"},
		why: "frames and streams are derived from captures",
	},
	"decode/conversation": {imports: []string{"captures/profile", "captures", "decode", "decode/"}, tests: []string{"proto"}, why: "joins decoded exchanges"},
	"decode/diff":         {imports: []string{"captures", "decode", "decode/"}, why: "compares decoded exchanges"},
	"decode/transcript":   {imports: []string{"captures/profile", "captures", "decode", "decode/"}, why: "finds the conversation in decoded exchanges"},
	"decode/secret":       {imports: []string{"captures/profile", "captures", "captures/redact", "captures/store", "decode", "decode/"}, tests: []string{"proto", "schema"}, why: "finds secrets in decoded exchanges; tests use the definitions"},
	"decode/search":       {imports: []string{"captures/profile", "captures", "decode", "decode/"}, why: "searches decoded exchanges"},
	"schema": {
		imports: []string{"decode", "captures", "schema/extract", "schema/interrupt"}, tests: []string{"schema/compare", "schema/internal/schematest", "proto"},
		why: "definitions are loaded from every source that package extract reads",
	},
	"schema/infer/sources":   {why: "a set of hashes, of whatever inputs"},
	"schema/infer/jsonshape": {imports: []string{"decode/jsontree"}, why: "evidence of messages in JSON is a leaf, so that it merges and is kept with the other evidence"},
	"schema/infer": {
		imports: []string{"captures/profile", "schema", "schema/infer/jsonshape", "schema/infer/sources", "decode", "decode/", "captures", "captures/redact"}, tests: []string{"schema/internal/schematest", "proto"},
		why: "evidence comes from decoded traffic, and the result is a schema",
	},
	"schema/infer/agreement": {
		imports: []string{"schema", "schema/infer", "decode/wire"}, tests: []string{"schema/internal/schematest"},
		why: "compares what was inferred with a reference, and inference does without it",
	},
	"schema/infer/messages": {
		imports: []string{"captures", "decode", "decode/jsontree", "decode/wire", "schema", "schema/infer", "schema/infer/jsonshape"}, tests: []string{"captures/store"},
		why: "the messages of exchanges that are no calls are grouped, and become evidence or definitions; inference does without it",
	},
	"schema/check": {
		imports: []string{"captures/profile", "schema", "schema/infer", "schema/jsonname", "decode", "decode/", "captures"}, tests: []string{"schema/internal/schematest"},
		why: "unknown fields are collected as evidence for inference",
	},
	"schema/compare": {
		imports: []string{"schema", "schema/infer", "decode", "decode/conversation", "decode/wire", "captures"}, tests: []string{"schema/internal/schematest", "proto"},
		why: "compares schemas; Touched looks for changed elements in captures",
	},
	"schema/internal/schematest": {imports: []string{"schema", "proto"}, why: "random definitions, and samples whose true type is known, for the tests of all schema packages"},
	"schema/archive":             {imports: []string{"decode/envelope", "schema/interrupt"}, why: "archives hold files of any kind; what they share with HTTP is the compressions"},
	"schema/bundle":              {imports: []string{"schema/bundle/lexer", "schema/jsonname"}, why: "scripts are parsed without any schema at hand"},
	"schema/bundle/lexer":        {why: "tokens of JavaScript are a leaf"},
	"schema/embedded":            {imports: []string{"schema/interrupt"}, why: "descriptors are found in bytes of any kind"},
	"schema/extract": {
		imports: []string{"schema/archive", "schema/bundle", "schema/embedded", "schema/interrupt", "schema/jsonname"},
		why:     "joins what the readers of archives, scripts and executables find",
	},
	"schema/interrupt": {why: "a leaf"},
	"schema/eval": {
		imports: []string{"schema", "schema/", "decode", "decode/", "captures", "proto"},
		why:     "measures inference and matching on corpora",
	},
	"schema/wellknown": {imports: []string{"schema"}, tests: []string{"captures", "decode"}, why: "services that are the same everywhere are definitions, made of others' descriptors"},
	"schema/match":     {imports: []string{"schema", "schema/check", "decode", "decode/", "captures"}, tests: []string{"schema/internal/schematest"}, why: "ranks known types for observed messages"},
	"schema/align": {
		imports: []string{"captures", "decode", "decode/", "schema", "schema/jsonname"}, tests: []string{"mitm", "mitm/ca"},
		why: "pairs calls in both codecs; tests record them through the proxy",
	},
	"schema/protoform": {why: "messages are printed by their descriptors, wherever these come from"},
	"schema/jsonname":  {why: "a rule of names is a leaf"},
	"schema/update/source": {
		imports: []string{"captures/profile", "schema", "schema/align", "schema/bundle", "schema/check", "schema/compare", "schema/extract", "schema/infer", "schema/interrupt", "schema/update", "decode", "decode/conversation", "captures"},
		tests:   []string{"decode/"},
		why:     "loads what an update is made from: definitions, traffic, evidence, joins, shipped code",
	},
	"schema/update": {
		imports: []string{"schema", "schema/check", "schema/compare", "schema/extract", "schema/infer", "schema/jsonname"},
		why:     "edits text by what two schemas say; a source has the files of shipped code that were not read",
	},
	"replay": {
		imports: []string{"captures/profile", "schema", "schema/", "decode", "decode/", "captures", "captures/redact", "captures/store", "replay/"}, tests: []string{"proto"},
		why: "requests come from captures, and are named by definitions",
	},
	"replay/suite": {
		imports: []string{"captures/store", "decode/envelope", "decode/fieldpath", "replay", "replay/edit"},
		tests:   []string{"proto", "replay/credential", "replay/internal/standintest", "replay/outbound", "replay/standin"},
		why:     "experiments are replays with expectations, at paths that the user types",
	},
	"replay/internal/standintest": {
		imports: []string{"captures", "captures/store", "proto", "replay/standin", "schema"},
		why:     "records a client of the stand-in for tests",
	},
	"replay/probe": {
		imports: []string{"captures", "replay", "replay/outbound", "schema", "schema/compare", "decode", "decode/envelope", "decode/fieldpath"},
		why:     "what the oracles share sends as replay does, at paths that the user types",
	},
	"replay/probe/es":     {imports: []string{"replay/probe"}, why: "what protobuf-es shows needs the probe alone"},
	"replay/probe/golang": {imports: []string{"replay/probe"}, why: "what protobuf-go shows needs the probe alone"},
	"replay/probe/names":  {imports: []string{"decode/jsontree", "replay/probe", "schema", "schema/jsonname"}, why: "candidates come from definitions, in both of their forms, and from JSON"},
	"replay/probe/oracle": {
		imports: []string{"captures", "decode", "replay", "schema", "replay/outbound", "replay/probe", "replay/probe/es", "replay/probe/golang", "replay/probe/names"}, tests: []string{"decode/envelope", "replay/internal/nodetest", "replay/probe/testdata/", "schema/infer"},
		why: "the one place that knows all oracles; tests ask servers",
	},
	"replay/edit": {imports: []string{"decode/"}, tests: []string{"replay/internal/samples"}, why: "edits bytes and trees, and knows nothing of requests"},
	"replay/live": {
		imports: []string{"captures", "captures/store", "decode", "decode/", "replay/credential", "replay/edit"}, tests: []string{"replay/internal/samples"},
		why: "binds frames to what a server issues, and knows nothing of requests or of sending",
	},
	"replay/outbound":          {why: "what may leave the machine is decided in one place, which knows nothing of captures"},
	"replay/credential":        {imports: []string{"captures", "captures/redact", "decode/envelope", "replay/outbound", "captures/profile"}, tests: []string{"proto", "replay/internal/samples"}, why: "secrets are found before there is a request"},
	"replay/internal/nodetest": {imports: []string{"captures/need"}, why: "starts Node for tests, and nothing else"},
	"replay/internal/samples":  {why: "draws messages for tests"},
	"captures/need":            {why: "says what tests need of the machine, so every test may import it"},
	"replay/agent/turn":        {why: "what an agent and its users exchange, in the words of neither's protocol"},
	"replay/agent": {
		imports: []string{"captures", "captures/profile", "decode/envelope", "proto", "replay/agent/", "replay/credential", "replay/outbound", "schema"},
		tests:   []string{"captures/store", "proto", "replay/standin"},
		why:     "speaks the agent's protocol by the definitions in proto/, and records what it sends",
	},
	"replay/agent/internal/message": {imports: []string{"proto", "schema"}, why: "makes messages of the definitions in proto/"},
	"replay/agent/internal/history": {
		imports: []string{"replay/agent/internal/message", "replay/agent/internal/tools", "replay/agent/turn"}, why: "makes the first message of a stream, and what it names",
	},
	"replay/agent/internal/tools": {
		imports: []string{"replay/agent/internal/message", "replay/agent/turn"}, why: "translates between the definitions' tools and a client's",
	},
	"replay/agent/internal/transport": {
		imports: []string{"captures", "captures/profile", "decode/envelope", "replay/outbound"}, why: "sends messages, records them, and knows nothing of what is in them",
	},
	"replay/gateway": {
		imports: []string{"replay/agent/turn", "replay/gateway/front"},
		why:     "finds the session of a request, whatever protocol the agent speaks",
	},
	"replay/gateway/front": {imports: []string{"replay/agent/turn"}, why: "what the front ends have in common"},
	"replay/gateway/openai": {
		imports: []string{"replay/agent/turn", "replay/gateway/front"}, why: "what the front ends of one vendor's APIs have in common",
	},
	"replay/gateway/chat": {
		imports: []string{"replay/agent/turn", "replay/gateway/front", "replay/gateway/openai"},
		tests:   []string{"replay/internal/fronttest", "replay/internal/nodetest"},
		why:     "translates one API, and keeps nothing",
	},
	"replay/gateway/responses": {
		imports: []string{"replay/agent/turn", "replay/gateway/front", "replay/gateway/openai"},
		tests:   []string{"replay/internal/fronttest", "replay/internal/nodetest"},
		why:     "translates one API, and keeps nothing but which response a later one continues",
	},
	"replay/internal/fronttest": {
		imports: []string{"replay/agent/turn", "replay/gateway/front"}, why: "plays turns for tests of front ends, whatever their API",
	},
	"replay/gateway/messages": {
		imports: []string{"replay/agent/turn", "replay/gateway/front"}, why: "translates one API, and keeps nothing",
	},
	"replay/gateway/server": {
		imports: []string{"captures", "replay/agent/turn", "replay/gateway", "replay/gateway/"},
		tests:   []string{"captures/store", "proto", "replay/agent", "replay/standin"},
		why:     "puts the front ends behind a key, and records what they answer",
	},
	"replay/standin": {
		imports: []string{"schema", "decode", "decode/", "captures", "proto", "replay/standin/"},
		why:     "the local server speaks the definitions in proto/",
	},
	"proto": {imports: []string{"captures/profile"}, why: "definitions are data, and so is the profile of the service that they are of"},
	"cmd/internal/contract": {
		imports: []string{"captures", "captures/", "decode", "decode/", "mitm", "replay", "replay/", "schema", "schema/"},
		why:     "the JSON that is printed is the libraries' results, whoever prints them",
	},
	"cmd/internal/query": {
		imports: []string{"captures", "captures/", "cmd/internal/contract", "decode", "decode/", "replay", "replay/", "schema", "schema/"},
		why:     "answers questions about captures for every surface, and knows none of these",
	},
	"cmd/internal/progress": {
		imports: []string{"captures/store", "cmd/internal/term"},
		why:     "a line on the terminal counts what is read of captures, whatever for",
	},
	"cmd/internal/app": {
		imports: []string{"captures", "captures/", "cmd/internal/contract", "cmd/internal/progress", "cmd/internal/query", "cmd/internal/term", "decode", "decode/", "proto", "replay", "replay/", "schema", "schema/"},
		why:     "what a run of the program is knows no command",
	},
	"cmd/internal/render/failure": {
		imports: []string{"captures", "mitm/refusal"},
		why:     "failures are sorted by the texts that the recorder stores",
	},
	"cmd/internal/render/capturetext": {
		imports: []string{"captures", "captures/", "cmd/internal/app", "cmd/internal/contract", "cmd/internal/query", "cmd/internal/render/failure", "cmd/internal/term", "decode/secret", "mitm/launch", "mitm/refusal"}, tests: []string{"captures"},
		why: "prints what became of captures, by whatever format",
	},
	"cmd/internal/render/exchangeline": {
		imports: []string{"cmd/internal/app", "cmd/internal/contract", "cmd/internal/render", "cmd/internal/term"}, tests: []string{"captures", "decode"},
		why: "prints a line of a listing where no table can be",
	},
	"cmd/internal/render": {
		imports: []string{"captures", "cmd/internal/app", "cmd/internal/contract", "cmd/internal/query", "cmd/internal/render/failure", "cmd/internal/term", "decode", "decode/", "replay", "replay/", "schema", "schema/"},
		why:     "prints what libraries return, and knows no command",
	},
	"cmd/internal/render/schematext": {
		imports: []string{"captures", "cmd/internal/app", "cmd/internal/contract", "cmd/internal/render", "cmd/internal/term", "decode", "decode/", "schema", "schema/"},
		why:     "prints what the packages below schema return",
	},
	"cmd": {
		imports: []string{"captures", "captures/", "mitm", "mitm/", "decode", "decode/", "schema", "schema/", "replay", "replay/", "proto", "cmd/"},
		why:     "the command line calls every library, and no library calls it",
	},

	"captures/transfer": {
		imports: []string{"captures/profile", "captures", "decode", "decode/"}, tests: []string{"captures/internal/samples"},
		why: "exports mask what decoding finds",
	},
	"captures/internal/samples": {
		imports: []string{"captures", "captures/store", "decode/envelope"},
		why:     "makes captures for tests of formats, and reads them",
	},
	"captures/formats": {
		imports: []string{"captures", "captures/flow", "captures/har", "captures/jsonl", "captures/parquet", "captures/pcap", "captures/pcap/packet", "captures/pcapng", "captures/raw", "captures/transfer", "decode", "decode/envelope"}, tests: samples,
		why: "the one place that knows all formats of other tools",
	},
	"captures/har":     {imports: []string{"captures/profile", "captures", "captures/transfer", "decode", "decode/"}, tests: samples, why: "a HAR body is text or JSON, which takes decoding"},
	"captures/jsonl":   {imports: []string{"captures", "captures/transfer"}, tests: samples, why: "JSON Lines hold what the capture holds"},
	"captures/flow":    {imports: []string{"captures", "captures/transfer"}, tests: samples, why: "flow files hold what the capture holds"},
	"captures/raw":     {imports: []string{"captures", "captures/transfer", "decode"}, tests: append([]string{"captures"}, samples...), why: "raw files are decoded frames"},
	"captures/pcapng":  {imports: []string{"captures", "captures/transfer"}, tests: append([]string{"captures/pcap"}, samples...), why: "packets are made from bytes; tests import them again"},
	"captures/parquet": {imports: []string{"captures", "captures/transfer", "decode", "decode/field"}, tests: append([]string{"decode/envelope"}, samples...), why: "tables of exchanges and decoded frames"},
}

// forEveryTest are what tests of all packages may import: what says what they need
// of the machine, and the file that they record to.
var forEveryTest = []string{"captures/need", "captures/store", "captures/redact"}

// samples are the captures that tests of all formats share.
var samples = []string{"captures/internal/samples"}

// foreign says which third-party modules captures may use; the others are only
// barred from what belongs to the command line.
var foreign = map[string][]string{
	"captures":        {},
	"captures/redact": {"github.com/klauspost/compress", "github.com/andybalholm/brotli"},
	"captures/store":  {"modernc.org/sqlite", "modernc.org/libc", "github.com/klauspost/compress", "golang.org/x/sys"},
	"captures/pcap":   {"golang.org/x/crypto", "golang.org/x/net"},

	"captures/pcap/packet": {"github.com/google/gopacket"},
	"captures/pcapng":      {"github.com/google/gopacket", "golang.org/x/net", "github.com/gobwas/ws", "github.com/klauspost/compress"},
	"proto":                {},
}

// cliOnly may be imported below cmd/ and nowhere else.
var cliOnly = []string{"github.com/spf13/cobra", "github.com/olekukonko/tablewriter"}

func TestImportTable(t *testing.T) {
	for name, r := range table {
		if r.why == "" {
			t.Errorf("the row %s does not say why", name)
		}
	}
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}} TESTS {{join .TestImports " "}} {{join .XTestImports " "}}`, module+"...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	seen := 0
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		pkg := strings.TrimPrefix(fields[0], module)
		rule, ok := ruleFor(pkg)
		if !ok {
			t.Errorf("%s is in no row of the import table", pkg)
			continue
		}
		seen++
		tests := slices.Index(fields, "TESTS")
		for _, imp := range fields[1:tests] {
			checkImport(t, rule, pkg, imp)
		}
		for _, imp := range fields[tests+1:] {
			checkTestImport(t, rule, pkg, imp)
		}
	}
	if seen < 5 {
		t.Fatalf("only %d packages were looked at", seen)
	}
}

func checkImport(t *testing.T, rule, pkg, imp string) {
	if own, ok := strings.CutPrefix(imp, module); ok {
		if !matches(table[rule].imports, own) {
			t.Errorf("%s must not import %s", pkg, own)
		}
		return
	}
	if !strings.Contains(strings.SplitN(imp, "/", 2)[0], ".") {
		return // standard library
	}
	if list, limited := foreign[rule]; limited && !slices.ContainsFunc(list, func(m string) bool { return under(imp, m) }) {
		t.Errorf("%s must not import %s", pkg, imp)
	}
	if rule != "cmd" && rule != "cmd/internal/app" && slices.ContainsFunc(cliOnly, func(m string) bool { return under(imp, m) }) {
		t.Errorf("%s must not import %s: only cmd/ does", pkg, imp)
	}
}

// checkTestImport allows what the package may import, the package itself and its
// subfolders, and the row's own list.
func checkTestImport(t *testing.T, rule, pkg, imp string) {
	own, ok := strings.CutPrefix(imp, module)
	if slices.Contains(forEveryTest, own) {
		return
	}
	if ok && !matches(table[rule].imports, own) && !matches(table[rule].tests, own) && !under(own, pkg) && own != rule {
		t.Errorf("tests of %s must not import %s", pkg, own)
	}
}

func ruleFor(pkg string) (string, bool) {
	for p := pkg; p != "." && p != ""; p = filepath.Dir(p) {
		if _, ok := table[p]; ok {
			return p, true
		}
	}
	return "", false
}

func matches(list []string, pkg string) bool {
	return slices.ContainsFunc(list, func(a string) bool {
		return a == pkg || strings.HasSuffix(a, "/") && strings.HasPrefix(pkg, a)
	})
}

func under(imp, mod string) bool { return imp == mod || strings.HasPrefix(imp, mod+"/") }
