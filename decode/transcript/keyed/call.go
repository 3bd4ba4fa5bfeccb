package keyed

import (
	"cmp"
	"slices"
	"strings"

	"unwire/captures"
	"unwire/decode/jsontree"
	"unwire/decode/transcript/event"
	"unwire/decode/transcript/ident"
	"unwire/decode/transcript/naming"
)

// isCall reports whether an object is a call of a tool, judged by its own members only: it has the name of a tool
// and arguments, and is not the definition of a tool.
func isCall(n *event.Node) bool {
	if n.Member("description") != nil {
		return false
	}
	if !slices.ContainsFunc(n.Items, isOwnArguments) {
		// With less specific names, the name of the tool must be declared as such, and there is an object of arguments
		// or an identifier of a call.
		named := slices.ContainsFunc(n.Items, func(m *event.Node) bool {
			return isToolName(m) && m.Fold != "name" && m.Fold != "recipient"
		})
		return named && slices.ContainsFunc(n.Items, func(m *event.Node) bool {
			return isArguments(m) && (m.Kind == jsontree.Object || slices.ContainsFunc(n.Items, isCallID))
		})
	}
	return slices.ContainsFunc(n.Items, isToolName)
}

// isToolName reports whether member m is the name of the tool that is called.
func isToolName(m *event.Node) bool {
	return m.Kind == jsontree.String && isCallName(m.Fold) && naming.IsTool(m.Text) && !isCallOfTool(m)
}

// isCallOfTool reports whether member m, such as "tool_id", identifies a call and not the tool.
func isCallOfTool(m *event.Node) bool {
	return strings.HasSuffix(m.Fold, "id") && ident.Of(m.Text) != ""
}

// isCallName reports whether a folded name is one for the name of the tool that is called, such as "function_name".
func isCallName(fold string) bool {
	if of, ok := strings.CutSuffix(fold, "name"); ok {
		return of == "" || calledNames[strings.TrimSuffix(of, "call")]
	}
	of := strings.TrimSuffix(fold, "id")
	return of == "tool" || of == "function" || fold == "recipient"
}

// callIDRank returns how well member m fits the identifier of a call, from 0 for one such as "tool_call_id" to
// leastIDRank for one of anything. ok is false for other members.
func callIDRank(m *event.Node) (rank int, ok bool) {
	of, isID := strings.CutSuffix(m.Fold, "id")
	switch {
	case !isID || isCallName(m.Fold) && !isCallOfTool(m):
		return 0, false
	case strings.HasSuffix(of, "call"), strings.HasSuffix(of, "invocation"), strings.HasPrefix(of, "tool"), strings.HasPrefix(of, "function"):
		return 0, true
	case of == "":
		return 1, true
	}
	return leastIDRank, of == "u" || of == "uu"
}

// leastIDRank is the rank of the least specific names of identifiers.
const leastIDRank = 2

// isCallID reports whether member m is the identifier of a call, judged by its name.
func isCallID(m *event.Node) bool {
	rank, ok := callIDRank(m)
	return ok && rank == 0 && m.Kind == jsontree.String && m.Text != "" && len(m.Fold) > len("callid") && m.Fold != "invocationid"
}

// isResult reports whether an object is the result of a call, judged by its own members only: it has the identifier
// of a call and a result, and neither the name of a tool nor arguments.
func isResult(n *event.Node) bool {
	id, out := false, false
	for _, m := range n.Items {
		switch {
		case isCallID(m):
			id = true
		case ownOutputs[m.Fold] && m.Kind != jsontree.Null:
			out = true
		case hasArguments(m), isCallName(m.Fold):
			return false
		}
	}
	return id && out
}

// isReturn reports whether an object has the name of a tool that was called before and a value, but no arguments.
func (f *finder) isReturn(n *event.Node) bool {
	name, out := false, false
	for _, m := range n.Items {
		switch {
		case hasArguments(m) && !isEmpty(m):
			return false
		case isToolName(m) && m.Fold != "name" && m.Fold != "recipient":
			name = f.called[m.Text]
		default:
			out = out || ownOutputs[m.Fold] && !isEmpty(m) || m.Fold == "value" && m.Kind == jsontree.String
		}
	}
	return name && out
}

