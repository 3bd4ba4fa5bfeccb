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

// Signs are the evidence for and against the hypothesis that an exchange is a conversation with a language model.
// The zero value is an exchange without any evidence.
type Signs struct {
	// Deltas scores, from 0 to 1, how much the answer arrives in pieces that continue each other. Blocks of a file
	// do not count.
	Deltas float64

	// Snapshots scores, from 0 to 1, how much the answer arrives as a growing text that is repeated each time.
	Snapshots float64

	// Parallel means that several texts arrive in deltas, as thinking and an answer do.
	Parallel bool

	// Roles means that messages are labelled with words for roles, such as "assistant".
	Roles bool

	// Turns means that whole messages of two authors alternate.
	Turns bool

	// Models is the number of values that are names of language models.
	Models int

	// ModelAsked means that the client sent the name of a language model.
	ModelAsked bool

	// Tokens means that members have names of token counts, such as "input_tokens".
	Tokens bool

	// Counts means that numbers without names fit the length of the texts as counts of tokens do.
	Counts bool

	// Tools means that a tool was called, with arguments or a result.
	Tools bool

	// Prompted means that the client sent instructions to a model.
	Prompted bool

	// Templated means that a text of the client has the marks of a model's prompt template, or a text of the server
	// a tag for thinking.
	Templated bool

	// Names are the distinct names of JSON members, kinds (values of fields such as "type") and events, in lower
	// case.
	Names map[string]bool

	// Members are the distinct names of JSON members alone, in lower case.
	Members map[string]bool

	// Field is the name of the JSON member that contains the answer, in lower case without separators; "" if the
	// messages have no names.
	Field string

	// Around are the names of the JSON members that enclose the one with the answer, in the same form as Field; nil
	// if the messages have no names.
	Around []string

	// URL is the address that was called. Its host does not count.
	URL string

	// Asked scores, from 0 to 1, how certainly the client sent prose that is a message to somebody.
	Asked float64

	// Question means that such a text is a question.
	Question bool

	// Form means that the texts of the client are short values of one record, such as name, street and city.
	Form bool

	// Replied means that the answer is one text that stands alone: it is neither an element of a list nor one of
	// several texts of its kind.
	Replied bool

	// Length is the size of the answer in bytes.
	Length int

	// Mirrored means that the server repeats texts of the client other than the question, as a service does that
	// returns the record it stored.
	Mirrored bool

	// Repeated means that the answer has only texts that the client sent before.
	Repeated bool

	// Rivals is the number of other texts of the server that are prose, too.
	Rivals int

	// Listed means that the answer is one of several values: elements of a list, or values that arrive one after
	// the other.
	Listed bool

	// Code means that both sides sent source code.
	Code bool

	// Markup means that the answer is a page of HTML or XML, or a whole document.
	Markup bool

	// Silent means that the client sent no message at all.
	Silent bool

	// Spoken means that the client streamed bytes without words, as it does with speech.
	Spoken bool

	// Streamed means that the server sent several messages.
	Streamed bool
}

// Odds returns the log odds that an exchange with these signs is a conversation; positive values mean that it
// probably is one.
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
	add(s.Form && !s.Question, -1.5)
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
	// bias is the log odds that an exchange without any signs is a conversation.
	bias = -2.95

	// namesWeight is the weight, in log odds, of one name that belongs to the vocabulary.
	namesWeight = 1.0

	// richNames is the minimum number of names that suffice to recognise what a service is about.
	richNames = 12

	// oneWord is the maximum size in bytes of a reply that counts as a single word or number.
	oneWord = 12

	// longReply is the minimum size in bytes of a reply that counts as more than a notice.
	longReply = 120
)

// templateMarks are the markers in prompt templates, which combine several messages into one text.
var templateMarks = [...]string{"<|im_start|>", "<|start_header_id|>", "<|user|>", "<|assistant|>", "<start_of_turn>", "[INST]", "\n\nHuman:", "<|start|>"}

// IsTemplate reports whether text is a prompt that was made with a model's prompt template.
func IsTemplate(text string) bool {
	for _, mark := range templateMarks {
		if strings.Contains(text, mark) {
			return true
		}
	}
	return false
}

// IsCode reports whether text looks like source code: it has the punctuation of code.
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
	// codeSample is the maximum size in bytes of the beginning of a text that is examined for code.
	codeSample = 4096

	// leastMarks is the minimum number of punctuation characters in a text that is code.
	leastMarks = 4

	// codeShare is the maximum number of bytes for each punctuation character in a text that is code.
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

// words returns the words in list, which are separated by white space, as a set.
func words(list string) map[string]bool {
	out := make(map[string]bool)
	for word := range strings.FieldsSeq(list) {
		out[word] = true
	}
	return out
}

// recordNames are names of members that describe a record (title, summary), and recordLists names of members that
// contain lists of records. Both are evidence against a conversation.
var (
	recordNames = words(`body title description summary note notes bio name displayname comment comments review reason detail details subject caption label
		address excerpt overview readme status progress line log stringvalue snippet htmlbody errormessage statusmessage hint tooltip help login username handle email slug`)
	recordLists = words(`hits items rows records documents document payload issues edges nodes comments vectors matches points resourcespans attributes
		streams articles products orders users metadata annotations labels source translations object spec`)
)

// countWords returns the number of names that are words: three letters or more, and no digits.
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

// countVocabulary returns the number of names that belong to the vocabulary of language models.
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
