package options

import "slices"

// The topics of flags, in the order in which help shows them.
const (
	topicInputs      = "Input"
	topicRecording   = "Ways to record"
	topicKept        = "What is recorded"
	topicEdits       = "Edits"
	topicBefore      = "Before the request"
	topicQuestions   = "Questions"
	topicDefinitions = "Definitions"
	topicServer      = "Server"
	topicSafety      = "Other machines and limits"
	topicSecrets     = "Secrets"
	topicSessions    = "Sessions and tools"
	topicOutput      = "Output"
	topicGlobal      = "Flags of all commands"
)

// Topics are the topics in the order in which help shows them.
func Topics() []string {
	return slices.Clone(topics)
}

var topics = []string{
	topicInputs, topicRecording, topicKept, topicEdits, topicBefore, topicQuestions, topicDefinitions, topicServer, topicSafety, topicSecrets, topicSessions, topicOutput,
}

// A Meaning is what a flag means, in every command that has it.
type Meaning struct {
	// Topic is the group that help shows the flag in.
	Topic string

	// Value stands for the flag's value in help, such as FILE; "" for the name of the
	// flag's type.
	Value string

	// Types are the types that the flag may have. They are empty, like Text, if only one
	// command has it, whose help then says what it means.
	Types []string
	Text  string
}