// A parsedCall has the properties of a call of a tool that the members of an object contain.
type parsedCall struct {
	// id is the call's identifier; "" if not found.
	id string

	// name is the name of the called tool; "" if not found.
	name string

	// title is a text that describes the call, and called the identifier of the tool; "" if not found.
	title, called string

	// other is a word next to the arguments that may be the name of the tool, under another name than those of such
	// names.
	other string

	// rank is that of the name under which id was found, as callIDRank returns it.
	rank int

	// args are the arguments; nil if not found.
	args *event.Node

	// path are the names of the JSON members that lead from the call's object to args.
	path []string

	// guessed means that the name of args is one of any text.
	guessed bool

	// output is the result of the call, if the object contains it as well; otherwise nil.
	output *event.Node
}

// addCall adds the pieces of the call that object n is. It returns false if n is not a call, but may contain some.
func (f *finder) addCall(n *event.Node, sc scope) bool {
	c := parsedCall{rank: leastIDRank + 1}
	f.parseCall(n, &sc, &c, nil)
	// AI SDKs have the name of the tool in the type.
	if name, ok := strings.CutPrefix(n.String("type"), "tool-"); ok && c.name == "" && c.id != "" && n.Member("state") != nil {
		c.name = name
	}
	c.fillIn(n, sc.channel == Call)
	if c.name == "" && c.args == nil && (c.id == "" || c.output == nil) {
		return false
	}
	f.called[c.name] = c.name != ""
	p := f.piece(sc)
	p.Channel, p.ID, p.Name, p.Tier = Call, c.id, c.name, max(sc.tier, 2)
	if c.args != nil {
		p.Path = strings.Join(append(sc.path[:len(sc.path):len(sc.path)], c.path...), ".")
		p.Text, p.Object = argumentsOf(c.args)
		p.Guessed = c.guessed
	}
	f.out.List = append(f.out.List, p)
	if c.output != nil {
		r := f.piece(sc)
		r.Channel, r.ID, r.Name, r.Text = Result, c.id, c.name, resultText(c.output)
		f.out.List = append(f.out.List, r)
	}
	return true
}

// fillIn sets what the members of n, the object of the call, do not name as usual. declared means that the type of an
// object around it says that it is about a call.
func (c *parsedCall) fillIn(n *event.Node, declared bool) {
	switch {
	case c.name == "":
		// An identifier of the tool is a name, too.
		c.name = c.called
	case c.id == "" || c.rank > 0:
		// Next to a name, it is the identifier of the call.
		c.id = cmp.Or(c.called, c.id)
	}
	if c.name == "" && c.args != nil && isOwnArguments(c.args) {
		c.name = c.other
	}
	if c.name == "" && c.id != "" {
		c.name = c.title
	}
	if c.args == nil && c.output == nil && declared {
		at := slices.IndexFunc(n.Items, func(m *event.Node) bool { return isNamedText(m) || m.Kind == jsontree.Object && m.Fold == "value" })
		if at >= 0 {
			m := n.Items[at]
			c.args, c.path, c.guessed = m, []string{m.Name}, true
		}
	}
}

// argumentsOf returns the arguments in n as text. object means that n is a JSON object and not a string that
// contains one.
func argumentsOf(n *event.Node) (text string, object bool) {
	if n.Kind == jsontree.String {
		return n.Text, false
	}
	if len(n.Items) == 0 && n.Kind == jsontree.Array {
		// The pieces of the arguments may follow as elements.
		return "", false
	}
	if list, ok := listedArguments(n); ok {
		return list, true
	}
	return string(n.Raw), true
}

// listedArguments returns the arguments in an array of objects with a name and a value as an object; ok is false for
// other values.
func listedArguments(n *event.Node) (text string, ok bool) {
	if n.Kind != jsontree.Array {
		return "", false
	}
	out := []byte{'{'}
	for i, e := range n.Items {
		name, value := cmp.Or(e.String("name"), e.String("key")), e.Member("value")
		if name == "" || value == nil {
			return "", false
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, jsontree.Quote(name)...), ':'), value.Raw...)
	}
	return string(append(out, '}')), true
}

