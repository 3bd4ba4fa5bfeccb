// Package dialogue judges whether an exchange is a conversation with a language model at
// all, or a call of some other service whose messages contain prose.
//
// Package transcript gathers Signs from an exchange, and Odds weighs them. What is on the
// wire counts most: texts that arrive in deltas, roles next to them, lists of messages,
// names of models and counts of tokens. The wording counts least: a shop describes its
// goods in prose, too.
package dialogue

import (
	"net/url"
	"strings"
	"unicode"
)

// Signs are what speaks for a conversation in an exchange, and what speaks against it.
// The zero value is an exchange without any sign.
type Signs struct {
	// Deltas is how much the answer arrives in pieces that continue each other, from 0
	// to 1. Blocks of a file are no deltas: see Blocks.
	Deltas float64

	// Snapshots is how much the answer arrives as a text that grows, from 0 to 1.
	Snapshots float64

	// Parallel reports that several texts arrive in deltas, as thinking and an answer do.
	Parallel bool

	// Roles reports that messages are labelled with the words for roles.
	Roles bool

	// Turns reports that whole messages of two authors alternate.
	Turns bool

	// Models is the number of values that are names of language models.
	Models int

	// ModelAsked reports that the client sent the name of a language model.
	ModelAsked bool

	// Tokens reports that names of members count tokens, and Counts that numbers without
	// names fit the length of the texts as counts of tokens do.
	Tokens, Counts bool

	// Tools reports a tool call with a result or arguments.
	Tools bool

	// Prompted reports that the client sent instructions to a model, and Templated that a
	// text of the client has the marks of a model's prompt template, or one of the server
	// a tag for thinking.
	Prompted, Templated bool

	// Names are the distinct names of members, kinds and events, in lower case.
	Names map[string]bool

	// Members are the distinct names of members alone, in lower case.
	Members map[string]bool

	// Field is the name of the member that contains the answer, in lower case without separators, and Around are those
	// of the members around it. Both are empty without names.
	Field  string
	Around []string

	// URL is the address that was called. Its host does not count.
	URL string

	// Asked is how surely the client sent prose that is a message, from 0 to 1, and
	// Question reports that this text asks something.
	Asked float64

	// Question reports that the text of Asked is a question.
	Question bool

	// Replied reports that the answer is one text that stands alone: it is neither an
	// element of a list nor one of several texts of its kind. Length is its length in
	// bytes.
	Replied bool

	// Length is the size in bytes of that text.
	Length int

	// Mirrored reports that the server repeats texts of the client other than the question,
	// as a service does that returns the record it stored.
	Mirrored bool

	// Repeated reports that the answer only has texts that the client sent before, other than a history.
	Repeated bool

	// Rivals is how many other texts of the server are prose, too.
	Rivals int

	// Listed reports that the answer is one of several values: elements of a list, or
	// values that arrive one after the other.
	Listed bool

	// Code reports that both sides sent code.
	Code bool

	// Markup reports that the answer is a page of HTML or XML, or a whole document.
	Markup bool

	// Silent reports that the client sent no message at all, Spoken that it streamed bytes
	// without words, as it does with speech, and Streamed that the server sent several
	// messages.
	Silent, Spoken, Streamed bool
}

// Odds returns the log odds that an exchange with these signs is a conversation.
func (s *Signs) Odds() float64 {
	sum := bias
	add := func(when bool, weight float64) {
		if when {
			sum += weight
		}
	}

	// What is on the wire.
	sum += 6*s.Deltas + 6*s.Snapshots
	add(s.Parallel, 1)
	add(s.Roles, 3)
	add(s.Turns, 3)
	sum += 1.5 * float64(min(s.Models, 2))
	add(s.ModelAsked, 1)
	add(s.Tokens, 3)
	add(s.Counts, 1.5)
	add(s.Tools, 1)
	add(s.Prompted, 1)
	add(s.Templated, 4.5)
	add(s.Mirrored && s.Replied && s.Length < longReply/2, -1.5)
	if s.Listed {
		sum -= 1.5 * (1 - s.Deltas)
	}
	add(s.Markup, -5)
	add(s.Silent, -0.5)
	add(s.Spoken, 1)
	add(s.Streamed && s.Asked > 0, 1)

	// What it is named. A service with many names, none of which is about a model, is another one.
	if !(s.Question && s.Replied) && countVocabulary(s.Members) == 0 && countWords(s.Members) >= richNames {
		sum -= 2.5
	}
	add(recordNames[s.Field], -2.5)
	add(s.Repeated, -5)
	for _, name := range s.Around {
		if recordLists[name] {
			sum -= 2
			break
		}
	}
	sum += min(namesWeight*float64(countVocabulary(s.Names)), 3)
	add(namesChat(s.URL), 2.5)

	// How it is worded.
	sum += 1.5 * s.Asked
	add(s.Question, 1.5)
	if s.Replied && s.Asked > 0 {
		sum += 1 + min(float64(s.Length)/longReply, 1)
		// No notice is that short.
		add(s.Length <= oneWord, 0.6)
	}
	add(s.Code, 3)
	if !s.Turns {
		sum -= 0.5 * float64(min(s.Rivals, 3))
	}
	return sum
}

