package transcript

// A feature is a property of a stream as a number from 0 (absent) to 1 (fully present).
type feature uint8

// The features of a stream, each from 0 to 1. Their weights are in the table below.
const (
	// prior: 1 for every stream: its weight is the prior of each role.
	prior feature = iota

	// down: sent by the server.
	down

	// up: sent by the client.
	up

	// later: sent by the client after the server began to answer.
	later

	// frames: in how many frames the path occurs: 1 at 256 frames, logarithmic.
	frames

	// deltas: many pieces that continue each other inside sentences.
	deltas

	// snapshots: pieces that grow: each contains the one before.
	snapshots

	// values: pieces that are separate values.
	values

	// constant: the same value in several frames.
	constant

	// long: the text's length: 1 at 10,000 bytes, logarithmic.
	long

	// languageLike: natural language: letters, words, spaces.
	languageLike

	// prose: natural language and length together.
	prose

	// identifier: a UUID, hexadecimal digits, a random identifier or a token.
	identifier

	// numeric: a number.
	numeric

	// address: a URL.
	address

	// path: a file path.
	path

	// jsonText: JSON, complete or in parts.
	jsonText

	// modelName: the name of a language model.
	modelName

	// detail: a version, media type, time zone, locale, time, header, e-mail address or tag.
	detail

	// name: one identifier of a program, such as read_file.
	name

	// instruct: worded as a prompt, a rule or a description.
	instruct

	// thinkTag: begins with a <think> tag.
	thinkTag

	// deliberating: worded as thinking about a task.
	deliberating

	// markdown: fenced code, headings, lists or tables, unless it is natural language.
	markdown

	// asks: one line or several that are questions by the server.
	asks

	// status: one short line that ends in dots or says what is being done.
	status

	// trailing: a few whole lines sent after the text had ended.
	trailing

	// past: sent by the client with the role of the assistant: an earlier answer.
	past

	// onlyChoice: a short value that is the only possible answer to a question.
	onlyChoice

	// twice: short, and repeated by the server in another frame.
	twice

	// replayed: sent by the server: complete messages that alternate with others of their path,
	// replayed: and come first.
	replayed

	// plainName: the name says content or answer, and the value is a word or a number.
	plainName

	// namesake: its path carries text of another kind too.
	namesake

	// echo: sent by the server after the client sent the same.
	echo

	// echoed: sent by the client and repeated by the server.
	echoed

	// beforeText: a stream of text that precedes a stream next to it.
	beforeText

	// afterText: a stream of text that follows a stream next to it.
	afterText

	// alone: in one frame only, while a stream next to it has many.
	alone

	// headline: one short line in one frame, without a full stop.
	headline

	// largest: its length as a share of the server's longest text.
	largest

	// inCall: next to an identifier and arguments or a tool's name.
	inCall

	// afterCall: next to the identifier of a call that was made before.
	afterCall

	// afterFirstCall: sent by the server, begun after the first call of a tool.
	afterFirstCall

	// lines: pieces that end lines.
	lines

	// besidePath: next to a file path, in a message of the client.
	besidePath

	// besideJSON: next to JSON, in a message of the client: a tool's name and schema.
	besideJSON

	// besideID: next to an identifier, in a message of the client.
	besideID

	// failed: the exchange failed as a whole.
	failed

	// repeats: its text is part of a better candidate's.
	repeats

	// bareJSON: JSON by the server without the name of a tool near it.
	bareJSON

	// storedText: from JSON of a message that is kept inside a field: history.
	storedText

	// noSigns: nothing in the exchange but its wording indicates a conversation.
	noSigns

	// saysText: the names of JSON members, or a kind next to it, say text or content.
	saysText

	// saysRole is the first of eight: a name or label suggests a role, in the order of
	// saysRole: roleOrder.
	saysRole
	featureCount = saysRole + feature(len(roleOrder))
)