// parseCall collects the properties of a call in c from the members of object n and of objects inside it. path are
// the names of the members that lead from the call to n.
func (f *finder) parseCall(n *event.Node, sc *scope, c *parsedCall, path []string) {
	for _, m := range n.Items {
		isText := m.Kind == jsontree.String
		switch {
		case isToolName(m) && strings.HasSuffix(m.Fold, "id"):
			c.called = m.Text
		case isToolName(m):
			c.setName(m, len(path) == 0 && n.Member("function") != nil)
		case isArguments(m) && isWrappedCall(m) && len(path) < maxInner:
			f.parseCall(m, sc, c, append(path[:len(path):len(path)], m.Name))
		case isArguments(m):
			c.setArguments(m, path)
			c.other = cmp.Or(c.other, otherName(n))
		case ownOutputs[m.Fold] && !isEmpty(m):
			c.output = m
		case isText:
			c.setID(m)
			if m.Fold == "title" {
				c.title = m.Text
			}
			if c.args == nil && m.Fold == "content" {
				f.parseContent(m, sc, c, path)
			}
		case isInnerCall(m) && len(path) < maxInner:
			f.identify(m, sc)
			f.parseCall(m, sc, c, append(path[:len(path):len(path)], m.Name))
		}
	}
}

// isInnerCall reports whether member m of a call has further members of it.
func isInnerCall(m *event.Node) bool {
	return m.Kind == jsontree.Object && (callInner[m.Fold] || typeOf(m.Name).channel == Call || slices.ContainsFunc(m.Items, isOwnArguments))
}

// isWrappedCall reports whether member m is an object that is the call proper, such as the parameters of JSON-RPC.
func isWrappedCall(m *event.Node) bool {
	return m.Kind == jsontree.Object && slices.ContainsFunc(m.Items, isCallID)
}

// otherName returns the first word in object n that may be the name of a tool, if no member is named so; otherwise "".
func otherName(n *event.Node) string {
	if slices.ContainsFunc(n.Items, func(m *event.Node) bool { return isCallName(m.Fold) }) {
		return ""
	}
	for _, m := range n.Items {
		if m.Kind == jsontree.String && !hasArguments(m) && !strings.HasSuffix(m.Fold, "id") && !isDiscriminator(m.Fold) && naming.IsTool(m.Text) && ident.Of(m.Text) == "" && !typeOf(m.Text).whole {
			return m.Text
		}
	}
	return ""
}

// isEmpty reports whether the value of member m is null, or a text or an array without content.
func isEmpty(m *event.Node) bool {
	return m.Kind == jsontree.Null || m.Kind == jsontree.String && m.Text == "" || m.Kind == jsontree.Array && len(m.Items) == 0
}

// setName sets the name of the tool from member m. outside means that an object inside describes the function: then
// a member called name is that of the message.
func (c *parsedCall) setName(m *event.Node, outside bool) {
	if (c.name == "" || m.Fold == "name") && !(outside && m.Fold == "name") {
		c.name = m.Text
	}
}

// setArguments sets the arguments to member m, unless there are arguments that are not empty already.
func (c *parsedCall) setArguments(m *event.Node, path []string) {
	if c.args == nil || len(c.args.Items) == 0 && c.args.Text == "" {
		c.args, c.path = m, append(path[:len(path):len(path)], m.Name)
	}
}

// maxInner is the maximum number of nested objects in which the members of a tool call (name, arguments,
// identifier) are searched.
const maxInner = 4

// isArguments reports whether member m has the arguments of a call: a text, or an object or array. An object called
// delta has further members instead.
func isArguments(m *event.Node) bool {
	switch m.Kind {
	case jsontree.String:
		return hasArguments(m)
	case jsontree.Object, jsontree.Array:
		return m.Fold != "delta" && hasArguments(m)
	}
	return false
}

// hasArguments reports whether the name of member m is one for the arguments of a call.
func hasArguments(m *event.Node) bool {
	given, _ := argumentsIn(m.Name)
	return given || callArguments[m.Fold]
}

