package keyed

import (
	"strings"

	"unwire/decode/transcript/naming"
)

// The words below are those that published protocols of language models use for the same few things. Names are folded:
// lower case, without separators.

// set returns the words in list, which are separated by white space, as a set.
func set(list string) map[string]bool {
	out := make(map[string]bool)
	for word := range strings.FieldsSeq(list) {
		out[word] = true
	}
	return out
}

var (
	// textNames are names of members that contain a text of the conversation.
	textNames = set(`content text delta response answer completion reply generation transcript markdown refusal part chunk fragment increment`)

	// weakNames are names of members that may contain such a text if nothing else does.
	weakNames = set(`body message output result value item token data bytes v parts outputs msg`)

	// askedNames are names of members with which a client asks, outside of a list of messages.
	askedNames = set(`prompt prompts query question input inputs userinput usermessage userquery utterance inputtext message text content messages textinput contents`)

	// systemNames are names of members that contain instructions for a model.
	systemNames = set(`system systemprompt systeminstruction systeminstructions systemmessage preamble instructions developer persona`)

	// thoughtNames are members that contain thinking.
	thoughtNames = set(`think thinking reasoning reasoningcontent reasoningtext thought thoughts thinkingcontent thinkingtext toolplan chainofthought rationale
		reasoningdetails reasoningsummary reasoningdelta thinkingdelta thoughtsummary analysis cot thoughtcontent`)

	// callNames are members that contain calls of tools, and resultNames their results.
	callNames   = set(`toolcalls toolcall functioncall functioncalls tooluse tooluses toolcallchunk toolinvocation toolinvocations toolrequest toolrequests actioncall`)
	resultNames = set(`toolresult toolresults functionresponse functionresponses tooloutput tooloutputs toolresponse toolresponses functionresult
		functionresults functioncalloutput codeexecutionresult observation`)

	// choiceNames are lists of alternative answers.
	choiceNames = set(`choices candidates generations alternatives completions`)

	// skippedNames are members that neither contain texts of the conversation nor tokens: definitions of tools, settings,
	// sources, scores.
	skippedNames = set(`tools toolchoice toolconfig functions functiondeclarations responseformat generationconfig inferenceconfig safetysettings
		safetyratings metadata logprobs toplogprobs annotations citations groundingmetadata citationmetadata promptfeedback generationsettings
		config configuration options settings schema inputschema jsonschema format signature thoughtsignature encryptedcontent redactedcontent
		searchresults hits sources documents document snippet snippets connectors reference references attachments tags additionalkwargs responsemetadata providermetadata
		contentfilterresults promptfilterresults stop stopsequences finishreason stopreason title suggestions relatedquestions followups
		errors warnings headers context environment`)

	// callArguments are members of a call with its arguments, and calledNames words for what is called, before "name".
	callArguments = set(`partialjson delta`)
	calledNames   = set(`tool function recipient action plugin skill command api`)

	// givenWords are the words of names of arguments, and ownWords those of them that calls alone use. ofCallWords and
	// formWords may stand next to them, as in "function_arguments_delta".
	givenWords  = set(`arguments args kwargs input parameters params`)
	ownWords    = set(`arguments args kwargs`)
	ofCallWords = set(`tool function call action`)
	formWords   = set(`delta part partial chunk fragment text json raw string str`)

	// callInner are members of a call that contain further members of it.
	callInner = set(`function functioncall toolcall tooluse tool call item delta toolinvocation payload start contentblock data custom state value`)

	// outputs are members with the result of a call, in the call itself or in a message about it.
	outputs = set(`output result response observation outputs results tooloutput toolresult returnvalue rawoutput content json text errortext error value message`)

	// ownOutputs are those of outputs that a call itself may have.
	ownOutputs = set(`output result observation tooloutput toolresult rawoutput returnvalue`)

	// echoNames are members in which a server repeats what the client sent.
	echoNames = set(`prompt prompts query question input inputs instructions request originalrequest`)
)

// speakers maps the words for roles to speakers.
var speakers = map[string]Speaker{
	"user": User, "human": User, "customer": User, "enduser": User, "client": User, "visitor": User,
	"assistant": Assistant, "model": Assistant, "ai": Assistant, "bot": Assistant, "chatbot": Assistant, "agent": Assistant, "aimessage": Assistant,
	"aimessagechunk": Assistant, "roleassistant": Assistant, "roleuser": User, "rolesystem": System, "roletool": Tool, "rolefunction": Tool,
	"system": System, "developer": System, "systemmessage": System, "humanmessage": User, "humanmessagechunk": User,
	"tool": Tool, "function": Tool, "ipython": Tool, "toolmessage": Tool, "toolmessagechunk": Tool, "functionmessage": Tool, "toolresult": Tool, "environment": Tool,
}