// Meanings has the one meaning of each flag. A name that has another meaning in a command
// is a hidden alias there: see Alias.
var Meanings = map[string]Meaning{
	// Input
	"allow":           {Topic: topicInputs, Value: "FILE"},
	"as":              {Topic: topicInputs, Value: "HOW", Types: []string{"string", "stringArray"}, Text: "How the bytes are read: as messages, frames or delimited messages, or a field as a type (1.2:string)."},
	"baseline":        {Topic: topicInputs, Value: "FILE"},
	"date":            {Topic: topicInputs, Value: "DAY"},
	"dir":             {Topic: topicInputs, Value: "DIRECTION", Types: []string{"string"}, Text: "Only what the client sent (up) or what it received (down)."},
	"from":            {Topic: topicInputs, Value: "SOURCE", Types: []string{"stringArray"}, Text: "A source to take definitions from."},
	"in":              {Topic: topicInputs, Value: "FORMAT", Types: []string{"string"}, Text: "The format of the input."},
	"keylog":          {Topic: topicInputs, Value: "FILE", Types: []string{"stringArray"}, Text: "An NSS key log (SSLKEYLOGFILE) to read the keys of TLS sessions from."},
	"like":            {Topic: topicInputs, Value: "F.uwc#ID", Types: []string{"string"}, Text: "A recorded exchange to take the method, headers and protocol from."},
	"method":          {Topic: topicInputs, Value: "METHOD", Types: []string{"string"}, Text: "The RPC method: Run, or pkg.Service/Run; where calls are selected, * stands for any text."},
	"once":            {Topic: topicInputs, Types: []string{"bool"}, Text: "Do not remember what --as chooses in the capture."},
	"parts":           {Topic: topicInputs, Types: []string{"bool"}, Text: "Each call alone, where several calls carry one stream."},
	"partial":         {Topic: topicInputs},
	"path":            {Topic: topicInputs, Value: "PATH", Types: []string{"string"}, Text: "Only the field at this path: field numbers joined by dots, as 1.2."},
	"raw":             {Topic: topicInputs, Types: []string{"bool"}, Text: "The inputs are files with one serialized message each."},
	"root":            {Topic: topicInputs, Value: "NAME", Types: []string{"string"}, Text: "The name of the root message of --raw."},
	"start":           {Topic: topicInputs, Value: "FILE"},
	"default-capture": {Topic: topicInputs, Value: "F.uwc", Types: []string{"string"}, Text: "The capture of the experiments that name none."},
	"suite":           {Topic: topicInputs, Value: "DIR", Types: []string{"string"}, Text: "A folder of experiments."},
	"traffic":         {Topic: topicInputs, Value: "F.uwc", Types: []string{"stringArray"}, Text: "A capture whose exchanges are named where a change touches them."},
	"type":            {Topic: topicInputs, Value: "TYPE", Types: []string{"string"}, Text: "The full name of a message type, such as pkg.Message."},
	"weights":         {Topic: topicInputs, Value: "FILE"},
	"follow":          {Topic: topicInputs, Types: []string{"bool"}, Text: "Print what comes while it is recorded."},
	"kind":            {Topic: topicInputs, Value: "KIND"},
	"headers":         {Topic: topicInputs},
	"bytes":           {Topic: topicInputs, Value: "HEX"},
	"number":          {Topic: topicInputs, Value: "NUMBER"},
	"field-number":    {Topic: topicInputs, Value: "N"},
	"regexp":          {Topic: topicInputs, Value: "PATTERN"},
	"fixed":           {Topic: topicInputs},
	"ignore-case":     {Topic: topicInputs},
	"ignore":          {Topic: topicInputs, Value: "PATH"},
	"volatile":        {Topic: topicInputs},
	"series":          {Topic: topicInputs},
	"deps":            {Topic: topicInputs},
	"client-version":  {Topic: topicInputs, Value: "VERSION", Types: []string{"string"}, Text: "The version of the client."},
	"source":          {Topic: topicInputs, Value: "NAME"},

	"filter":   {Topic: topicInputs, Value: "FILTER", Types: []string{"string"}, Text: "Only what this filter selects, such as method:Run code:!ok."},
	"no-pager": {Topic: topicOutput},
	"sort":     {Topic: topicOutput, Value: "COLUMN"},

	// Ways to record
	"listen":         {Topic: topicRecording, Value: "ADDRESS", Types: []string{"string"}, Text: "The loopback address to listen at, or a port of 127.0.0.1."},
	"reverse":        {Topic: topicRecording, Value: "URL"},
	"also":           {Topic: topicRecording, Value: "URL"},
	"browser":        {Topic: topicRecording, Value: "URL"},
	"transparent":    {Topic: topicRecording},
	"passive":        {Topic: topicRecording},
	"block-quic":     {Topic: topicRecording},
	"packets":        {Topic: topicRecording, Value: "FILE"},
	"share":          {Topic: topicRecording},
	"upstream-proxy": {Topic: topicRecording, Value: "URL"},

	// What is recorded
	"only":            {Topic: topicKept, Value: "GLOB"},
	"skip":            {Topic: topicKept, Value: "GLOB"},
	"max-body":        {Topic: topicKept, Value: "SIZE"},
	"quiet":           {Topic: topicOutput},
	"verbose":         {Topic: topicOutput},
	"max-size":        {Topic: topicKept, Value: "SIZE"},
	"rotate":          {Topic: topicKept, Value: "SIZE|TIME"},
	"write-keylog":    {Topic: topicKept, Value: "FILE"},
	"keep-secrets":    {Topic: topicKept, Types: []string{"bool"}, Text: "Record tokens, cookies and keys as they are."},
	"keep-unsearched": {Topic: topicKept, Types: []string{"bool"}, Text: "Copy payloads that cannot be searched for secrets."},
	"keep-headers":    {Topic: topicKept},
	"as-recorded":     {Topic: topicKept},

	// Edits
	"set":         {Topic: topicEdits, Value: "PATH[:KIND]=VALUE"},
	"add":         {Topic: topicEdits, Value: "PATH:KIND=VALUE"},
	"del":         {Topic: topicEdits, Value: "PATH"},
	"retype":      {Topic: topicEdits, Value: "PATH:KIND"},
	"set-raw":     {Topic: topicEdits, Value: "PATH=HEX"},
	"patch":       {Topic: topicEdits, Value: "FILE"},
	"edit":        {Topic: topicEdits, Value: "FRAME"},
	"codec":       {Topic: topicEdits, Value: "CODEC"},
	"json-body":   {Topic: topicEdits, Value: "FILE"},
	"header-from": {Topic: topicEdits, Value: "NAME=COMMAND", Types: []string{"stringArray"}, Text: "A header whose value a command makes."},
	"mark":        {Topic: topicEdits, Value: "WORD"},
	"remove":      {Topic: topicEdits, Value: "WHAT", Types: []string{"string", "bool"}, Text: "Remove instead of add."},
	"write":       {Topic: topicEdits},
	"take-names":  {Topic: topicEdits},
	"take-types":  {Topic: topicEdits},
	"yes":         {Topic: topicEdits, Types: []string{"bool"}, Text: "Do not ask."},
	"store":       {Topic: topicEdits, Value: "STORE", Types: []string{"stringSlice"}, Text: "A trust store: system, nss or java."},
	"hosts":       {Topic: topicEdits, Value: "HOST"},
	"label":       {Topic: topicEdits, Value: "PATH=ROLE"},
	"labels":      {Topic: topicEdits, Value: "FILE"},
	"hold":        {Topic: topicEdits, Value: "N"},

	// Before the request
	"after":      {Topic: topicBefore, Value: "IDS"},
	"learn":      {Topic: topicBefore, Types: []string{"bool"}, Text: "Send the unedited request twice first, and ignore what differs without the edit."},
	"refresh":    {Topic: topicBefore},
	"agent-host": {Topic: topicBefore},

	// Questions
	"fields":    {Topic: topicQuestions, Value: "RANGES"},
	"depth":     {Topic: topicQuestions, Value: "N", Types: []string{"int"}, Text: "The levels of messages below the first to ask about, too."},
	"names":     {Topic: topicQuestions, Value: "SOURCE"},
	"values":    {Topic: topicQuestions, Value: "SOURCE"},
	"settle":    {Topic: topicQuestions, Value: "SOURCE"},
	"known":     {Topic: topicQuestions, Value: "NAMES"},
	"refine":    {Topic: topicQuestions, Types: []string{"bool"}, Text: "Distinguish text from bytes, with one more request per field."},
	"no-refine": {Topic: topicQuestions},

	// Definitions
	"proto":          {Topic: topicDefinitions, Value: "DEFINITIONS", Types: []string{"string"}, Text: "The definitions: a folder of .proto files, a .proto file or a descriptor set."},
	"package":        {Topic: topicDefinitions, Value: "PACKAGE", Types: []string{"string"}, Text: "The package of what is inferred."},
	"into":           {Topic: topicDefinitions, Value: "DEFINITIONS"},
	"evidence":       {Topic: topicDefinitions, Value: "FILE"},
	"descriptor-set": {Topic: topicDefinitions, Value: "FILE", Types: []string{"string"}, Text: "A file to write a FileDescriptorSet to."},

	// Server
	"to":                {Topic: topicServer, Value: "URL", Types: []string{"string"}, Text: "The server that requests go to."},
	"standin":           {Topic: topicServer, Types: []string{"bool"}, Text: "Start the stand-in and send everything there."},
	"protocol":          {Topic: topicServer, Value: "PROTOCOL"},
	"http2":             {Topic: topicServer, Types: []string{"bool"}, Text: "Speak HTTP/2, over http:// without asking."},
	"transport":         {Topic: topicServer, Value: "HOW"},
	"upstream-ca":       {Topic: topicServer, Value: "PEM", Types: []string{"string"}, Text: "A file of further CAs to trust for servers."},
	"upstream-insecure": {Topic: topicServer, Types: []string{"bool"}, Text: "Do not verify servers' certificates."},
	"client-cert":       {Topic: topicServer, Value: "[HOST=]PEM"},
	"client-key":        {Topic: topicServer, Value: "[HOST=]PEM"},
	"ca-file":           {Topic: topicServer, Value: "FILE"},
	"script":            {Topic: topicServer, Value: "FILE", Types: []string{"string"}, Text: "The script of the stand-in."},
	"seed":              {Topic: topicServer, Value: "N"},

	// Other machines and limits
	"live":          {Topic: topicSafety, Types: []string{"bool"}, Text: "Allow hosts other than this machine."},
	"allow-host":    {Topic: topicSafety, Value: "HOST", Types: []string{"stringSlice"}, Text: "A host that --live may send to."},
	"allow-execute": {Topic: topicSafety, Types: []string{"bool"}, Text: "Send what might run a handler on another machine, too."},
	"budget":        {Topic: topicSafety, Value: "N", Types: []string{"int"}, Text: "Send at most this many requests."},
	"live-budget":   {Topic: topicSafety, Value: "N", Types: []string{"int"}, Text: "Send at most this many requests to other machines."},
	"rate":          {Topic: topicSafety, Value: "N", Types: []string{"float64"}, Text: "Send at most this many requests per second."},
	"timeout":       {Topic: topicSafety, Value: "TIME", Types: []string{"duration"}, Text: "The deadline of one request."},
	"max-time":      {Topic: topicSafety, Value: "TIME", Types: []string{"duration"}, Text: "The deadline of a replay, with all its requests."},

	// Secrets
	"credentials":  {Topic: topicSecrets, Value: "REFERENCE", Types: []string{"string"}, Text: "Where secrets are: a file, env:NAME, keyring:SERVICE/ACCOUNT or the name of a profile."},
	"omit-secrets": {Topic: topicSecrets, Types: []string{"bool"}, Text: "Leave out headers whose secret is not given."},
	"no-auth":      {Topic: topicSecrets, Types: []string{"bool"}, Text: "Send no credentials."},
	"secret-env":   {Topic: topicSecrets, Value: "NAME", Types: []string{"stringSlice"}, Text: "An environment variable whose value is a secret."},
	"secret-file":  {Topic: topicSecrets, Value: "FILE", Types: []string{"string"}, Text: "A file of further secrets, one per line."},
	"key":          {Topic: topicSecrets, Value: "KEY"},
	"key-file":     {Topic: topicSecrets, Value: "FILE"},
	"privacy":      {Topic: topicSecrets},
	"allow-origin": {Topic: topicSecrets, Value: "ORIGIN"},

	// Sessions and tools
	"reuse":            {Topic: topicSessions, Value: "on|off"},
	"idle":             {Topic: topicSessions, Value: "TIME"},
	"max-age":          {Topic: topicSessions, Value: "TIME"},
	"silence":          {Topic: topicSessions, Value: "TIME"},
	"debounce":         {Topic: topicSessions, Value: "TIME"},
	"max-sessions":     {Topic: topicSessions, Value: "N"},
	"max-result":       {Topic: topicSessions, Value: "SIZE"},
	"model":            {Topic: topicSessions, Value: "MODEL"},
	"model-alias":      {Topic: topicSessions, Value: "NAME=MODEL"},
	"strict-models":    {Topic: topicSessions},
	"tool-map":         {Topic: topicSessions, Value: "FILE"},
	"print-config":     {Topic: topicSessions, Value: "CLIENT"},
	"print-parameters": {Topic: topicSessions},
	"print-tool-map":   {Topic: topicSessions},
	"print-script":     {Topic: topicSessions},
	"node-client":      {Topic: topicSessions, Value: "DIR"},

	// Output
	"output":       {Topic: topicOutput, Value: "FILE", Types: []string{"string"}, Text: "Where the result is written: a file, a folder or a capture; - is stdout where bytes or text are written."},
	"json":         {Topic: topicOutput, Types: []string{"bool"}, Text: "Print the result as JSON, one object per line."},
	"format":       {Topic: topicOutput, Value: "FORMAT", Types: []string{"string"}, Text: "The format of the output."},
	"journal":      {Topic: topicOutput, Value: "FILE", Types: []string{"string"}, Text: "A file to which every request and answer is appended."},
	"resume":       {Topic: topicOutput, Types: []string{"bool"}, Text: "Continue a journal: what it answers is not asked again."},
	"dry-run":      {Topic: topicOutput, Types: []string{"bool"}, Text: "Print what would be done, and do nothing."},
	"full":         {Topic: topicOutput, Types: []string{"bool"}, Text: "Print everything: shorten and leave out nothing."},
	"hex":          {Topic: topicOutput, Types: []string{"bool"}, Text: "Print the bytes as well."},
	"show-ignored": {Topic: topicOutput, Types: []string{"bool"}, Text: "List ignored differences, too."},
	"unmatched":    {Topic: topicOutput},
	"empty":        {Topic: topicOutput},
	"explain":      {Topic: topicOutput, Value: "PATH", Types: []string{"string"}, Text: "Print why the field at this path is read as it is."},
	"choices":      {Topic: topicOutput},
	"timeline":     {Topic: topicOutput},
	"top":          {Topic: topicOutput, Value: "N", Types: []string{"int"}, Text: "List at most this many candidates."},
	"exchanges":    {Topic: topicOutput},
	"count":        {Topic: topicOutput},
	"context":      {Topic: topicOutput, Value: "N"},
	"side-by-side": {Topic: topicOutput},
	"html":         {Topic: topicOutput, Value: "FILE"},
	"list":         {Topic: topicOutput},

	// Flags of all commands
	"color": {Topic: topicGlobal, Value: "WHEN"},
}