// isOwnArguments reports whether the name of member m is one for the arguments of a call and hardly for anything else.
func isOwnArguments(m *event.Node) bool {
	_, own := argumentsIn(m.Name)
	return own
}

// argumentsIn reports whether all words of a name together are a name for arguments, and whether it is one that only
// calls have.
func argumentsIn(name string) (given, own bool) {
	of := false
	words := naming.Parts(name)
	for w := range words {
		switch {
		case givenWords[w]:
			given = true
			own = own || ownWords[w]
		case ofCallWords[w]:
			of = true
		case len(words) > 1 && w == strings.ToLower(name), formWords[w]:
		default:
			return false, false
		}
	}
	return given, given && (own || of)
}

// setID sets the call's identifier to member m if its name is preferable to that of the current one.
func (c *parsedCall) setID(m *event.Node) {
	if rank, ok := callIDRank(m); ok && rank < c.rank && m.Text != "" && len(m.Text) <= maxID {
		c.id, c.rank = m.Text, rank
	}
}

// parseContent parses a call that is JSON inside the text of member m, and adds its properties to c. path are the
// names that lead to m.
func (f *finder) parseContent(m *event.Node, sc *scope, c *parsedCall, path []string) {
	v, err := jsontree.Parse([]byte(m.Text))
	if err != nil || v.Kind() != jsontree.Object || len(path) > 2 {
		return
	}
	inner := event.Open(v)
	if isCall(inner) {
		f.parseCall(inner, sc, c, append(path[:len(path):len(path)], m.Name))
	}
}

// addResult adds the piece of the tool result that object n is. It returns false if n is not a result, but may
// contain some.
func (f *finder) addResult(n *event.Node, sc scope) bool {
	id, rank := "", leastIDRank+1
	name := ""
	var out *event.Node
	for _, m := range n.Items {
		if m.Kind == jsontree.String {
			if r, ok := callIDRank(m); ok && r < rank && m.Text != "" {
				id, rank = m.Text, r
			}
			if strings.HasSuffix(m.Fold, "name") && isToolName(m) {
				name = m.Text
			}
		}
		if (outputs[m.Fold] || isNamedText(m)) && m.Kind != jsontree.Null && out == nil {
			out = m
		}
	}
	if n.Member("call") != nil {
		// Some repeat the call in its result.
		var c parsedCall
		c.rank = leastIDRank + 1
		f.parseCall(n.Member("call"), &sc, &c, []string{"call"})
		id, name = c.id, c.name
	}

	// A message of a tool may contain several results, each with its own identifier.
	if inner := findResults(n); len(inner) > 0 {
		for _, r := range inner {
			sub := sc
			sub.channel = Result
			f.visitValue(r, sub)
		}
		return true
	}
	if out == nil {
		return false
	}
	if out.Kind == jsontree.Object && (isCall(out) || isResult(out)) {
		sc.path = append(sc.path[:len(sc.path):len(sc.path)], out.Name)
		f.visitObject(out, sc)
		return true
	}
	if isWrappedResult(out) {
		sc.path = append(sc.path[:len(sc.path):len(sc.path)], out.Name)
		return f.addResult(out, sc)
	}
	p := f.piece(sc)
	p.Channel, p.ID, p.Name, p.Text, p.Tier = Result, id, name, resultText(out), max(sc.tier, 2)
	p.Path = strings.Join(append(sc.path[:len(sc.path):len(sc.path)], out.Name), ".")
	f.out.List = append(f.out.List, p)
	return true
}

// isWrappedResult reports whether the member that contains a result is an object with the call's identifier and the
// result proper.
func isWrappedResult(out *event.Node) bool {
	return out.Kind == jsontree.Object && resultNames[out.Fold] && slices.ContainsFunc(out.Items, func(m *event.Node) bool { return outputs[m.Fold] }) &&
		slices.ContainsFunc(out.Items, func(m *event.Node) bool {
			_, ok := callIDRank(m)
			return ok && m.Kind == jsontree.String && m.Text != ""
		})
}

