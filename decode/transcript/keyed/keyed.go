// Package keyed is the second of three steps that read a conversation from what the wire itself marks: it finds the
// pieces of texts, of calls of tools and of their results in events, each with the keys that say which of them belong
// together.
//
// Events of package event go in, Pieces come out, in order; package part joins them:
//
//	for _, p := range keyed.Find(event.Read(ex)).Pieces {
//		fmt.Println(p.Speaker, p.Channel, p.Keys, p.Text)
//	}
//
// What counts is structure and the marks of the wire: roles, the values of discriminators ("text_delta"), lists of
// messages, and the names of members, in this order (see vocabulary.go). A mark of an outer object applies to
// everything in it until an inner one overrides it. The wording of texts is not looked at.
package keyed

import (
	"slices"
	"strconv"
	"strings"

	"unwire/captures"
	"unwire/decode/jsontree"
	"unwire/decode/transcript/event"
	"unwire/decode/transcript/ident"
	"unwire/decode/transcript/naming"
)

// A Speaker is the author of a text in a conversation.
type Speaker uint8

// The speakers. Tool is only used while results are recognised.
const (
	// Nobody means that no author is marked.
	Nobody Speaker = iota

	// User is a person, and Assistant a model.
	User
	Assistant

	// System is the author of instructions to the model, and Tool a program that the model calls.
	System
	Tool
)

// A Channel is the part of a conversation that a piece belongs to: a text, thinking, or a tool call.
type Channel uint8

const (
	// Unmarked is an ordinary text of its speaker; for the assistant it is the answer.
	Unmarked Channel = iota

	// Thought is thinking before an answer.
	Thought

	// Call is a call of a tool, and Result the result of such a call.
	Call
	Result

	// ignored is a text about something else, such as a citation.
	ignored
)

// A Key is an index or an identifier in the objects around a piece, by which pieces of one text are recognised.
type Key struct {
	// Name is the folded name of the member, and Value its value.
	Name, Value string

	// Index means that the value is a number.
	Index bool
}

// A Piece is a string or an object in an event that is (a part of) a text, a call of a tool, or a result.
type Piece struct {
	// Frame is the index of the frame in the exchange, counted over both directions.
	Frame int

	// Seq is the number of the frame in its direction, from 0.
	Seq int

	// Dir is the direction of the frame.
	Dir captures.Direction

	// Event is the index of the event in the exchange.
	Event int

	// Path is the path of the piece: the names of JSON members, or the protobuf field numbers, joined by dots,
	// without indexes.
	Path string

	// Type are the values of the discriminators (members such as "type") in the objects around the piece.
	Type string

	// Speaker is the author, for example the user or the model.
	Speaker Speaker

	// Channel is the part of the conversation that the piece belongs to: a text, thinking, a tool call or its
	// result.
	Channel Channel

	// Tier says how explicit the names and roles around the piece are, from 0 (a name such as "value") to 3 (a
	// role).
	Tier int

	// Delta means that names or types in the message declare the piece a part of a longer text.
	Delta bool

	// Whole means that names or types in the message declare the piece complete.
	Whole bool

	// Final means that an object around the piece says that the text has ended, such as by a finish reason. Its text
	// may be the whole.
	Final bool

	// Replaces means that the type declares that the piece replaces all that was said before.
	Replaces bool

	// Bare means that the piece is the whole data of a plain text event.
	Bare bool

	// Coded means that only a code before the message, such as "0", tells the text from others.
	Coded bool

	// Keys are the indexes and identifiers around the piece, from the outermost object to the innermost.
	Keys []Key

	// Choice identifies one of several alternative answers; "" for none.
	Choice string

	// Message is the number of the message in a list, from 1; 0 outside of lists.
	Message int

	// Text is the text, the arguments of a call, or a result.
	Text string

	// ID is the identifier of a tool call, also in its result; "" if the piece does not have one.
	ID string

	// Name is the name of the called tool, for a call or a result; "" if the piece does not have one.
	Name string

	// Object means that Text is the JSON of an object, which is always complete.
	Object bool

	// Guessed means that Text has the name of any text, so that it is (a piece of) the arguments of a call only if it is
	// JSON.
	Guessed bool
}

// A Count is a number of tokens that the server reported.
type Count struct {
	// Frame is the index of the frame in the exchange, counted over both directions.
	Frame int

	// Seq is the number of the frame in its direction, from 0.
	Seq int

	// Path is the path of the number: the names of JSON members joined by dots.
	Path string

	// Field says which tokens are counted, such as those of the input; it is a constant of package naming.
	Field int

	// Value is the number.
	Value int64
}

