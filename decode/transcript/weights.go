package transcript

// A feature is a property of a stream, from 0 to 1.
type feature uint8

const (
	prior feature = iota // the prior of each role
	down                 // sent by the server
	up                   // sent by the client
	// By the client, after the server has begun to answer.
	later
	frames // in how many frames the path occurs: 1 at 256
	// Many pieces that continue each other in mid-sentence.
	deltas
	snapshots    // pieces that grow
	values       // pieces that are values of their own
	constant     // the same value in several frames
	long         // the text's length: 1 at 10,000 bytes
	languageLike // language: letters, words, spaces
	prose        // language and length together
	identifier   // UUID, hex, random id, token
	numeric      // a number
	address      // a URL
	path         // a file path
	jsonText     // JSON, whole or in parts
	modelName    // the name of a language model
	// A version, media type, time zone, locale, time, header, e-mail address, tag.
	detail
	name         // one word of a program's making
	instruct     // worded as a prompt, a rule or a description
	thinkTag     // begins with a <think> tag
	deliberating // worded as thinking about a task
	// Fenced code, headings, lists, tables, where it is not language.
	markdown
	// One line or several that are questions, by the server.
	asks
	// One short line that ends in dots, or says what is being done.
	status
	trailing // a few whole lines when the text had ended
	// By the client, beside the role of the assistant: said before.
	past
	// Of short values, what is left where the user asked and nothing else answers.
	onlyChoice
	// Short, and sent again by the server in another frame.
	twice
	// By the server: whole messages that take turns with others of their path, and
	// begin.
	replayed
	// The name says content or answer, and the value is a word or a number.
	plainName
	namesake   // its path carries text of another kind, too
	echo       // by the server: the client sent it, too
	echoed     // by the client: the server repeated it
	beforeText // a stream of text that precedes its sibling
	afterText  // one that follows its sibling
	alone      // in one frame, where a sibling streams
	headline   // one short line in one frame, without a stop
	largest    // its length against the server's longest text
	inCall     // beside an id and arguments or a tool's name
	afterCall  // beside the id of a call that was made before
	// By the server, begun after the first call of a tool.
	afterFirstCall
	lines      // pieces that end lines
	besidePath // beside a file path, in a message of the client
	// Beside JSON, in a message of the client: a tool's name and schema.
	besideJSON
	besideID // beside an id, in a message of the client
	failed   // the exchange failed as a whole
	repeats  // its text is part of a better candidate's
	bareJSON // JSON by the server, with no name of a tool near
	// From the JSON of a message that is kept inside a field: history.
	storedText
	// The names of JSON members, or a kind beside it, say text or content.
	saysText
	// First of eight: they say a role, in the order of roleOrder.
	saysRole
	featureCount = saysRole + feature(len(roleOrder))
)

// featureNames are the words of reasons.
var featureNames = [featureCount]string{
	"prior", "sent by the server", "sent by the client", "sent during the answer", "occurs in many frames", "deltas of one text", "growing snapshots",
	"separate values", "constant", "length", "language-like", "prose", "identifier", "number", "URL", "file path", "JSON", "model name", "header or setting",
	"program word", "worded as instructions", "think tag", "worded as thinking", "Markdown", "asks", "status line", "trails the text", "answered before", "the only choice", "said twice", "begins a replayed conversation", "named as the answer", "shares its path with text", "echo of the request", "repeated by the server", "precedes the answer", "follows the thinking",
	"single beside a stream", "headline", "longest text", "in a tool call", "follows a tool call", "begins after a tool call", "pieces are lines", "beside a file path", "beside JSON", "beside an id", "failed exchange",
	"repeats a better candidate", "JSON without a tool", "in a stored message", "named text", "named assistant", "named thinking", "named tool call", "named tool result", "named user",
	"named system", "named metadata", "named id",
}

// weights are what one unit of a feature adds to the log odds of each role.
//
// They were set by hand, from what the features mean, and then corrected on
// exchanges that a generator made (generate_test.go): random schemas, depths,
// languages, splits and decoys, seeds 1 to 4000. The floors of the tests are
// measured on other seeds of the same generator, so they say that the weights
// are not fitted to single exchanges, not that real services look like these.
// No capture of a real service has been used.
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

// defaultTemperature is the temperature at which scores are nearest to the share of
// candidates that are right; see TestEvalCalibration.
const defaultTemperature = 1.0