// maxRole is the maximum length in bytes of a word for a role.
const maxRole = 256

// SpeakerOf returns the speaker that a word for a role names, or Nobody.
func SpeakerOf(word string) Speaker {
	if len(word) > maxRole {
		return Nobody
	}
	return speakers[naming.Fold(word)]
}

// speakerMembers are the names of members whose value is a role.
var speakerMembers = set(`role author sender source from speaker participant authorrole senderrole senderType participantrole sendertype authortype`)

// assistantFlags and userFlags are names of flags that say who the author of a text is, of only two.
var (
	assistantFlags = set(`isbot frombot isfrombot isassistant fromassistant isai fromai`)
	userFlags      = set(`isuser fromuser isfromuser iscreatedbyuser isfromself fromself isfromme fromme`)
)

// A typed has the properties of an object that the value of its discriminator (a member such as "type") implies.
type typed struct {
	// speaker is the author that the type implies, such as the model; Nobody if it implies none.
	speaker Speaker

	// channel is the part of a conversation that the type implies, such as thinking or a tool call; Unmarked if it
	// implies none.
	channel Channel

	// delta means that the type declares a part of a longer text.
	delta bool

	// whole means that the type declares something complete.
	whole bool

	// error means that the type declares an error.
	error bool

	// replaces means that the type declares that the text replaces what was said before.
	replaces bool

	// text means that the object contains a text.
	text bool

	// status means that the object reports a state of the server.
	status bool
}

// has reports whether the set parts contains one of the words.
func has(parts map[string]bool, words ...string) bool {
	for _, w := range words {
		if parts[w] {
			return true
		}
	}
	return false
}

// typeOf returns the properties that the value of a discriminator implies, such as "response.output_text.delta" or
// "tool-input-available".
func typeOf(word string) typed {
	p := naming.Parts(word)
	fold := naming.Fold(word)
	var t typed
	t.delta = has(p, "delta", "chunk", "append", "partial", "token", "tokens") || strings.HasSuffix(fold, "delta") || strings.HasSuffix(fold, "chunk")
	t.whole = !t.delta && has(p, "done", "completed", "complete", "final", "finish", "finished", "available", "snapshot", "end", "stop", "added", "created", "succeeded")
	t.error = has(p, "error", "exception", "failed", "failure") || strings.HasSuffix(fold, "exception") || strings.HasSuffix(fold, "error")
	t.replaces = has(p, "replace", "replacement")
	t.speaker = speakers[fold]
	t.text = has(p, "text", "message", "content", "answer", "completion", "generation", "output", "token", "tokens", "markdown")

	t.classify(p, fold)
	if t.speaker == Tool {
		t.speaker, t.channel = Nobody, Call
		if fold != "tool" && fold != "function" {
			t.channel = Result
		}
	}
	return t
}

// classify sets the channel or the speaker by the words p of a discriminator's value. fold is the value in lower
// case without separators.
func (t *typed) classify(p map[string]bool, fold string) {
	tool := isToolWord(p)
	t.status = isStatus(fold)
	switch {
	case has(p, "citation", "citations", "annotation", "annotations", "title", "suggestion", "suggestions", "suggested", "related", "follow", "followup", "verbose", "debug", "heartbeat", "ping",
		"safety", "moderation", "sources", "source", "redacted", "signature", "delimiter", "attachment", "attachments", "informative", "plan") && !tool,
		t.status,
		has(p, "audio", "image", "video") && !has(p, "transcript", "transcription", "text"):
		t.channel = ignored
	case tool && returns(p):
		t.channel = Result
	case has(p, "think", "thinking", "reasoning", "thought", "thoughts", "plan"):
		t.channel = Thought
	case tool && (t.speaker == Nobody || p["tool"] && p["call"]), has(p, "arguments", "args"), p["json"] && has(p, "input", "partial"):
		t.channel = Call
	case t.speaker == Nobody && has(p, "user", "human") && !p["agent"] || p["input"] && has(p, "transcription", "transcript"):
		t.speaker = User
	case t.speaker == Nobody && has(p, "assistant", "agent", "bot", "ai"):
		t.speaker = Assistant
	}
}

// returns reports whether one of the words of a discriminator names a result.
func returns(p map[string]bool) bool {
	for w := range p {
		if meanings[w]&returning != 0 {
			return true
		}
	}
	return false
}

// isStatus reports whether a folded discriminator names a report about the state of the server.
func isStatus(fold string) bool {
	return strings.HasSuffix(fold, "status") || strings.HasSuffix(fold, "progress")
}

// isToolWord reports whether the words of a discriminator are about a tool. An action of the user is not.
func isToolWord(p map[string]bool) bool {
	return has(p, "tool", "function", "toolcall", "tooluse", "functioncall", "toolcalls", "mcp") || p["action"] && !p["user"]
}
