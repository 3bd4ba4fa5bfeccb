package language

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsGreek reports whether text begins with a Greek letter. Greek questions end with a
// semicolon.
func IsGreek(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return unicode.Is(unicode.Greek, r)
}

// EndsSentence reports whether the last rune of text ends a sentence.
func EndsSentence(text string) bool {
	r, _ := utf8.DecodeLastRuneInString(text)
	return strings.ContainsRune(".!?…:。！？।؟", r) || r != utf8.RuneError && unicode.Is(unicode.So, r)
}

// IsStop reports whether text is a special token with which a model ends its answer, such as </s>.
func IsStop(text string) bool {
	text = strings.TrimSpace(text)
	switch text {
	case "</s>", "<eos>", "<end_of_turn>", "<|end|>", "[EOS]", "[DONE]":
		return true
	}
	return len(text) <= 40 && strings.HasPrefix(text, "<|") && strings.HasSuffix(text, "|>") || strings.HasPrefix(text, "<｜") && strings.HasSuffix(text, "｜>")
}

// scripts are the writing systems that distinguish one language from most others.
var scripts = [...]*unicode.RangeTable{unicode.Cyrillic, unicode.Greek, unicode.Arabic, unicode.Hebrew, unicode.Hangul, unicode.Hiragana, unicode.Katakana, unicode.Han, unicode.Thai, unicode.Devanagari}

// ScriptOf returns the script (writing system) of the first character of text that belongs to one of scripts, or
// nil.
func ScriptOf(text string) *unicode.RangeTable {
	for _, r := range Sample(text) {
		for _, script := range scripts {
			if r >= utf8.RuneSelf && unicode.Is(script, r) {
				return script
			}
		}
	}
	return nil
}

// IsShortReply reports whether text can be a complete answer by itself and is not a name or title: yes, no and
// similar words in many languages.
func IsShortReply(text string) bool {
	return slices.Contains(shortReplies, strings.ToLower(strings.TrimRight(text, ".!。 ")))
}

// shortReplies are the words of IsShortReply in lower case.
var shortReplies = strings.Fields(`yes no sure yep nope thanks hello hi ja nein oui non sí si sim não sì da nu tak nie ano ne evet hayır
	да нет так ні не ναι όχι כן לא نعم لا हाँ नहीं vâng không có ya tidak ใช่ ไม่ 是 是的 不 不是 好 好的 对 はい いいえ 네 아니요`)

// IsState reports whether text may be a program's state instead of an answer, such as ok
// or true.
func IsState(text string) bool {
	switch strings.ToLower(strings.TrimRight(text, ".!")) {
	case "ok", "okay", "true", "false", "none":
		return true
	}
	return false
}

// IsFinish reports whether text is a word for the reason why a model stopped, such as stop or length.
func IsFinish(text string) bool {
	switch strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(text)) {
	case "stop", "stopped", "endturn", "length", "maxtokens", "done", "complete", "completed", "finish", "finished", "finishedsuccessfully", "success", "succeeded", "end", "eos", "toolcalls", "tooluse", "contentfilter", "running", "inprogress", "pending", "started", "cancelled", "canceled", "failed", "error":
		return true
	}
	return false
}

// EndsInQuestion reports whether the last sentence of text is a question.
func EndsInQuestion(text string) bool {
	last, _ := utf8.DecodeLastRuneInString(text)
	return strings.ContainsRune("?？؟", last) || last == ';' && IsGreek(text)
}

// faults are phrases in messages that explain why a call failed. Alone they are no evidence of a failure.
var faults = [...]string{
	"try again", "retry", "overloaded", "rate limit", "quota", "timed out", "timeout", "error", "unavailable", "not available", "failed", "exceeded", "exception", "went wrong", "interrupted", "too many", "disconnect", "aborted", "cancel",
}

// IsFault reports whether text is worded like the reason for a failure.
func IsFault(text string) bool {
	lower := strings.ToLower(text)
	return slices.ContainsFunc(faults[:], func(w string) bool { return strings.Contains(lower, w) })
}

// WithoutDigits returns s with each digit replaced by 0.
func WithoutDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return '0'
		}
		return r
	}, s)
}

// IsWidePunct reports whether r is punctuation of a script without spaces, i.e. CJK or full-width punctuation.
func IsWidePunct(r rune) bool { return r >= 0x3000 && r <= 0x303f || r >= 0xff00 && r <= 0xffef }