// An Error is an error in the messages of the server.
type Error struct {
	// Frame is the index of the frame in the exchange, Seq its number in its direction.
	Frame, Seq int

	// Code and Message are the error's code and text as the server sent them, or "".
	Code, Message string
}

// Pieces are the parts of a conversation that were found in the events of an exchange.
type Pieces struct {
	// List has the pieces in the order in which they were sent.
	List []Piece

	// Counts are the numbers of tokens that the server sent.
	Counts []Count

	// Errors are the errors that the server sent.
	Errors []Error

	// Messages is the number of messages with a role that the client sent.
	Messages int

	// Model means that the client sent settings of a model, such as its name or a temperature, and Asked that it sent
	// a text under a name such as "prompt".
	Model, Asked bool

	// Finished means that the server reports why the model stopped, under a name such as "finish_reason".
	Finished bool

	// ModelStopped means that the reason is one that only models have, such as "tool_use".
	ModelStopped bool
}

// maxPieces is the maximum number of pieces (texts, calls, results) that are found in an exchange.
const maxPieces = 1 << 20

// A finder finds the pieces of a conversation in one event after another.
type finder struct {
	// out are the pieces, token counts and errors found so far.
	out *Pieces

	// event is the event (one JSON message or text) that is being searched.
	event event.Event

	// at is the index of event in the exchange.
	at int

	// messages is the number of chat messages found in lists so far. It numbers them across all events.
	messages int

	// document is what patches have built so far.
	document document

	// authors are the authors of messages by their identifiers, for texts in other events that refer to a message.
	authors map[string]Speaker

	// announced are the marks of texts by a key that their pieces have, too.
	announced map[Key]announcement

	// called are the names of the tools that were called so far.
	called map[string]bool

	// structured means that the server sent objects. Then a word between them, such as "end", is not a text.
	structured bool

	// compounds caches the meanings of names.
	compounds map[string]compound
}

// A scope has the properties, such as the author, that the JSON objects around a value determine for the value.
type scope struct {
	// path are the names of the JSON members that lead from the event to the value.
	path []string

	// types are the values of the discriminators (members such as "type") in the objects around the value.
	types string

	// speaker is the author of the value, for example the user or the model.
	speaker Speaker

	// channel is the part of the conversation that the value belongs to: a text, thinking, a tool call or its
	// result.
	channel Channel

	// status means that a type says that the object around the value reports a state of the server.
	status bool

	// tier says how explicit the names and roles around the value are, from 0 (a name such as "value") to 3 (a
	// role).
	tier int

	// text means that the words of the innermost name say that the value is a text.
	text bool

	// delta means that names or types declare the value a part of a longer text.
	delta bool

	// whole means that names or types declare the value complete.
	whole bool

	// final means that an object around the value says that the text has ended.
	final bool

	// replaces means that the type declares that the value replaces all that was said before.
	replaces bool

	// keys are the indexes and identifiers around the value, from the outermost object to the innermost. Pieces of
	// one text have the same ones.
	keys []Key

	// choice identifies one of several alternative answers; "" for none.
	choice string

	// message is the number of the chat message, from 1, in a list of messages; 0 outside of lists.
	message int

	// id is the identifier of the tool call of which the value is the result; "" if the value is not a result or
	// has none.
	id string

	// name is the name of the tool of which the value is the result; "" if the value is not a result or has none.
	name string
}

// Find finds the pieces in the events of an exchange.
func Find(events []event.Event) *Pieces {
	f := &finder{out: &Pieces{}, compounds: make(map[string]compound), authors: make(map[string]Speaker), announced: make(map[Key]announcement), called: make(map[string]bool)}
	f.structured = slices.ContainsFunc(events, func(e event.Event) bool { return e.Dir == captures.Down && e.Root.Kind == jsontree.Object })
	for i, e := range events {
		f.event, f.at = e, i
		var sc scope
		if e.Name != "" && !isEnvelope(e.Root) {
			sc.applyType(e.Name)
		}
		if e.Root.Kind == jsontree.String {
			f.plainText(sc)
			continue
		}
		if e.Dir == captures.Up {
			f.out.Model = f.out.Model || hasSettings(e.Root, 0)
		}
		if e.Dir == captures.Down {
			f.findError(e.Root)
		}
		f.markSigned()
		before := len(f.out.List)
		f.visitValue(e.Root, sc)
		f.announce(before)
		if e.Dir == captures.Down {
			f.document.remember(e.Root)
		}
	}
	return f.out
}