// featureNames are the names of the features in reasons and in weights files.
var featureNames = [featureCount]string{
	"prior", "sent by the server", "sent by the client", "sent during the answer", "occurs in many frames", "deltas of one text", "growing snapshots",
	"separate values", "constant", "length", "language-like", "prose", "identifier", "number", "URL", "file path", "JSON", "model name", "header or setting",
	"program word", "worded as instructions", "think tag", "worded as thinking", "Markdown", "asks", "status line", "trails the text", "answered before", "the only choice", "said twice", "begins a replayed conversation", "named as the answer", "shares its path with text", "echo of the request", "repeated by the server", "precedes the answer", "follows the thinking",
	"single beside a stream", "headline", "longest text", "in a tool call", "follows a tool call", "begins after a tool call", "pieces are lines", "beside a file path", "beside JSON", "beside an id", "failed exchange",
	"repeats a better candidate", "JSON without a tool", "in a stored message", "no sign of a conversation", "named text", "named assistant", "named thinking", "named tool call", "named tool result", "named user",
	"named system", "named metadata", "named id",
}

// weights is the built-in model: what one unit of a feature adds to the log odds of each
// role.
//
// The weights were set by hand from the meaning of the features and then corrected on
// generated exchanges (generate_test.go): random schemas, depths, languages, splits and
// decoys, seeds 1 to 4000. The tests' minimum accuracy is measured on other seeds of the
// same generator. It shows that the weights are not fitted to single exchanges; it does
// not show that real services look like these. No capture of a real service was used.
var weights = [featureCount][len(roleOrder)]float64{
	//           assistant thinking call  result user  system meta  id
	prior:          {-1.5, -3.0, -2.0, -3.0, -1.0, -3.5, 0.0, -2.0},
	down:           {1.5, 1.5, 1.0, 0.0, -2.5, -1.0, 0.3, 0.0},
	up:             {-7.0, -7.0, -5.0, 0.0, 2.0, 1.0, 0.5, 0.0},
	later:          {0.0, 0.0, 0.0, 2.0, -1.0, -1.5, 0.5, 0.0},
	frames:         {2.0, 1.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0},
	deltas:         {2.5, 2.5, 0.5, 1.0, -1.0, -2.0, -3.0, -3.0},
	snapshots:      {2.0, 1.5, 0.5, 0.5, -1.0, -2.0, -2.0, -3.0},
	values:         {-2.0, -2.0, 0.5, 0.0, -2.0, 0.5, 1.0, 0.5},
	constant:       {-3.0, -3.0, -1.0, -1.0, -0.5, -0.5, 1.5, 1.0},
	long:           {1.0, 0.8, 0.0, 0.8, 0.0, 0.5, -1.5, -1.0},
	languageLike:   {3.0, 3.0, -1.5, 0.5, 3.0, 2.0, -2.0, -5.0},
	prose:          {1.5, 1.0, 0.0, 0.0, 0.5, 0.5, -2.0, -2.0},
	identifier:     {-6.0, -6.0, -4.0, -4.0, -6.0, -6.0, -0.5, 5.0},
	numeric:        {-2.5, -4.0, -2.0, -1.0, -2.0, -4.0, 2.0, 0.5},
	address:        {-1.5, -3.0, -1.0, -1.0, -1.5, -3.0, 2.5, 0.0},
	path:           {-3.0, -4.0, 1.0, -0.5, -3.0, -3.0, 1.5, 0.0},
	jsonText:       {-3.5, -3.5, 3.0, 1.0, -3.0, 0.0, 0.5, 0.0},
	modelName:      {-5.0, -5.0, -3.0, -3.0, -4.0, -4.0, 4.0, 0.0},
	detail:         {-4.0, -4.0, -2.0, -2.0, -4.0, -4.0, 3.5, 0.0},
	name:           {-1.5, -3.0, 0.0, -1.0, -1.5, -3.0, 1.5, -0.5},
	instruct:       {-4.0, -3.0, 0.0, -0.5, -3.5, 4.0, 0.0, 0.0},
	thinkTag:       {0.0, 1.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0},
	deliberating:   {-1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0},
	markdown:       {2.5, -0.5, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0},
	asks:           {-3.5, -3.5, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0},
	status:         {-3.0, -3.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0},
	trailing:       {-3.0, -3.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0},
	past:           {9.0, -1.0, 0.0, 0.0, -2.0, 0.0, 0.0, 0.0},
	onlyChoice:     {9.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0},
	twice:          {3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0},
	replayed:       {-4.0, -3.0, 0.0, 0.0, 6.0, 0.0, 0.0, 0.0},
	plainName:      {4.0, 0.0, -1.0, 0.0, 0.0, 0.0, -2.0, -1.0},
	namesake:       {3.5, 1.0, 0.0, 0.0, 0.0, 0.0, -1.5, 0.0},
	echo:           {-5.0, -4.0, -1.0, -1.0, 5.5, 2.0, 0.5, 0.0},
	echoed:         {0.0, 0.0, 0.0, 0.0, 1.5, 0.0, 0.0, 0.0},
	beforeText:     {-2.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0},
	afterText:      {2.0, -3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0},
	alone:          {-3.0, -2.5, 0.0, 0.5, 0.0, 0.5, 2.0, 0.0},
	headline:       {-2.0, -2.5, 0.0, 0.0, -0.3, -0.5, 1.0, 0.0},
	largest:        {1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0},
	inCall:         {-2.5, -2.5, 3.0, 0.3, 0.0, 0.0, -0.5, -0.5},
	afterCall:      {-4.0, -3.0, -0.5, 4.5, -2.0, -1.0, 0.0, 0.0},
	afterFirstCall: {-1.0, -2.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0},
	lines:          {-2.5, -3.0, 0.0, 3.0, 0.0, 0.0, 0.5, 0.0},
	besidePath:     {-1.0, -1.0, 0.0, 0.5, -3.0, 1.0, 2.0, 0.0},
	besideJSON:     {-1.0, -1.0, 0.0, 0.0, -3.0, 1.0, 1.0, 0.0},
	besideID:       {0.0, 0.0, 0.0, 0.0, 0.7, 0.0, 0.0, 0.0},
	failed:         {-9.0, -9.0, -4.0, -4.0, 0.0, 0.0, 4.0, 0.0},
	repeats:        {-1.0, -2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0},
	bareJSON:       {3.0, 0.0, -4.0, -1.0, 0.0, 0.0, 0.0, 0.0},
	storedText:     {-4.0, -2.0, 0.0, 0.0, 0.5, 1.0, 1.5, 0.5},
	noSigns:        {-57.0, -57.0, -57.0, -57.0, -57.0, -57.0, 3.0, 3.0},
	saysText:       {0.7, 0.0, -0.3, 0.0, 0.7, 0.0, -0.5, -1.0},

	saysRole + 0: {4.0, -1.0, 0.0, 0.0, -2.0, -1.0, -1.0, 0.0},
	saysRole + 1: {-2.0, 4.5, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0},
	saysRole + 2: {-2.0, -2.0, 3.0, 0.5, -1.0, 0.0, 0.0, 0.0},
	saysRole + 3: {-2.0, -2.0, 0.0, 3.5, -1.0, 0.0, 0.0, 0.0},
	saysRole + 4: {-2.0, -1.0, 0.0, 0.0, 3.0, -1.0, -0.5, 0.0},
	saysRole + 5: {-2.0, -1.0, 0.0, 0.0, -1.0, 4.0, 0.5, 0.0},
	saysRole + 6: {-2.5, -2.0, -0.5, -0.5, -1.5, -1.0, 2.0, 0.0},
	saysRole + 7: {-3.0, -3.0, -1.0, -1.0, -2.0, -2.0, 0.5, 2.0},
}

// defaultTemperature is the temperature at which scores are best calibrated: nearest to the
// share of candidates that are right (temperature scaling, Guo et al. 2017,
// https://arxiv.org/abs/1706.04599). TestEvalCalibration measures it.
const defaultTemperature = 1.0
