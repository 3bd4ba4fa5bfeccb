// Package language measures how a text is worded: how much it reads as natural language,
// as a prompt, as thinking or as Markdown. Text goes in, and scores from 0 to 1 come out.
// It has lists of phrases in many languages, but no dictionary. Package transcript uses
// it for its features.
package language

import (
	"slices"
	"strings"
	"unicode"
)

// sampleBytes is the maximum size in bytes of the beginning of a text that is examined.
const sampleBytes = 4096

// unspaced are the scripts that are written without spaces between words.
var unspaced = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar}

// IsUnspaced reports whether r belongs to a script without spaces between words.
func IsUnspaced(r rune) bool { return r >= 0xe00 && unicode.In(r, unspaced...) }

// Sample returns the first 4096 bytes of s, without an incomplete character at the end.
func Sample(s string) string {
	if len(s) <= sampleBytes {
		return s
	}
	n := sampleBytes
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}

// Likeness scores, from 0 to 1, how much s looks like natural language, possibly with code and markup. It examines
// letters and the form of words and needs no dictionary.
func Likeness(s string) float64 {
	s = Sample(s)
	var letters, dense, others float64
	for _, r := range s {
		switch {
		case unicode.IsSpace(r):
		case IsUnspaced(r):
			// One such character counts as a word.
			dense++
		case unicode.IsLetter(r), unicode.IsMark(r):
			letters++
		default:
			others++
		}
	}

	all := letters + dense + others
	if all == 0 {
		return 0
	}
	// Prose has few characters other than letters; the bounds are from samples of prose
	// and of code.
	share := clamp(((letters+dense)/all - 0.35) / 0.4)
	// A script without spaces has no words whose form could be examined.
	if dense > letters/2 {
		if dense < 4 {
			return 0.7 * share
		}
		return share
	}
	return share * spacing(strings.Fields(s))
}

// spacing scores, from 0 to 1, how much the lengths and forms of words look like those of a sentence.
func spacing(words []string) float64 {
	long, odd := 0, 0
	for _, w := range words {
		if len(w) > 40 {
			long++
		}
		if strings.ContainsAny(w, "_/\\={}<>;") || HasCamel(w) {
			odd++
		}
	}

	n := float64(len(words))
	regular := 1 - clamp((float64(long)+0.6*float64(odd))/n)
	switch {
	case len(words) >= 4:
		return regular
	case len(words) >= 2:
		return 0.85 * regular
	}
	// A single word says little; punctuation, a capital or letters beyond ASCII help.
	w := words[0]
	switch {
	case odd > 0 || long > 0 || IsGarbled(w):
		return 0.05
	case strings.ContainsAny(w[len(w)-1:], ".!?") || !IsASCII(w):
		return 0.7
	case w[0] >= 'A' && w[0] <= 'Z':
		return 0.5
	}
	return 0.3
}

// IsGarbled reports whether a short word has characters between its letters that no word has, or letters after
// digits: then it is probably binary data that is valid text by accident.
func IsGarbled(w string) bool {
	if len(w) > 8 || !IsASCII(w) {
		return false
	}
	for i := 0; i+1 < len(w); i++ {
		c, next := w[i], w[i+1]
		sign := strings.IndexByte("$#@^~|`&*%+(){}[]!?\"<>;:\\", c) >= 0
		letter := next >= 'a' && next <= 'z' || next >= 'A' && next <= 'Z'
		if letter && (sign && i > 0 || c >= '0' && c <= '9' && len(w) > 3) {
			return true
		}
	}
	return false
}

// HasCamel reports whether w has an upper-case letter directly after a lower-case one.
func HasCamel(w string) bool {
	for i := 1; i < len(w); i++ {
		if w[i] >= 'A' && w[i] <= 'Z' && w[i-1] >= 'a' && w[i-1] <= 'z' {
			return true
		}
	}
	return false
}

// IsASCII reports whether s contains only ASCII bytes.
func IsASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// clamp limits x to the range from 0 to 1.
func clamp(x float64) float64 { return min(max(x, 0), 1) }

// instructionPhrases are phrases that are typical of prompts, rules and descriptions of tools.
var instructionPhrases = [...]string{
	"you are a", "you are an", "you must", "your task", "never ", "do not ", "always ", "<system", "instructions", "guidelines",
	"<rules", "system prompt", "assistant that", "when the user", "the user's", "respond ", "tools", "you have access", "you should", "rules", "be brief", "be concise", "reply in", "answer in",
}

// addressedBytes is the size in bytes of the beginning of a prompt in which phrases that address the model are
// searched.
const addressedBytes = 400

// addressPhrases are phrases with which prompts tell a model who it is.
var addressPhrases = [...]string{
	"you are ", "you're ", "your name is ", "act as ", "du bist ", "sie sind ", "tu es ", "vous êtes ", "eres ", "usted es ", "você é ", "tu és ", "tu sei ", "sei un", "ты — ", "ты - ", "вы — ", "ви — ", "jesteś ", "jsi ", "je bent ", "sen bir", "siz bir", "bạn là ",
	"你是", "您是", "あなたは", "당신은 ", "너는 ", "أنت ", "אתה ", "आप एक ",
}