// isEnvelope reports whether an event only wraps another one, of which its name, such as "chunk", says nothing.
func isEnvelope(n *event.Node) bool {
	return len(n.Items) == 1 && n.Items[0].Fold == "bytes" && n.Items[0].Kind == jsontree.Object
}

// known reports whether the scope marks a value as a piece of a conversation.
func (sc *scope) known() bool { return sc.channel != Unmarked || sc.speaker != Nobody || sc.delta }

// applyType updates the scope by word, the value of a discriminator (a member such as "type") or the name of the
// event.
func (sc *scope) applyType(word string) {
	t := typeOf(word)
	sc.addType(word)
	if t.speaker != Nobody {
		sc.speaker = t.speaker
	}
	if t.channel != Unmarked && sc.channel != ignored {
		sc.channel, sc.status = t.channel, t.status
	}
	if t.text && t.channel == Unmarked && (sc.channel == Call || sc.channel == Thought) && !t.delta && !strings.Contains(word, ".") {
		// A block of text inside of a call or of thinking stays what it is.
		t.text = false
	}
	sc.delta = sc.delta && !t.whole || t.delta
	sc.whole = sc.whole && !t.delta || t.whole
	sc.replaces = t.replaces
	if t.text || t.channel == Thought || t.speaker == Assistant {
		sc.tier = max(sc.tier, 1)
		if t.delta || t.speaker == Assistant {
			sc.tier = max(sc.tier, 2)
		}
	}
}

// addType adds the value of a discriminator to the types.
func (sc *scope) addType(word string) {
	if sc.types += "/" + word; len(sc.types) > maxTypes {
		sc.types = sc.types[:maxTypes]
	}
}

// maxTypes is the maximum size in bytes of scope.types.
const maxTypes = 400

// visitValue finds the pieces in a value. sc has the properties from the objects around it.
func (f *finder) visitValue(n *event.Node, sc scope) {
	if len(f.out.List) >= maxPieces {
		return
	}
	switch n.Kind {
	case jsontree.Object:
		// The marks of an object apply to everything in it.
		f.visitObject(n, sc)
	case jsontree.Array:
		f.visitArray(n, sc)
	case jsontree.String:
		f.visitText(n, sc)
	case jsontree.Number:
		f.visitNumber(n, sc)
	}
}

// visitArray finds the pieces in the elements of an array.
func (f *finder) visitArray(n *event.Node, sc scope) {
	// The elements of a list of choices are alternatives: only the first is the answer.
	choices := choiceNames[n.Fold]
	for i, item := range n.Items {
		inner := sc
		if item.Fold == "" {
			// An element has the name of its array.
			element := *item
			element.Name, element.Fold = n.Name, n.Fold
			item = &element
		}
		if choices {
			inner.choice = strconv.Itoa(i)
			if m := item.Member("index"); m != nil {
				inner.choice = m.Text
			}
			inner.tier = max(inner.tier, 2)
		}
		if isMessage(item) {
			f.messages++
			inner.message = f.messages
			if f.event.Dir == captures.Up && hasContent(item) {
				f.out.Messages++
			}
		}
		f.visitValue(item, inner)
	}
}

// settings are names of members in requests that configure a model.
var settings = set(`model modelid modelname stream maxtokens maxnewtokens maxoutputtokens maxcompletiontokens temperature topp topk npredict numpredict generationconfig
	inferenceconfig`)

// hasSettings reports whether object n, or an object in it, has a member that configures a model.
func hasSettings(n *event.Node, depth int) bool {
	if n.Kind != jsontree.Object {
		return false
	}
	for _, m := range n.Items {
		if settings[m.Fold] && m.Kind != jsontree.Null || depth < 1 && hasSettings(m, depth+1) {
			return true
		}
	}
	return false
}

// isDiscriminator reports whether the value of a member with that name names the kind of an object.
func isDiscriminator(fold string) bool {
	switch fold {
	case "event", "object", "sessionupdate", "typename", "classification", "channel", "phase", "stage":
		return true
	}
	return strings.HasSuffix(fold, "kind") || strings.HasSuffix(fold, "type") && fold != "contenttype" && fold != "mimetype" && fold != "mediatype"
}

