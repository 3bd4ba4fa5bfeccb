// Package arch has the tests of the source tree as a whole: allowed imports, sizes of
// packages and functions, cycles between files, links in documents, and plain English.
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
	// slash includes all packages below.
	imports []string

	// tests are further packages that tests may import.
	tests []string

	// why is the reason for these imports.
	why string
}

// table is the import table; the longest prefix that matches a package decides.
var table = map[string]row{
	"captures/redact": {
		imports: []string{"captures", "captures/profile", "captures/redact/internal/", "decode/envelope"}, tests: []string{"captures/internal/require", "proto"},
		why: "finds secrets in bytes and framing without decoding them; a profile adds rules",
	},
	"captures/redact/internal/charset": {why: "byte sets are data"},
	"captures/redact/internal/match": {
		imports: []string{"captures/redact/internal/charset"},
		why:     "the characters that continue a secret are a byte set",
	},
	"captures/redact/internal/names": {
		imports: []string{"captures/redact/internal/charset"},
		why:     "names are classified by their letters, and some by the form of their value",
	},
	"captures/redact/internal/keyshape": {
		imports: []string{"captures/profile", "captures/redact/internal/charset", "captures/redact/internal/match"},
		why:     "the format of a key is a run of a byte set; a profile adds formats",
	},
	"captures/redact/internal/spelling": {why: "the encodings of a secret are defined by standards"},
	"captures/redact/internal/syntax": {
		imports: []string{"captures/redact/internal/charset", "captures/redact/internal/match", "captures/redact/internal/names", "captures/redact/internal/textrun"},
		why:     "finds a value by the name before it, in a run of text",
	},
	"captures/redact/internal/textrun": {why: "finds runs of text in arbitrary bytes"},
	"captures/store": {
		imports: []string{"captures", "captures/atomicfile", "captures/budget", "captures/profile", "captures/redact", "captures/store/internal/"}, tests: []string{"captures/internal/require", "decode/envelope"},
		why: "stores the record model, and redacts while recording; a new capture appears under its name when it is complete",
	},
	"captures/series": {
		imports: []string{"captures", "captures/series/internal/", "captures/store"}, tests: []string{"captures/internal/require"},
		why: "a series consists of files of package store",
	},
	"captures/objectstore":     {tests: []string{"captures/internal/s3test"}, why: "objects are bytes; the caller decides by its transport which hosts are reached"},
	"captures/internal/s3test": {why: "an S3 service with faults, for tests"},
	"captures/upload": {
		imports: []string{"captures", "captures/objectstore", "captures/profile", "captures/store"}, tests: []string{"captures/internal/s3test"},
		why: "complete files of package store are moved to an object store, if the caller has nothing against it",
	},
	"captures/series/internal/ring": {why: "decides by size which files are removed, regardless of their content"},
	"captures/store/internal/additions": {
		imports: []string{"captures", "captures/store/internal/payload"},
		why:     "additions are part of the record model; definitions are payloads",
	},
	"captures/store/internal/control": {
		imports: []string{"captures", "captures/store/internal/additions"},
		why:     "validates an addition before it asks the writer to store it",
	},
	"captures/store/internal/database": {
		imports: []string{"captures", "captures/store/internal/schema"}, tests: []string{"captures/internal/require"},
		why: "opens a file and checks its format; its errors are those of captures",
	},
	"captures/store/internal/engine":   {tests: []string{"captures/internal/require"}, why: "configures SQLite, independently of what is recorded"},
	"captures/store/internal/fields":   {imports: []string{"captures"}, why: "formats a header section of the record model as text"},
	"captures/store/internal/filelock": {imports: []string{"captures"}, why: "reports a held lock with an error of captures"},
	"captures/store/internal/payload":  {imports: []string{"captures"}, tests: []string{"captures/internal/require"}, why: "data that does not decompress is damage"},
	"captures/store/internal/rows":     {imports: []string{"captures", "captures/store/internal/"}, why: "converts between rows and the record model"},
	"captures/store/internal/schema":   {imports: []string{"captures"}, why: "a different schema is damage"},
	"captures/store/internal/segment":  {imports: []string{"captures"}, why: "a segment holds chunks of the record model"},
	"captures/profile":                 {why: "a leaf that all layers can use: knowledge about a service as data"},
	"captures/atomicfile":              {imports: []string{"captures"}, why: "a missing folder is told in the words of captures"},
	"captures/budget":                  {why: "what a command may spend is counted the same way whatever it reads"},
	"captures/safetext":                {why: "text is escaped by its characters, whatever it is and wherever it goes"},
	"captures/internal/require":        {why: "ends a test whose setup fails"},
	"captures": {
		imports: []string{"captures/profile"}, tests: []string{"captures/", "decode"},
		why: "the record model is independent of its interpretation; tests redact real exports",
	},
	"captures/websocket": {
		imports: []string{"captures"},
		why:     "splits frames into messages, for the proxy and for packet files",
	},
	"captures/pcap": {
		imports: []string{"captures", "captures/pcap/packet", "captures/websocket", "decode/envelope"}, tests: []string{"decode", "mitm", "mitm/ca", "proto", "replay/standin", "schema"},
		why: "turns packets into the same exchanges that the proxy records; tests compare the two",
	},
	"captures/passive": {
		imports: []string{"captures", "captures/pcap", "captures/pcapng", "captures/store"},
		why:     "turns packets into exchanges while they are recorded, or after the recorder was killed",
	},
	"captures/pcap/packet": {why: "turns packets of capture files into TCP segments, regardless of their content"},
	"mitm": {
		imports: []string{"captures", "captures/websocket", "mitm/access", "mitm/ca", "mitm/chain", "mitm/clientcert", "mitm/h1", "mitm/h2", "mitm/hosts", "mitm/process", "mitm/raw", "mitm/refusal", "mitm/rewrite", "mitm/routes", "mitm/socks", "mitm/upstream"}, tests: []string{"decode", "mitm/launch", "decode/envelope", "mitm/intercept", "mitm/rules", "replay/edit"},
		why: "the proxy relays and records bytes without interpreting them; tests record launched programs",
	},
	"mitm/ca":         {why: "keys and certificates are independent of captures"},
	"mitm/clientcert": {why: "certificates and keys are files"},
	"mitm/access":     {imports: []string{"mitm/process", "mitm/socks"}, why: "decides by the user of a process who may connect, and answers in the client's protocol"},
	"mitm/process":    {imports: []string{"captures"}, why: "records the program of a connection with its exchanges"},
	"mitm/refusal":    {imports: []string{"captures"}, why: "words a refusal in the same way for the proxy and for those who display it"},
	"mitm/chain":      {why: "maps addresses to addresses, regardless of the data"},
	"mitm/hosts":      {why: "matches patterns of hosts and paths as text"},
	"mitm/raw":        {imports: []string{"captures", "mitm/rewrite"}, why: "forwards and records data that is not HTTP"},
	"mitm/routes":     {why: "maps the port of a connection to its address"},
	"mitm/socks":      {why: "implements the server's side of SOCKS, without policy"},
	"mitm/upstream":   {imports: []string{"mitm/socks"}, why: "connects through the user's proxy; another unwire learns the origin of a connection"},
	"mitm/h1": {
		imports: []string{"captures", "mitm/rewrite"},
		tests:   []string{"decode/envelope"},
		why:     "the relay records what it forwards; it does not know the proxy, and asks where a request goes; tests change envelopes",
	},
	"mitm/rewrite": {
		imports: []string{"captures", "decode/envelope"},
		why:     "bodies are split into frames and put together again, whoever decides what changes in them",
	},
	"mitm/rules": {
		imports: []string{"captures", "decode", "decode/envelope", "decode/filter", "decode/jsontree", "decode/search", "decode/suggest", "decode/wire", "mitm/rewrite", "replay/edit"},
		tests:   []string{"schema"},
		why:     "rules select frames as filters do and edit messages as replay does; the relays know only the interface of mitm/rewrite",
	},
	"mitm/intercept":      {imports: []string{"mitm/rules"}, tests: []string{"captures", "decode", "mitm/rewrite"}, why: "held frames are those of rules, and are shown to other programs of the user"},
	"mitm/hook":           {imports: []string{"mitm/rewrite", "mitm/rules"}, tests: []string{"captures", "decode"}, why: "a program of the user decides as a rule does"},
	"mitm/throttle":       {imports: []string{"captures"}, why: "bandwidth and latency are the same for whatever is forwarded"},
	"cmd/internal/editor": {why: "the user's editor is a program, whatever text it edits"},
	"mitm/h2": {
		imports: []string{"captures", "decode/envelope", "mitm/rewrite"},
		why:     "the relay records what it forwards, and finds the end of a response in its framing; it does not know the proxy",
	},
	"mitm/browser": {tests: []string{"captures", "captures/store", "mitm", "mitm/ca", "mitm/rules"}, why: "configures a browser with the proxy's address and its CA; tests record one"},
	"mitm/quic":    {why: "recognises datagrams that open a QUIC connection"},
	"mitm/launch": {
		imports: []string{"mitm/process", "mitm/quic"}, tests: []string{"captures", "mitm", "mitm/ca"},
		why: "configures a command with the proxy's address and CA, and refuses its QUIC; tests start a proxy",
	},
	"decode/envelope":          {why: "framing is a format without policy"},
	"decode/fieldpath":         {why: "the path language is a leaf, so that all layers can use it"},
	"decode/jsontree":          {why: "JSON with positions is a leaf, so that all layers can read and edit it"},
	"decode/wire":              {imports: []string{"decode/fieldpath"}, tests: []string{"decode/internal/barewalk"}, why: "tags and lengths need nothing else; paths lead through the tree"},
	"decode/internal/barewalk": {why: "the baseline of benchmarks must not share code with what it is compared with"},
	"decode/internal/samples":  {why: "creates test files with the libraries that define their formats"},
	"decode/value": {
		tests: []string{"decode/internal/samples"},
		why:   "classifies a value by its bytes alone",
	},
	"decode/kind/bytecost":    {why: "what one value costs depends on its bytes alone, not on statistics"},
	"decode/kind/numberset":   {why: "a set of numbers, whatever they are of"},
	"decode/kind/exampletext": {why: "whether a payload may be an example depends on its bytes alone"},
	"decode/kind/stablehash":  {why: "a hash depends on the bytes alone"},
	"decode/kind/mapkey": {
		imports: []string{"decode/kind/stablehash"},
		why:     "keys of map entries are compared as they are encoded, without statistics of values",
	},
	"decode/kind": {
		imports: []string{"decode/kind/bytecost", "decode/kind/exampletext", "decode/kind/mapkey", "decode/kind/numberset", "decode/kind/stablehash", "decode/wire", "decode/value", "decode/fieldpath"}, tests: []string{"decode/internal/barewalk", "decode/internal/samples"},
		why: "evidence about a field comes from its bytes alone",
	},
	"decode/field": {
		imports: []string{"decode/wire", "decode/kind"},
		why:     "the field tree is one type for decode and decode/text, independent of captures",
	},
	"decode/text/output": {why: "text is collected and written, whatever it is of"},
	"decode/text/memo": {
		imports: []string{"decode/kind/stablehash"},
		why:     "text is remembered by the bytes that it is printed for, whatever it is of",
	},
	"decode/text": {
		imports: []string{"decode/wire", "decode/kind", "decode/text/memo", "decode/text/output", "decode/field", "decode/envelope", "decode/nested", "decode/known"}, tests: []string{"decode/internal/barewalk"},
		why: "prints trees with their types; independent of captures",
	},
	"decode/nested": {
		imports: []string{"decode/wire", "decode/kind", "decode/envelope"},
		why:     "recognises payloads in other encodings by their bytes",
	},
	"decode/known":   {why: "the well-known types are a table"},
	"decode/suggest": {why: "similar names are found by their letters and descriptors, whatever they are of"},
	"decode/filter": {
		imports: []string{"captures", "decode", "decode/envelope", "decode/fieldpath", "decode/jsontree", "decode/search", "decode/suggest", "decode/wire"},
		why:     "one language selects exchanges and frames for listing, search and rules",
	},
	"decode": {
		imports: []string{"captures/profile", "captures", "decode/"}, tests: []string{"proto"},
		why: "derives frames and streams from captures",
	},
	"decode/conversation": {imports: []string{"captures/profile", "captures", "decode", "decode/"}, tests: []string{"proto"}, why: "joins decoded exchanges to conversations"},
	"decode/diff":         {imports: []string{"captures", "decode", "decode/"}, tests: []string{"captures/profile"}, why: "compares decoded exchanges"},
	"decode/transcript":   {imports: []string{"captures/profile", "captures", "decode", "decode/"}, why: "finds the conversation in decoded exchanges"},
	"decode/secret":       {imports: []string{"captures/profile", "captures", "captures/redact", "captures/store", "decode", "decode/"}, tests: []string{"proto", "schema"}, why: "finds secrets in decoded exchanges; tests use the definitions"},
	"decode/search":       {imports: []string{"captures/profile", "captures", "decode", "decode/"}, why: "searches decoded exchanges"},
	"schema": {
		imports: []string{"decode", "captures", "schema/extract", "schema/interrupt"}, tests: []string{"schema/compare", "schema/internal/schematest", "proto"},
		why: "loads definitions from every source that package extract reads",
	},
	"schema/infer/sources":     {why: "a set of hashes of arbitrary inputs"},
	"schema/infer/jsonshape":   {imports: []string{"decode/jsontree"}, why: "evidence from JSON messages is a leaf, so that it merges with other evidence"},
	"schema/infer/sizes":       {why: "sizes of values are compared without knowing what they are of"},
	"schema/infer/protostruct": {why: "a struct becomes a message of protobuf by its tags, whatever it is of"},
	"schema/infer": {
		imports: []string{"captures", "captures/profile", "captures/redact", "captures/safetext", "decode", "decode/", "schema", "schema/infer/jsonshape", "schema/infer/layout", "schema/infer/protostruct", "schema/infer/sizes", "schema/infer/sources", "schema/infer/vocabulary"}, tests: []string{"schema/internal/schematest", "proto"},
		why: "evidence comes from decoded traffic; the result is a schema",
	},
	"schema/infer/agreement": {
		imports: []string{"schema", "schema/infer", "decode/wire"}, tests: []string{"schema/internal/schematest"},
		why: "compares inferred definitions with a reference, which inference does not need",
	},
	"schema/infer/messages": {
		imports: []string{"captures", "decode", "decode/jsontree", "decode/wire", "schema", "schema/infer", "schema/infer/jsonshape"}, tests: []string{"captures/store"},
		why: "groups messages that are not calls, and infers definitions for them; inference of calls does not need it",
	},
	"schema/check": {
		imports: []string{"captures/profile", "schema", "schema/infer", "schema/jsonname", "decode", "decode/", "captures"}, tests: []string{"schema/internal/schematest"},
		why: "collects unknown fields as evidence for inference",
	},
	"schema/compare": {
		imports: []string{"schema", "schema/infer", "decode", "decode/conversation", "decode/wire", "captures"}, tests: []string{"schema/internal/schematest", "proto"},
		why: "compares schemas, and looks for changed elements in captures",
	},
	"schema/internal/schematest": {imports: []string{"schema", "proto"}, why: "random definitions, and samples whose true type is known, for the tests of the schema packages"},
	"schema/archive":             {imports: []string{"captures/budget", "decode/envelope", "schema/interrupt"}, why: "archives contain arbitrary files; they share only the compressions with HTTP"},
	"schema/bundle":              {imports: []string{"schema/bundle/jstree", "schema/bundle/lexer", "schema/bundle/model", "schema/bundle/protoname", "schema/jsonname"}, why: "parses scripts without any schema"},
	"schema/bundle/jstree":       {imports: []string{"schema/bundle/lexer"}, why: "reads JavaScript, and knows nothing of protobuf"},
	"schema/bundle/model":        {imports: []string{"schema/bundle/choice", "schema/bundle/protoname", "schema/jsonname"}, why: "converts definitions to descriptors, and knows nothing of JavaScript"},
	"schema/bundle/choice":       {why: "compares definitions without parsing"},
	"schema/bundle/protoname":    {imports: []string{"schema/jsonname"}, why: "the rules for protobuf names"},
	"schema/bundle/lexer":        {why: "JavaScript tokens are a leaf"},
	"schema/classfile":           {tests: []string{"captures/need"}, why: "Java class files are a leaf"},
	"schema/javalite":            {imports: []string{"schema/bundle/model", "schema/bundle/protoname", "schema/classfile"}, why: "converts what classes say about messages to the model of package bundle"},
	"schema/embedded":            {imports: []string{"schema/classfile", "schema/interrupt"}, why: "finds descriptors in arbitrary bytes"},
	"schema/extract": {
		imports: []string{"captures/budget", "captures/safetext", "schema/archive", "schema/bundle", "schema/bundle/model", "schema/classfile", "schema/embedded", "schema/interrupt", "schema/javalite", "schema/jsonname"},
		why:     "combines the readers of archives, scripts and executables",
	},
	"schema/interrupt": {why: "a leaf"},
	"schema/eval": {
		imports: []string{"schema", "schema/", "decode", "decode/", "captures", "proto"},
		why:     "measures inference and matching on corpora",
	},
	"schema/infer/naming":  {imports: []string{"schema", "schema/infer"}, tests: []string{"captures", "decode", "decode/"}, why: "adds names of definitions to inferred ones; inference itself has no names"},
	"cmd/internal/project": {imports: []string{"captures/profile"}, why: "unwire.yaml is read before any command runs"},
	"schema/history": {
		imports: []string{"captures/profile", "decode/wire", "schema/infer", "schema/infer/sources"},
		why:     "versions of a client are compared by what is inferred from evidence of each",
	},
	"schema/infer/layout":     {why: "lines of text are broken without knowing what they say"},
	"schema/infer/vocabulary": {imports: []string{"decode/value"}, why: "what values are suggests a name, whatever field has them"},
	"schema/wellknown":        {imports: []string{"schema"}, tests: []string{"captures", "decode"}, why: "services that are the same everywhere, as definitions from their original descriptors"},
	"schema/reflection": {
		imports: []string{"captures", "decode", "schema", "schema/interrupt", "schema/wellknown"}, tests: []string{"captures/store", "decode/envelope"},
		why: "finds definitions in the traffic of a service that is the same everywhere",
	},
	"schema/match": {imports: []string{"schema", "schema/check", "decode", "decode/", "captures"}, tests: []string{"schema/internal/schematest"}, why: "ranks known types for observed messages"},
	"schema/align": {
		imports: []string{"captures", "decode", "decode/", "schema", "schema/jsonname"}, tests: []string{"mitm", "mitm/ca"},
		why: "pairs calls in both codecs; tests record them through the proxy",
	},
	"schema/protoform": {imports: []string{"decode/suggest"}, why: "prints messages by their descriptors, regardless of the source"},
	"schema/jsonname":  {why: "the naming rule is a leaf"},
	"schema/update/source": {
		imports: []string{"captures/profile", "schema", "schema/align", "schema/bundle/model", "schema/check", "schema/compare", "schema/extract", "schema/infer", "schema/interrupt", "schema/update", "decode", "decode/conversation", "captures"},
		tests:   []string{"decode/"},
		why:     "loads the sources of an update: definitions, traffic, evidence, names, shipped code",
	},
	"schema/update": {
		imports: []string{"captures/atomicfile", "schema", "schema/check", "schema/compare", "schema/extract", "schema/infer", "schema/jsonname"},
		why:     "edits text according to two schemas; a source lists the shipped files that could not be read",
	},
	"replay": {
		imports: []string{"captures/profile", "schema", "schema/", "decode", "decode/", "captures", "captures/redact", "captures/store", "replay/"}, tests: []string{"proto", "replay/testdata/"},
		why: "requests come from captures; definitions name their fields",
	},
	"replay/suite": {
		imports: []string{"captures/store", "decode/envelope", "decode/fieldpath", "replay", "replay/edit"},
		tests:   []string{"proto", "replay/credential", "replay/internal/standintest", "replay/outbound", "replay/standin"},
		why:     "experiments are replays with expectations at user-supplied paths",
	},
	"replay/internal/standintest": {
		imports: []string{"captures", "captures/store", "proto", "replay/standin", "schema"},
		why:     "records a client of the stand-in for tests",
	},
	"replay/journal": {why: "the file of a program that goes on where it stopped, whatever its entries are"},
	"replay/probe": {
		imports: []string{"captures", "replay", "replay/journal", "replay/outbound", "schema", "schema/compare", "decode", "decode/envelope", "decode/fieldpath"},
		why:     "what the oracles share: sending like replay, at user-supplied paths",
	},
	"replay/probe/es":     {imports: []string{"replay/probe"}, why: "the strategy for protobuf-es needs only the probe"},
	"replay/probe/golang": {imports: []string{"replay/probe"}, why: "the strategy for protobuf-go needs only the probe"},
	"replay/probe/names":  {imports: []string{"decode/jsontree", "replay/probe", "schema", "schema/jsonname"}, why: "candidates come from definitions, in both spellings, and from JSON"},
	"replay/probe/oracle": {
		imports: []string{"captures", "decode", "replay", "replay/outbound", "replay/probe", "replay/probe/es", "replay/probe/golang", "replay/probe/names", "schema", "schema/jsonname"}, tests: []string{"captures/store", "decode/envelope", "replay/internal/nodetest", "replay/probe/testdata/", "schema/infer"},
		why: "the only place that knows all oracles; tests use real servers",
	},
	"replay/clientprobe": {
		imports: []string{"captures", "captures/profile", "decode", "decode/", "replay/edit", "replay/journal", "replay/live", "replay/mock"},
		tests:   []string{"captures/store", "mitm", "mitm/ca"},
		why:     "edits the answers of a mock and compares requests; whoever runs the client knows how",
	},
	"replay/mock": {
		imports: []string{"captures", "captures/store", "decode", "decode/", "mitm/ca", "mitm/rewrite", "mitm/rules", "replay/credential", "replay/listen", "replay/live", "replay/live/values"},
		tests:   []string{"captures/need", "mitm"},
		why:     "plays captures as the server: the certificates, the errors and the events are those of the proxy, the order is that of replay",
	},
	"replay/listen": {why: "serves HTTP with and without TLS on one port, independent of what it answers"},
	"replay/connection": {
		imports: []string{"captures", "decode", "decode/envelope", "replay/outbound"},
		why:     "speaks over connections without requests, and knows no plans",
	},
	"replay/reflection": {
		imports: []string{"replay/outbound", "schema", "schema/reflection"},
		why:     "asks servers for definitions under the same policy as replay, independent of captures",
	},
	"replay/reflection/proxy": {
		imports: []string{"replay/listen", "replay/outbound", "schema"},
		why:     "answers from definitions and forwards the rest, under the same policy as replay, independent of captures",
	},
	"replay/edit": {imports: []string{"decode/"}, tests: []string{"replay/internal/samples"}, why: "edits bytes and trees, independent of requests"},
	"replay/live": {
		imports: []string{"captures", "captures/store", "decode", "decode/", "replay/credential", "replay/edit", "replay/live/values"}, tests: []string{"replay/internal/samples"},
		why: "maps captured identifiers to those of a live server, independent of sending",
	},
	"replay/live/values": {
		imports: []string{"decode", "decode/", "replay/edit"}, why: "splits messages into values, independent of exchanges",
	},
	"replay/outbound":          {why: "one place decides what may leave the machine, independent of captures"},
	"replay/credential":        {imports: []string{"captures", "captures/redact", "decode/envelope", "replay/outbound", "captures/profile"}, tests: []string{"proto", "replay/internal/samples"}, why: "resolves secrets before there is a request"},
	"replay/internal/nodetest": {imports: []string{"captures/need"}, why: "starts Node for tests"},
	"replay/internal/samples":  {why: "creates random messages for tests"},
	"captures/need":            {why: "declares what a test needs from the machine; every test may import it"},
	"replay/agent/turn":        {why: "the types between an agent and its users, independent of both protocols"},
	"replay/agent": {
		imports: []string{"captures", "captures/profile", "decode/envelope", "proto", "replay/agent/", "replay/credential", "replay/outbound", "schema"},
		tests:   []string{"captures/store", "proto", "replay/standin"},
		why:     "implements the agent's protocol with the definitions in proto/, and records what it sends",
	},
	"replay/agent/internal/message": {imports: []string{"proto", "schema"}, why: "builds messages of the definitions in proto/"},
	"replay/agent/internal/history": {
		imports: []string{"replay/agent/internal/message", "replay/agent/internal/tools", "replay/agent/turn"}, why: "builds the first message of a stream, and the blobs that it refers to",
	},
	"replay/agent/internal/tools": {
		imports: []string{"replay/agent/internal/message", "replay/agent/turn"}, why: "translates between the server's tools and a client's",
	},
	"replay/agent/internal/transport": {
		imports: []string{"captures", "captures/profile", "decode/envelope", "replay/outbound"}, why: "sends and records messages without interpreting them",
	},
	"replay/gateway": {
		imports: []string{"replay/agent/turn", "replay/gateway/front"},
		why:     "finds the session of a request, independent of the agent's protocol",
	},
	"replay/gateway/front": {imports: []string{"replay/agent/turn"}, why: "what the front ends have in common"},
	"replay/gateway/openai": {
		imports: []string{"replay/agent/turn", "replay/gateway/front"}, why: "what the front ends of one vendor's APIs have in common",
	},
	"replay/gateway/chat": {
		imports: []string{"replay/agent/turn", "replay/gateway/front", "replay/gateway/openai"},
		tests:   []string{"replay/internal/fronttest", "replay/internal/nodetest"},
		why:     "translates one API without state",
	},
	"replay/gateway/responses": {
		imports: []string{"replay/agent/turn", "replay/gateway/front", "replay/gateway/openai"},
		tests:   []string{"replay/internal/fronttest", "replay/internal/nodetest"},
		why:     "translates one API; its only state is which response a later one continues",
	},
	"replay/internal/fronttest": {
		imports: []string{"replay/agent/turn", "replay/gateway/front"}, why: "plays turns for tests of front ends of any API",
	},
	"replay/gateway/messages": {
		imports: []string{"replay/agent/turn", "replay/gateway/front"}, why: "translates one API without state",
	},
	"replay/gateway/server": {
		imports: []string{"captures", "replay/agent/turn", "replay/gateway", "replay/gateway/", "replay/listen"},
		tests:   []string{"captures/store", "proto", "replay/agent", "replay/standin"},
		why:     "protects the front ends with a key, and records their answers",
	},
	"replay/standin": {
		imports: []string{"schema", "decode", "decode/", "captures", "proto", "replay/standin/"},
		why:     "the local server implements the definitions in proto/",
	},
	"proto": {imports: []string{"captures/profile"}, why: "definitions are data, and so is the profile of their service"},
	"cmd/internal/contract": {
		imports: []string{"captures", "captures/", "decode", "decode/", "mitm", "mitm/intercept", "replay", "replay/", "schema", "schema/"},
		why:     "the printed JSON consists of results of the libraries",
	},
	"cmd/internal/query": {
		imports: []string{"captures", "captures/", "cmd/internal/contract", "decode", "decode/", "replay", "replay/", "schema", "schema/"},
		why:     "answers questions about captures for every front end, independent of these",
	},
	"cmd/internal/progress": {
		imports: []string{"captures/store", "cmd/internal/term"},
		why:     "shows on the terminal how much of the captures was read",
	},
	"cmd/internal/app": {
		imports: []string{"captures", "captures/", "cmd/internal/contract", "cmd/internal/options", "cmd/internal/progress", "cmd/internal/project", "cmd/internal/query", "cmd/internal/reflected", "cmd/internal/term", "decode", "decode/", "mitm/launch", "proto", "replay", "replay/", "schema", "schema/"},
		why:     "what a run of the program has in common, independent of commands; an error names flags as they were typed; signals count alike for the program and for the command that it launches",
	},
	"cmd/internal/render/failure": {
		imports: []string{"captures", "mitm/refusal"},
		why:     "classifies failures by the texts that the recorder stores",
	},
	"cmd/internal/render/capturetext": {
		imports: []string{"captures", "captures/", "cmd/internal/app", "cmd/internal/contract", "cmd/internal/query", "cmd/internal/render", "cmd/internal/render/failure", "cmd/internal/term", "decode/secret", "mitm/launch", "mitm/refusal"}, tests: []string{"captures"},
		why: "prints the results of recording, import, export and audit",
	},
	"cmd/internal/render/replaytext": {
		imports: []string{"captures", "cmd/internal/app", "cmd/internal/contract", "cmd/internal/render", "cmd/internal/term", "replay", "replay/"},
		why:     "prints the plans and results of replays, probes and verifications",
	},
	"cmd/internal/render/exchangeline": {
		imports: []string{"cmd/internal/app", "cmd/internal/contract", "cmd/internal/render", "cmd/internal/term"}, tests: []string{"captures", "decode"},
		why: "prints single lines of a listing, where a table is impossible",
	},
	"cmd/internal/render": {
		imports: []string{"captures", "cmd/internal/app", "cmd/internal/contract", "cmd/internal/query", "cmd/internal/render/failure", "cmd/internal/term", "decode", "decode/", "replay", "replay/", "schema", "schema/"},
		why:     "prints what the libraries return, independent of commands",
	},
	"cmd/internal/render/schematext": {
		imports: []string{"captures", "cmd/internal/app", "cmd/internal/contract", "cmd/internal/render", "cmd/internal/term", "decode", "decode/", "schema", "schema/"},
		why:     "prints what the packages below schema return",
	},
	"cmd/internal/mcp": {
		imports: []string{"captures", "captures/", "cmd/internal/app", "cmd/internal/contract", "cmd/internal/mcp/", "cmd/internal/query", "decode", "decode/", "replay", "replay/", "schema", "schema/"},
		why:     "answers agents with what the commands print, and knows no command",
	},
	"cmd/internal/mcp/answer": {
		imports: []string{"cmd/internal/contract", "decode/jsontree"},
		why:     "an answer is objects of the contract in a bounded size, whatever was asked",
	},
	"cmd/internal/ui/outline": {
		imports: []string{"decode", "decode/"},
		why:     "a message is divided into rows by its fields, whatever page shows them",
	},
	"cmd/internal/ui": {
		imports: []string{"captures", "captures/", "cmd/internal/app", "cmd/internal/contract", "cmd/internal/query", "cmd/internal/render", "cmd/internal/ui/outline", "decode", "decode/", "mitm/intercept", "replay", "replay/", "schema", "schema/"},
		tests:   []string{"cmd/internal/cli"},
		why:     "serves what query answers as a page; other commands reach it as a function",
	},
	"cmd/internal/mcp/clientconfig": {
		imports: []string{"decode/jsontree"},
		why:     "configurations of other programs are texts, whoever edits them",
	},
	"cmd": {
		imports: []string{"captures", "captures/", "mitm", "mitm/", "decode", "decode/", "schema", "schema/", "replay", "replay/", "proto", "cmd/"},
		why:     "the command line uses every library; no library uses the command line",
	},

	"captures/transfer": {
		imports: []string{"captures/profile", "captures", "decode", "decode/"}, tests: []string{"captures/internal/samples"},
		why: "exports redact what decoding finds",
	},
	"captures/internal/samples": {
		imports: []string{"captures", "captures/store", "decode/envelope"},
		why:     "creates captures for tests of formats, and reads them back",
	},
	"captures/formats": {
		imports: []string{"captures", "captures/flow", "captures/har", "captures/jsonl", "captures/parquet", "captures/pcap", "captures/pcap/packet", "captures/pcapng", "captures/raw", "captures/transfer", "decode", "decode/envelope"}, tests: samples,
		why: "the only place that knows all formats of other tools",
	},
	"captures/har":     {imports: []string{"captures/profile", "captures", "captures/transfer", "decode", "decode/"}, tests: samples, why: "a HAR body is text or JSON, which requires decoding"},
	"captures/jsonl":   {imports: []string{"captures", "captures/transfer"}, tests: samples, why: "JSON Lines have the content of the capture"},
	"captures/flow":    {imports: []string{"captures", "captures/transfer"}, tests: samples, why: "flow files have the content of the capture"},
	"captures/raw":     {imports: []string{"captures", "captures/transfer", "decode"}, tests: append([]string{"captures"}, samples...), why: "raw files are decoded frames"},
	"captures/pcapng":  {imports: []string{"captures", "captures/transfer"}, tests: append([]string{"captures/pcap"}, samples...), why: "packets are generated from bytes; tests import them again"},
	"captures/parquet": {imports: []string{"captures", "captures/transfer", "decode", "decode/field"}, tests: append([]string{"decode/envelope"}, samples...), why: "tables of exchanges and decoded frames"},
}

// forEveryTest are packages that the tests of all packages may import.
var forEveryTest = []string{"captures/need", "captures/store", "captures/redact"}

// samples has the captures that the tests of all formats share.
var samples = []string{"captures/internal/samples"}

// foreign lists the third-party modules that these packages may import. All other
// packages may import any, except for the modules of the command line.
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