const (
	// bias is the log odds that an exchange without any signs is a dialogue.
	bias = -2.95

	// namesWeight is the weight of one word of the vocabulary, in log odds.
	namesWeight = 1.0

	// richNames is the minimum number of names that say what a service is about.
	richNames = 12

	// oneWord is the maximum size in bytes of a reply that is a word or a number.
	oneWord = 12

	// longReply is the minimum size in bytes of a reply that is more than a notice.
	longReply = 120
)

// templateMarks are marks of the templates that make one prompt of several messages.
var templateMarks = [...]string{"<|im_start|>", "<|start_header_id|>", "<|user|>", "<|assistant|>", "<start_of_turn>", "[INST]", "\n\nHuman:", "<|start|>"}

// IsTemplate reports whether text is a prompt that was made by a model's template.
func IsTemplate(text string) bool {
	for _, mark := range templateMarks {
		if strings.Contains(text, mark) {
			return true
		}
	}
	return false
}

// IsCode reports whether text reads as source code: it has the punctuation of code.
func IsCode(text string) bool {
	text = text[:min(len(text), codeSample)]
	marks := 0
	for i := range len(text) {
		if strings.IndexByte("(){}[];=<>", text[i]) >= 0 {
			marks++
		}
	}
	return marks >= leastMarks && marks*codeShare >= len(text)
}

// IsPage reports whether text is a page of HTML or a document of XML.
func IsPage(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "<!") || strings.HasPrefix(text, "<html") || strings.HasPrefix(text, "<?xml")
}

const (
	// codeSample is the size in bytes of the beginning of a text that is examined.
	codeSample = 4096

	// leastMarks is the minimum number of punctuation characters in code.
	leastMarks = 4

	// codeShare is the maximum number of bytes of code per punctuation character.
	codeShare = 20
)

// vocabulary are names of members and events that protocols of language models use, and
// that other services seldom use. Underscores and case do not matter.
var vocabulary = words(`
	maxtokens maxoutputtokens maxcompletiontokens topp topk stopsequences systemprompt systeminstruction generationconfig
	choices delta finishreason stopreason toolcalls toolchoice toolcallid tooluse functioncall completion completions
	assistant chathistory conversation conversationid conversationhistory thinking reasoning reasoningcontent chainofthought
	contentblock contentblockdelta contentblockstart messagestart messagestop textdelta thinkingdelta inputjsondelta
	outputtext inputtext utterance prompt prompts candidates logprobs logprob bot dialog dialogue suggestedreplies quickreplies`)

// words returns the words of a list that are separated by white space, as a set.
func words(list string) map[string]bool {
	out := make(map[string]bool)
	for word := range strings.FieldsSeq(list) {
		out[word] = true
	}
	return out
}

// recordNames are members of records that describe something, and recordLists members that contain records.
var (
	recordNames = words(`body title description summary note notes bio name displayname comment comments review reason detail details subject caption label
		address excerpt overview readme status progress line log stringvalue snippet htmlbody errormessage statusmessage hint tooltip help login username handle email slug`)
	recordLists = words(`hits items rows records documents document payload issues edges nodes comments vectors matches points resourcespans attributes
		streams articles products orders users metadata annotations labels source translations object spec`)
)

// countWords returns how many of the names are words: three letters or more, and no digits.
func countWords(names map[string]bool) int {
	n := 0
	for name := range names {
		word := len(name) >= 3
		for _, r := range name {
			word = word && (unicode.IsLetter(r) || r == '_' || r == '-')
		}
		if word {
			n++
		}
	}
	return n
}

// countVocabulary returns how many of the names are of the vocabulary of language models.
func countVocabulary(names map[string]bool) int {
	n := 0
	for name := range names {
		if vocabulary[strings.NewReplacer("_", "", "-", "", ".", "").Replace(name)] {
			n++
		}
	}
	return n
}

// chatWords are words in the addresses of services that hold conversations.
var chatWords = words(`chat chats completion completions assistant assistants conversation conversations converse agent agents llm copilot
	generatecontent streamgeneratecontent`)

// namesChat reports whether an address names a service that holds conversations.
func namesChat(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	call := u.Path
	var word strings.Builder
	flush := func() bool {
		found := chatWords[strings.ToLower(word.String())]
		word.Reset()
		return found
	}
	found := false
	for _, r := range call {
		if !unicode.IsLetter(r) {
			found = flush() || found
			continue
		}
		if unicode.IsUpper(r) {
			found = flush() || found
		}
		word.WriteRune(r)
	}
	return flush() || found || chatWords[strings.ToLower(call[strings.LastIndexAny(call, "/:.")+1:])]
}