// visitObject finds the pieces in an object.
func (f *finder) visitObject(n *event.Node, sc scope) {
	if len(sc.path) > maxPath {
		return
	}
	if f.event.Dir == captures.Down && !f.document.visited {
		if p, ok := f.document.patchOf(n); ok {
			f.visitPatch(p, sc, 0)
			return
		}
	}
	f.applyMarks(n, &sc)
	if f.visitCall(n, sc) {
		return
	}
	hasDelta := n.Member("delta") != nil
	for _, m := range n.Items {
		inner := sc
		if hasDelta {
			f.applyDelta(n, m, &inner)
		}
		if isStatusText(n, m) {
			inner.channel = ignored
		}
		f.visitMember(m, inner)
	}
}

// visitCall adds the pieces of object n if it is a call or a result. Otherwise it returns false.
func (f *finder) visitCall(n *event.Node, sc scope) bool {
	switch {
	case isCall(n) && sc.channel == Result && sc.speaker == Nobody && f.addCall(n, sc):
		// Its name and arguments say more than a type such as "actionOutput".
		return true
	case sc.channel != Call && (isResult(n) || f.isReturn(n)) && f.addResult(n, sc):
		return true
	case sc.speaker == Tool && sc.channel == Call && slices.ContainsFunc(n.Items, isToolName) && slices.ContainsFunc(n.Items, isCallID) && f.addCall(n, sc):
		// The role of a message with a call may be that of the tool.
		return true
	case sc.speaker == Tool && sc.channel != Result, sc.channel == Result:
		return f.addResult(n, sc)
	case sc.channel == Call || isCall(n):
		return f.addCall(n, sc)
	}
	return false
}

// applyMarks updates the scope by the members of object n: discriminators, roles, flags, indexes and identifiers.
func (f *finder) applyMarks(n *event.Node, sc *scope) {
	f.applyTypes(n, sc)
	sc.final = sc.final || f.event.Dir == captures.Down && hasEnded(n)
	if s := speakerOf(n); s != Nobody {
		sc.speaker, sc.tier = s, 3
		if f.event.Dir == captures.Up && sc.message == 0 && hasContent(n) {
			f.out.Messages++
		}
	}
	if n.Is("thought") || n.Is("isthought") || n.Is("isthinking") || n.Is("isreasoning") {
		sc.channel = Thought
	}
	if n.Is("partial") || n.Is("ispartial") {
		sc.delta = true
	}
	f.identify(n, sc)
	if isAside(n) {
		sc.channel = ignored
	}
}

// applyTypes updates the scope by the discriminators among the members of object n.
func (f *finder) applyTypes(n *event.Node, sc *scope) {
	for _, m := range n.Items {
		switch {
		case m.Kind == jsontree.Number && isDiscriminator(m.Fold):
			// A number distinguishes kinds, but does not say what they are.
			sc.addType(m.Text)
		case m.Kind != jsontree.String:
		case isDiscriminator(m.Fold) && naming.IsKind(m.Text):
			sc.applyType(m.Text)
			if f.called[m.Text] && sc.channel == Unmarked {
				// What has the name of a tool as its type comes from the tool.
				sc.channel = Result
			}
		case m.Fold == "method" && naming.IsKind(strings.ReplaceAll(m.Text, "/", ".")):
			// A notification of JSON-RPC, such as item/agentMessage/delta.
			sc.applyType(strings.ReplaceAll(m.Text, "/", "."))
		}
	}
}

// maxPath is the maximum nesting of members that is searched.
const maxPath = 60

// indexNames are names of members that number the objects of a list.
var indexNames = set(`index outputindex contentindex contentblockindex blockindex itemindex toolindex toolcallindex partindex summaryindex choiceindex candidateindex idx
	callid toolcallid block part item segment slot section`)

// identify adds the indexes and identifiers of an object to the scope.
func (f *finder) identify(n *event.Node, sc *scope) {
	keys := sc.keys
	for _, m := range n.Items {
		isIndex := m.Kind == jsontree.Number && indexNames[m.Fold]
		isID := m.Kind == jsontree.String && m.Text != "" && (m.Fold == "id" || strings.HasSuffix(m.Fold, "id")) && len(m.Text) <= maxID
		// An index next to a choice identifies the choice.
		if isIndex && (choiceNames[n.Fold] || m.Fold == "choiceindex" || m.Fold == "candidateindex") {
			sc.choice = m.Text
			continue
		}
		if isID && sc.speaker == Nobody && strings.HasSuffix(m.Fold, "messageid") {
			sc.speaker = f.authors[m.Text]
		}
		if isID && m.Fold == "id" && len(f.authors) < maxAuthors {
			if s := speakerOf(n); s != Nobody {
				f.authors[m.Text] = s
			}
		}
		if isIndex || isID {
			keys = append(keys[:len(keys):len(keys)], Key{m.Fold, m.Text, isIndex})
		}
	}
	sc.keys = keys
}

