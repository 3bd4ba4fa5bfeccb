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
)

// TopicGlobal is the topic of the flags that all commands have, which help shows last.
const TopicGlobal = "Flags of all commands"

// Topics returns the topics of flags in the order in which help prints them.
func Topics() []string {
	return slices.Clone(topics)
}

var topics = []string{
	topicInputs, topicRecording, topicKept, topicEdits, topicBefore, topicQuestions, topicDefinitions, topicServer, topicSafety, topicSecrets, topicSessions, topicOutput,
}

// A Meaning is the meaning of a flag name, which is the same for every command that has the flag.
type Meaning struct {
	// Topic is the heading under which help prints the flag.
	Topic string

	// Value is the placeholder for the flag's value in help, such as FILE; "" prints the name of the
	// flag's type.
	Value string

	// Types are the types that the flag may have in different commands. Like Text, it is empty if only one
	// command has the flag, whose help then describes it.
	Types []string

	// Text describes the flag, for all commands that have it.
	Text string
}

// Meanings has the meaning of each flag name. A flag whose name means something else in other commands
// keeps that name only as a hidden alias; see Alias.
var Meanings = map[string]Meaning{
	// Input
	"allow":           {Topic: topicInputs, Value: "FILE"},
	"as":              {Topic: topicInputs, Value: "HOW", Types: []string{"string", "stringArray"}, Text: "How to interpret bytes: the framing (message, frames, delimited), or the type of a field (1.2:string)."},
	"baseline":        {Topic: topicInputs, Value: "FILE"},
	"date":            {Topic: topicInputs, Value: "DAY"},
	"dir":             {Topic: topicInputs, Value: "DIRECTION", Types: []string{"string"}, Text: "Select client data (up) or server data (down)."},
	"from":            {Topic: topicInputs, Value: "SOURCE", Types: []string{"stringArray"}, Text: "A source of definitions."},
	"in":              {Topic: topicInputs, Value: "FORMAT", Types: []string{"string"}, Text: "The format of the input."},
	"keylog":          {Topic: topicInputs, Value: "FILE", Types: []string{"stringArray"}, Text: "An NSS key log (SSLKEYLOGFILE) with the TLS keys."},
	"like":            {Topic: topicInputs, Value: "F.uwc#ID", Types: []string{"string"}, Text: "A recorded exchange to copy the method, headers and protocol from."},
	"method":          {Topic: topicInputs, Value: "METHOD", Types: []string{"string", "stringSlice"}, Text: "The RPC method: Run, or pkg.Service/Run; * matches any text in commands that select calls."},
	"once":            {Topic: topicInputs, Types: []string{"bool"}, Text: "Do not store the type of --as in the capture."},
	"parts":           {Topic: topicInputs, Types: []string{"bool"}, Text: "Treat each call separately, even if several calls form one stream."},
	"partial":         {Topic: topicInputs},
	"path":            {Topic: topicInputs, Value: "PATH", Types: []string{"string", "stringArray"}, Text: "Select the field at this path: field numbers joined by dots, such as 1.2."},
	"raw":             {Topic: topicInputs, Types: []string{"bool"}, Text: "Each input is a file with one serialized message."},
	"root":            {Topic: topicInputs, Value: "NAME", Types: []string{"string"}, Text: "With --raw: the name of the message type."},
	"start":           {Topic: topicInputs, Value: "FILE"},
	"default-capture": {Topic: topicInputs, Value: "F.uwc", Types: []string{"string"}, Text: "The capture for experiments that do not name one."},
	"suite":           {Topic: topicInputs, Value: "DIR", Types: []string{"string"}, Text: "A folder of experiments."},
	"traffic":         {Topic: topicInputs, Value: "F.uwc", Types: []string{"stringArray"}, Text: "A capture whose exchanges are listed if a change affects them."},
	"type":            {Topic: topicInputs, Value: "TYPE", Types: []string{"string"}, Text: "The full name of a message type, such as pkg.Message."},
	"weights":         {Topic: topicInputs, Value: "FILE"},
	"follow":          {Topic: topicInputs, Types: []string{"bool"}, Text: "Print data while it is recorded."},
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

	"filter":   {Topic: topicInputs, Value: "FILTER", Types: []string{"string"}, Text: "Select exchanges by this filter, such as method:Run code:!ok."},
	"no-pager": {Topic: topicOutput},
	"sort":     {Topic: topicOutput, Value: "COLUMN"},

	// Ways to record
	"listen":         {Topic: topicRecording, Value: "ADDRESS", Types: []string{"string"}, Text: "The loopback address at which the server listens, or only a port of 127.0.0.1."},
	"reverse":        {Topic: topicRecording, Value: "URL"},
	"also":           {Topic: topicRecording, Value: "URL"},
	"browser":        {Topic: topicRecording, Value: "URL"},
	"transparent":    {Topic: topicRecording},
	"no-namespace":   {Topic: topicRecording},
	"passive":        {Topic: topicRecording},
	"block-quic":     {Topic: topicRecording},
	"packets":        {Topic: topicRecording, Value: "FILE"},
	"share":          {Topic: topicRecording},
	"upstream-proxy": {Topic: topicRecording, Value: "URL"},
	"ui":             {Topic: topicRecording},
	"no-open":        {Topic: topicRecording, Types: []string{"bool"}, Text: "Print the URL of the page instead of opening it in a browser."},
	"rules":          {Topic: topicRecording, Value: "FILE"},
	"rules-schema":   {Topic: topicRecording},
	"intercept":      {Topic: topicRecording, Value: "FILTER"},
	"hold-time":      {Topic: topicRecording, Value: "TIME"},
	"hook":           {Topic: topicRecording, Value: "CMD"},
	"hook-match":     {Topic: topicRecording, Value: "FILTER"},
	"throttle":       {Topic: topicRecording, Value: "LIMIT"},

	// What is recorded
	"only":            {Topic: topicKept, Value: "GLOB"},
	"skip":            {Topic: topicKept, Value: "GLOB"},
	"max-body":        {Topic: topicKept, Value: "SIZE"},
	"quiet":           {Topic: topicOutput, Types: []string{"bool"}, Text: "Do not print a line for each exchange."},
	"verbose":         {Topic: topicOutput, Types: []string{"bool"}, Text: "Print more about each exchange or field."},
	"max-size":        {Topic: topicKept, Value: "SIZE"},
	"max-files":       {Topic: topicKept, Value: "N", Types: []string{"int"}, Text: "The maximum number of files to write."},
	"rotate":          {Topic: topicKept, Value: "SIZE|TIME"},
	"write-keylog":    {Topic: topicKept, Value: "FILE"},
	"keep-secrets":    {Topic: topicKept, Types: []string{"bool"}, Text: "Record tokens, cookies and keys without redaction."},
	"keep-unsearched": {Topic: topicKept, Types: []string{"bool"}, Text: "Copy payloads that cannot be searched for secrets."},
	"keep-headers":    {Topic: topicKept},
	"as-recorded":     {Topic: topicKept},

	// Edits
	"set":         {Topic: topicEdits, Value: "PATH[:KIND]=VALUE", Types: []string{"PATH[:KIND]=VALUE", "EDIT"}, Text: "Change the value of a field."},
	"add":         {Topic: topicEdits, Value: "PATH:KIND=VALUE", Types: []string{"PATH:KIND=VALUE", "EDIT"}, Text: "Add a field."},
	"del":         {Topic: topicEdits, Value: "PATH", Types: []string{"PATH", "EDIT"}, Text: "Delete a field."},
	"retype":      {Topic: topicEdits, Value: "PATH:KIND", Types: []string{"PATH:KIND", "EDIT"}, Text: "Change the type of a field, keeping its value."},
	"set-raw":     {Topic: topicEdits, Value: "PATH=HEX", Types: []string{"PATH=HEX", "EDIT"}, Text: "Replace the encoded bytes of a value, without validation."},
	"patch":       {Topic: topicEdits, Value: "FILE"},
	"edit":        {Topic: topicEdits, Value: "FRAME", Types: []string{"string", "bool"}, Text: "Edit a message as text in $VISUAL or $EDITOR."},
	"answer":      {Topic: topicEdits, Value: "PATH=@down/PATH"},
	"codec":       {Topic: topicEdits, Value: "CODEC", Types: []string{"string"}, Text: "How messages are written: json or proto."},
	"data":        {Topic: topicEdits, Value: "JSON", Types: []string{"string"}, Text: "The message, as text or as @FILE."},
	"header":      {Topic: topicEdits, Value: "NAME=VALUE"},
	"json-body":   {Topic: topicEdits, Value: "FILE"},
	"header-from": {Topic: topicEdits, Value: "NAME=COMMAND", Types: []string{"stringArray"}, Text: "Set a header to the output of a command."},
	"mark":        {Topic: topicEdits, Value: "WORD"},
	"remove":      {Topic: topicEdits, Value: "WHAT", Types: []string{"string", "bool"}, Text: "Remove something instead of adding it."},
	"write":       {Topic: topicEdits},
	"take-names":  {Topic: topicEdits},
	"take-types":  {Topic: topicEdits},
	"yes":         {Topic: topicEdits, Types: []string{"bool"}, Text: "Do not ask for confirmation."},
	"store":       {Topic: topicEdits, Value: "STORE", Types: []string{"stringSlice"}, Text: "A trust store: system, nss or java."},
	"hosts":       {Topic: topicEdits, Value: "HOST"},
	"label":       {Topic: topicEdits, Value: "PATH=ROLE"},
	"labels":      {Topic: topicEdits, Value: "FILE"},
	"hold":        {Topic: topicEdits, Value: "N"},

	// Held frames
	"drop":        {Topic: topicEdits},
	"release":     {Topic: topicEdits},
	"release-all": {Topic: topicEdits},
	"wait":        {Topic: topicInputs, Value: "TIME"},
	"forwarded":   {Topic: topicInputs, Types: []string{"bool"}, Text: "For data that rules changed, use what unwire forwarded, not what it received."},
	"numbered":    {Topic: topicOutput},

	// Before the request
	"after":      {Topic: topicBefore, Value: "IDS"},
	"learn":      {Topic: topicBefore, Types: []string{"bool"}, Text: "Send the unedited request twice first, and ignore the differences between the two answers."},
	"refresh":    {Topic: topicBefore},
	"agent-host": {Topic: topicBefore},

	// Questions
	"fields":    {Topic: topicQuestions, Value: "RANGES"},
	"depth":     {Topic: topicQuestions, Value: "N", Types: []string{"int"}, Text: "The number of levels of nested messages to probe."},
	"names":     {Topic: topicQuestions, Value: "SOURCE"},
	"values":    {Topic: topicQuestions, Value: "SOURCE"},
	"settle":    {Topic: topicQuestions, Value: "SOURCE"},
	"ask-names": {Topic: topicQuestions},
	"known":     {Topic: topicQuestions, Value: "NAMES", Types: []string{"stringSlice"}, Text: "JSON names of request fields that you know to exist; their type must not be float or double."},
	"repeats":   {Topic: topicQuestions, Value: "N"},
	"refine":    {Topic: topicQuestions, Types: []string{"bool"}, Text: "Distinguish text from bytes, at the cost of one more request per field."},
	"no-refine": {Topic: topicQuestions},

	"no-reflection": {Topic: topicQuestions},

	// Definitions
	"proto":          {Topic: topicDefinitions, Value: "DEFINITIONS", Types: []string{"string"}, Text: "The definitions: a folder of .proto files, a .proto file, a descriptor set, a capture, or reflect:URL for server reflection."},
	"package":        {Topic: topicDefinitions, Value: "PACKAGE", Types: []string{"string"}, Text: "The package of the inferred definitions."},
	"into":           {Topic: topicDefinitions, Value: "DEFINITIONS"},
	"evidence":       {Topic: topicDefinitions, Value: "FILE"},
	"descriptor-set": {Topic: topicDefinitions, Value: "FILE", Types: []string{"string"}, Text: "A file to write a FileDescriptorSet to."},

	// Server
	"to":                {Topic: topicServer, Value: "URL", Types: []string{"string"}, Text: "The server that requests go to."},
	"standin":           {Topic: topicServer, Types: []string{"bool"}, Text: "Start the stand-in and send all requests to it."},
	"protocol":          {Topic: topicServer, Value: "PROTOCOL", Types: []string{"string"}, Text: "The protocol of the requests."},
	"http2":             {Topic: topicServer, Types: []string{"bool"}, Text: "Use HTTP/2; over http:// without upgrade (prior knowledge)."},
	"transport":         {Topic: topicServer, Value: "HOW"},
	"upstream-ca":       {Topic: topicServer, Value: "PEM", Types: []string{"string"}, Text: "A file of additional CAs to trust for servers."},
	"upstream-insecure": {Topic: topicServer, Types: []string{"bool"}, Text: "Do not verify servers' certificates."},
	"client-cert":       {Topic: topicServer, Value: "[HOST=]PEM"},
	"client-key":        {Topic: topicServer, Value: "[HOST=]PEM"},
	"ca-file":           {Topic: topicServer, Value: "FILE"},
	"repeat":            {Topic: topicServer, Value: "HOW", Types: []string{"string"}, Text: "What to do when all equally similar recorded calls have been used."},
	"frame-wait":        {Topic: topicServer, Value: "TIME"},
	"min-similarity":    {Topic: topicServer, Value: "N"},
	"script":            {Topic: topicServer, Value: "FILE", Types: []string{"string"}, Text: "The script of the stand-in."},
	"seed":              {Topic: topicServer, Value: "N"},

	// Other machines and limits
	"live":             {Topic: topicSafety, Types: []string{"bool"}, Text: "Allow hosts other than this machine."},
	"allow-host":       {Topic: topicSafety, Value: "HOST", Types: []string{"stringSlice"}, Text: "A host to which --live allows requests."},
	"upload":           {Topic: topicSafety, Value: "URL", Types: []string{"string"}, Text: "The object store or folder that results are copied or moved to."},
	"store-endpoint":   {Topic: topicSafety, Value: "URL", Types: []string{"string"}, Text: "The S3 service of s3://BUCKET/… URLs."},
	"store-encryption": {Topic: topicSafety, Value: "HOW", Types: []string{"string"}, Text: "Ask the object store to encrypt objects: AES256, aws:kms or aws:kms:KEY."},
	"store-ca":         {Topic: topicSafety, Value: "PEM", Types: []string{"string"}, Text: "A file of additional CAs to trust for the object store."},
	"allow-execute":    {Topic: topicSafety, Types: []string{"bool"}, Text: "Also send requests after which another machine may execute the method."},
	"budget":           {Topic: topicSafety, Value: "N", Types: []string{"int"}, Text: "Send at most this many requests."},
	"live-budget":      {Topic: topicSafety, Value: "N", Types: []string{"int"}, Text: "Send at most this many requests to other machines."},
	"rate":             {Topic: topicSafety, Value: "N", Types: []string{"float64"}, Text: "Send at most this many requests per second."},
	"timeout":          {Topic: topicSafety, Value: "TIME", Types: []string{"duration"}, Text: "The deadline of one request."},
	"max-time":         {Topic: topicSafety, Value: "TIME", Types: []string{"duration"}, Text: "The deadline of a replay, including all its requests, or of a call."},
	"allow-send":       {Topic: topicSafety},

	// Secrets
	"credentials":  {Topic: topicSecrets, Value: "REFERENCE", Types: []string{"string"}, Text: "The source of secrets: a file, env:NAME, keyring:SERVICE/ACCOUNT or the name of a profile."},
	"omit-secrets": {Topic: topicSecrets, Types: []string{"bool"}, Text: "Leave out headers whose secret is missing."},
	"no-auth":      {Topic: topicSecrets, Types: []string{"bool"}, Text: "Send no credentials."},
	"secret-env":   {Topic: topicSecrets, Value: "NAME", Types: []string{"stringSlice"}, Text: "An environment variable whose value is an additional secret."},
	"secret-file":  {Topic: topicSecrets, Value: "FILE", Types: []string{"string"}, Text: "A file of additional secrets, one per line."},
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
	"client":       {Topic: topicOutput, Value: "PROGRAM"},
	"scope":        {Topic: topicOutput, Value: "SCOPE"},
	"name":         {Topic: topicOutput, Value: "NAME"},
	"output":       {Topic: topicOutput, Value: "FILE", Types: []string{"string"}, Text: "The output file, folder or capture; - is stdout for bytes and text."},
	"json":         {Topic: topicOutput, Types: []string{"bool"}, Text: "Print the result as JSON, one object per line."},
	"format":       {Topic: topicOutput, Value: "FORMAT", Types: []string{"string"}, Text: "The format of the output."},
	"journal":      {Topic: topicOutput, Value: "FILE", Types: []string{"string"}, Text: "A file to append every request and answer to."},
	"resume":       {Topic: topicOutput, Types: []string{"bool"}, Text: "Continue a journal: do not repeat the requests in it."},
	"dry-run":      {Topic: topicOutput, Types: []string{"bool"}, Text: "Print the plan, and do nothing."},
	"full":         {Topic: topicOutput, Types: []string{"bool"}, Text: "Print everything, without truncation."},
	"plain":        {Topic: topicOutput, Types: []string{"bool"}, Text: "Print only what is on the wire."},
	"hex":          {Topic: topicOutput, Types: []string{"bool"}, Text: "Also print the bytes."},
	"show-ignored": {Topic: topicOutput, Types: []string{"bool"}, Text: "Also list ignored differences."},
	"unmatched":    {Topic: topicOutput},
	"empty":        {Topic: topicOutput},
	"explain":      {Topic: topicOutput, Value: "PATH", Types: []string{"string"}, Text: "Explain the inferred type of the field at this path."},
	"choices":      {Topic: topicOutput},
	"copy":         {Topic: topicOutput, Value: "TOOL"},
	"timeline":     {Topic: topicOutput},
	"top":          {Topic: topicOutput, Value: "N", Types: []string{"int"}, Text: "List at most this many candidates."},
	"exchanges":    {Topic: topicOutput},
	"count":        {Topic: topicOutput},
	"context":      {Topic: topicOutput, Value: "N"},
	"side-by-side": {Topic: topicOutput},
	"html":         {Topic: topicOutput, Value: "FILE"},
	"list":         {Topic: topicOutput},

	// Flags of all commands
	"color":   {Topic: TopicGlobal, Value: "WHEN"},
	"profile": {Topic: TopicGlobal, Value: "PROFILE"},
}