// thinkingPhrases are phrases with which sentences of a model's thinking begin, in the languages in which models
// think most. They are weak evidence, and their absence is no evidence.
var thinkingPhrases = [...]string{
	"the user ", "user wants", "user is asking", "i need to", "i should", "i'll ", "let me ", "let's ", "okay, ", "ok, ", "hmm", "wait, ", "alright", "we need to", "first, i", "maybe ", "i think ", "so the ", "actually, ",
	"der nutzer", "ich muss", "ich sollte", "ich sehe mir", "l'utilisateur", "je dois", "je regarde", "el usuario", "debo ", "пользователь ", "мне нужно", "сначала ", "用户", "我需要", "我应该", "我先", "让我", "首先",
	"ユーザーは", "まず", "사용자는", "사용자가 ", "먼저 ", "المستخدم", "سأنظر", "उपयोगकर्ता", "o usuário", "l'utente",
}

// userPhrases are phrases that mention the user, as a model's thinking does and answers do not.
var userPhrases = [...]string{
	"the user wants", "the user is ", "the user asks", "the user asked", "the user needs", "the user said", "the user has ", "user wants to", "der nutzer fragt", "der nutzer möchte", "der benutzer ", "l'utilisateur demande", "l'utilisateur veut",
	"el usuario quiere", "el usuario pide", "пользователь спрашивает", "пользователь хочет", "用户想", "用户要", "用户问", "用户希望", "ユーザーは知り", "ユーザーが求め", "사용자가 원", "يريد المستخدم", "o usuário quer", "l'utente vuole",
}

// MentionsUser reports whether s mentions the user, as a model's thinking does and answers do not.
func MentionsUser(s string) bool {
	s = strings.ToLower(Sample(s))
	for _, phrase := range userPhrases {
		if strings.Contains(s, phrase) {
			return true
		}
	}
	return false
}

// selfTalkPhrases are phrases that address nobody, as a model's thinking does and answers do not.
var selfTalkPhrases = [...]string{
	"hmm", "wait, ", "i should ", "i need to ", "we need to ", "the question is ", "i think a ", "ich muss ", "ich sollte ", "je dois ", "debo ", "мне нужно ", "мне следует ", "我需要", "我应该", "devo ", "muszę ",
}

// SelfTalk returns the number of different phrases in s that are typical of a model's thinking.
func SelfTalk(s string) int {
	s = strings.ToLower(Sample(s))
	n := 0
	for _, phrase := range selfTalkPhrases {
		if strings.Contains(s, phrase) {
			n++
		}
	}
	return n
}

// Deliberation scores, from 0 to 1, how much s is worded like a model's thinking about a task.
func Deliberation(s string) float64 {
	s = strings.ToLower(Sample(s))
	n := 0.0
	for _, phrase := range thinkingPhrases {
		n += float64(min(strings.Count(s, phrase), 3))
	}
	// Long texts need more phrases for the same score.
	return clamp(n / (1.5 + float64(len(s))/400))
}

// Instructions scores, from 0 to 1, how much s is worded like a prompt. Texts below 60 bytes score 0.
func Instructions(s string) float64 {
	if len(s) < 60 {
		return 0
	}
	s = strings.ToLower(Sample(s))
	n := 0.0
	// An address to the model counts once and twice as much as other phrases.
	for line := range strings.SplitSeq(s[:min(len(s), addressedBytes)], "\n") {
		line = strings.TrimLeft(line, "#*-<> ")
		if slices.ContainsFunc(addressPhrases[:], func(phrase string) bool { return strings.HasPrefix(line, phrase) }) {
			n += 2
			break
		}
	}
	for i, phrase := range instructionPhrases {
		if strings.Contains(s, phrase) {
			if n++; i < 2 {
				n++
			}
		}
	}
	return clamp(n / 5)
}

// MarkdownLike scores, from 0 to 1, how much s is formatted as Markdown.
func MarkdownLike(s string) float64 {
	s = Sample(s)
	n := 0.0
	if strings.Contains(s, "```") || strings.HasPrefix(s, "|") && strings.Contains(s, "|\n|-") {
		n++
	}
	for line := range strings.SplitSeq(s, "\n") {
		line = strings.TrimLeft(line, " ")
		digits := strings.TrimLeft(line, "0123456789")
		switch {
		case strings.HasPrefix(line, "## "), strings.HasPrefix(line, "### "), strings.HasPrefix(line, "- "), strings.HasPrefix(line, "* "), strings.HasPrefix(line, "|-"),
			len(digits) < len(line) && strings.HasPrefix(digits, ". "):
			n += 0.35
		}
	}
	return clamp(n)
}