// maxAuthors is the maximum number of messages whose authors are kept.
const maxAuthors = 10_000

// maxID is the maximum size in bytes of an identifier.
const maxID = 200

// visitMember finds the pieces in a member of an object.
func (f *finder) visitMember(m *event.Node, sc scope) {
	name := m.Fold
	isText := m.Kind == jsontree.String
	if isText && (isDiscriminator(name) || name == "contenttype") {
		return
	}
	if f.event.Dir == captures.Down && isText && finishNames[name] && m.Text != "" {
		f.out.Finished = true
		f.out.ModelStopped = f.out.ModelStopped || modelStops[naming.Fold(m.Text)]
	}
	sc.path, sc.text = append(sc.path[:len(sc.path):len(sc.path)], m.Name), false

	bare := sc.applyForm(m)
	c, ok := f.compounds[m.Name]
	if !ok {
		c = compoundOf(m.Name)
		f.compounds[m.Name] = c
	}
	sc.applyName(m, bare, c, f.event.Dir)
	if c.speaker != Nobody && f.event.Dir == captures.Up && m.Kind == jsontree.Object && hasContent(m) {
		f.out.Messages++
	}
	f.visitValue(m, sc)
}

// applyForm updates the scope if the name of member m, such as contentBlockDelta, says that it is a part of a text. It
// returns the folded name without that.
func (sc *scope) applyForm(m *event.Node) (bare string) {
	isText := m.Kind == jsontree.String
	bare = strings.TrimSuffix(strings.TrimSuffix(m.Fold, "delta"), "chunk")
	// An object called chunk is often the event itself, which may be anything.
	if bare == m.Fold || bare == "" && m.Fold != "delta" && !isText {
		return bare
	}
	sc.delta, sc.whole = true, false
	if sc.status {
		// What progresses is a text, and not the state of the server.
		sc.channel, sc.status = Unmarked, false
	}
	sc.tier = max(sc.tier, 1)
	if !isText || m.Fold == "delta" {
		sc.tier = max(sc.tier, 2)
	}
	return bare
}

// applyName updates the scope by the name of member m. bare is the name without a suffix such as "delta", and
// c the meaning of the words of the name.
func (sc *scope) applyName(m *event.Node, bare string, c compound, dir captures.Direction) {
	name := m.Fold
	isText := m.Kind == jsontree.String
	inCall := sc.channel == Call || sc.channel == Result
	switch {
	case isSkipped(m, sc.channel), dir == captures.Down && (echoNames[name] || strings.HasSuffix(name, "input")) && !inCall:
		sc.channel = ignored
	case sc.channel == ignored:
	case !isText && has(callNames, name, bare, strings.TrimSuffix(name, "s")):
		sc.channel = Call
	case !isText && resultNames[name]:
		sc.channel = Result
	case has(thoughtNames, name, bare):
		sc.channel = Thought
	case systemNames[name] && sc.message == 0 && dir == captures.Up:
		sc.speaker = System
	case !isText || c.channel == Thought || c.channel == Unmarked && c.text && !inCall:
		sc.named(c.inDirection(dir, isText))
	}
}

// isSkipped reports whether member m contains neither texts of the conversation nor tokens. channel is the part of the
// conversation that the object around it belongs to.
func isSkipped(m *event.Node, channel Channel) bool {
	switch {
	case skippedNames[m.Fold]:
		return m.Fold != "documents" || channel != Result
	case m.Kind == jsontree.String || channel == Call || channel == Result:
		return false
	}
	return typeOf(m.Name).channel == ignored
}

// named updates the scope by the meaning of the words of a name.
func (sc *scope) named(c compound) {
	if c.speaker != Nobody {
		sc.speaker, sc.tier = c.speaker, max(sc.tier, 2)
	}
	if c.channel != Unmarked {
		sc.channel = c.channel
	}
	sc.text = c.text
}

// finishNames are names of members that contain the reason why a model stopped.
var finishNames = set(`finishreason stopreason donereason stoptype completionreason`)

// modelStops are reasons why a model stops, and hardly anything else.
var modelStops = set(`endturn tooluse toolcalls maxtokens stopsequence functioncall contentfilter`)