// findResults returns the tool results inside the content of a message.
func findResults(n *event.Node) []*event.Node {
	var out []*event.Node
	for _, m := range n.Items {
		if m.Kind != jsontree.Array || !outputs[m.Fold] && m.Fold != "parts" {
			continue
		}
		for _, e := range m.Items {
			for _, inner := range e.Items {
				if resultNames[inner.Fold] && inner.Kind == jsontree.Object {
					out = append(out, inner)
				}
			}
			if t := typeOf(e.String("type")); t.channel == Result && e.Kind == jsontree.Object {
				out = append(out, e)
			}
		}
	}
	return out
}

// resultText returns a result as text: the texts in it, or its JSON.
func resultText(n *event.Node) string {
	switch n.Kind {
	case jsontree.String:
		return n.Text
	case jsontree.Array:
		// A list of blocks of text.
		var texts []string
		for _, e := range n.Items {
			switch {
			case e.Kind == jsontree.String:
				texts = append(texts, e.Text)
			case blockText(e) != "":
				texts = append(texts, blockText(e))
			case e.Member("json") != nil:
				texts = append(texts, string(e.Member("json").Raw))
			case e.Member("content") != nil:
				texts = append(texts, resultText(e.Member("content")))
			}
		}
		if len(texts) == len(n.Items) && len(texts) > 0 {
			return strings.Join(texts, "\n")
		}
	case jsontree.Object:
		// An object that only wraps one text.
		if len(n.Items) <= 2 {
			typed := n.Member("type") != nil || n.Member("status") != nil
			for _, m := range n.Items {
				if m.Kind == jsontree.String && (m.Fold == "text" || m.Fold == "content") {
					return m.Text
				}
				if typed && m.Fold == "value" {
					return resultText(m)
				}
			}
		}
	}
	return string(n.Raw)
}

// isNamedText reports whether member m is a string whose name is one for texts.
func isNamedText(m *event.Node) bool {
	return m.Kind == jsontree.String && (textNames[m.Fold] || weakNames[m.Fold] || compoundOf(m.Name).text)
}

// blockText returns the text in a block of a result, or "".
func blockText(n *event.Node) string {
	for _, m := range n.Items {
		if isNamedText(m) {
			return m.Text
		}
	}
	return ""
}

// findError adds the error in an event, if the event reports one.
func (f *finder) findError(root *event.Node) {
	if root.Kind != jsontree.Object {
		return
	}
	t := typeOf(f.event.Name + "." + root.String("type") + "." + root.String("event"))
	for _, n := range []*event.Node{root, root.Member("response"), root.Member("data"), root.Member("message"), root.Member("header")} {
		if n == nil || n.Kind != jsontree.Object {
			continue
		}
		switch e := n.Member("error"); {
		case e == nil:
		case e.Kind == jsontree.String && e.Text != "":
			f.addError(codeOf(n), e.Text)
			return
		case e.Kind == jsontree.Object:
			f.addError(codeOf(e), messageOf(e))
			return
		}
	}
	if t.error && f.event.Dir == captures.Down {
		code := codeOf(root)
		if code == "" && typeOf(f.event.Name).error {
			code = f.event.Name
		}
		if m := messageOf(root); m != "" {
			f.addError(code, m)
		}
	}
}

// codeOf returns the code in an error object, or "".
func codeOf(n *event.Node) string {
	for _, name := range [...]string{"code", "type", "status", "errorcode", "errortype"} {
		if m := n.Member(name); m != nil && m.Text != "" && m.Text != "error" && (m.Kind == jsontree.String || m.Kind == jsontree.Number) {
			return m.Text
		}
	}
	return ""
}

// messageOf returns the message in an error object, or "".
func messageOf(n *event.Node) string {
	for _, name := range [...]string{"message", "errortext", "errormessage", "errormsg", "msg", "detail", "error", "reason"} {
		if s := n.String(name); s != "" {
			return s
		}
	}
	return ""
}

// addError adds an error of the current event, unless both texts are empty.
func (f *finder) addError(code, message string) {
	if code != "" || message != "" {
		f.out.Errors = append(f.out.Errors, Error{Frame: f.event.Frame, Seq: f.event.Seq, Code: code, Message: message})
	}
}