// visitText adds a string as a piece, if its name or the scope marks it as a text of the conversation.
func (f *finder) visitText(n *event.Node, sc scope) {
	if n.Text == "" && !sc.replaces || n.Text == event.EndMark || sc.channel == ignored || sc.channel == Call {
		return
	}
	up := f.event.Dir == captures.Up
	tier, ok := sc.tierOf(n, up)
	if !ok {
		return
	}
	sc.tier = max(sc.tier, tier)
	// A client that names nobody speaks for the user.
	if up && sc.speaker == Nobody {
		f.addQuestion(n, sc)
		return
	}
	f.addText(n.Text, sc)
}

// tierOf returns how explicitly the name of string n and the scope mark it as a text of the conversation. ok is false
// if they do not. up means that the client sent it.
func (sc *scope) tierOf(n *event.Node, up bool) (tier int, ok bool) {
	isText := textNames[n.Fold] || sc.text
	switch {
	case sc.channel == Thought:
		return 2, isText || isThoughtName(n)
	case up && sc.speaker == System && sc.message == 0:
		return 0, isText || systemNames[n.Fold] || n.Fold == "parts"
	case isText:
		return 1, true
	}
	return 0, weakNames[n.Fold] && !isIdentifier(n.Text) || up && sc.speaker == Nobody && isAsked(n)
}

// isIdentifier reports whether s is an identifier and too long to be a piece of a text.
func isIdentifier(s string) bool { return len(s) >= leastIdentifier && ident.Of(s) != "" }

// leastIdentifier is the minimum size in bytes of an identifier that is recognised by its letters and digits.
const leastIdentifier = 16

// addQuestion adds a text of a client that names no author as the user's question, unless it is a setting.
func (f *finder) addQuestion(n *event.Node, sc scope) {
	if isAsked(n) && !isKeyword(n.Text) {
		sc.speaker, f.out.Asked = User, true
		f.addText(n.Text, sc)
	}
}

// isThoughtName reports whether the name of a string within thinking is one for thinking and not for a setting.
func isThoughtName(n *event.Node) bool {
	name := n.Fold
	return thoughtNames[name] || weakNames[name] && !isIdentifier(n.Text) || thoughtNames[strings.TrimSuffix(name, "delta")] || compoundOf(n.Name).channel == Thought || name == "summary" && !naming.IsKind(n.Text)
}

// isKeyword reports whether a string of a request is a name such as "user_id" and not a text.
func isKeyword(s string) bool {
	return naming.IsKind(s) && strings.ContainsAny(s, "_.")
}

// addText adds a piece of a text.
func (f *finder) addText(text string, sc scope) {
	p := f.piece(sc)
	// Some services pad each token with zeros, so that its size does not reveal it.
	p.Text = strings.TrimRight(text, "\x00")
	f.out.List = append(f.out.List, p)
}

// piece returns a piece of the current event with the properties in the scope.
func (f *finder) piece(sc scope) Piece {
	return Piece{
		Frame: f.event.Frame, Seq: f.event.Seq, Dir: f.event.Dir, Event: f.at, Path: strings.Join(sc.path, "."), Type: sc.types,
		Speaker: sc.speaker, Channel: sc.channel, Tier: sc.tier, Delta: sc.delta, Whole: sc.whole, Final: sc.final, Replaces: sc.replaces, Bare: f.event.Bare, Coded: f.event.Coded && f.event.Root.Kind == jsontree.String, Keys: sc.keys, Choice: sc.choice, Message: sc.message,
		ID: sc.id, Name: sc.name,
	}
}

// countNames are names of numbers that do not say what they count.
var countNames = set(`tokens token count tokencount value amount total number quantity`)

// visitNumber adds a number that the server sent if its name says that it counts tokens.
func (f *finder) visitNumber(n *event.Node, sc scope) {
	if f.event.Dir != captures.Down {
		return
	}
	var around [2]string
	for i := range around {
		if at := len(sc.path) - 2 - i; at >= 0 {
			around[i] = sc.path[at]
		}
	}
	field := naming.UsageIn(around[0], n.Name)
	if field < 0 && countNames[n.Fold] {
		// The member around it, or the type next to it, may say which tokens these are.
		field = max(naming.UsageIn(around[1], around[0]), naming.UsageIn(around[0], sc.types[strings.LastIndexByte(sc.types, '/')+1:]))
	}
	v, err := strconv.ParseInt(n.Text, 10, 64)
	if field < 0 || err != nil || v < 0 {
		return
	}
	f.out.Counts = append(f.out.Counts, Count{Frame: f.event.Frame, Seq: f.event.Seq, Path: strings.Join(sc.path, "."), Field: field, Value: v})
}
