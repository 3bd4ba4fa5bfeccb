package secret

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures/redact"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// A value is one field's whole value that is a secret.
type value struct {
	node  int32
	rule  redact.Rule
	field string // its name, or its message's
}

// typed returns the values of a tree that its type says are secrets, in order.
// Placeholders are none. Choices are what somebody said of its fields.
func (r *Rules) typed(red *redact.Redactor, t *wire.Tree, md protoreflect.MessageDescriptor, choices []kind.Choice) []value {
	if t == nil || md == nil {
		return nil
	}
	w := walker{rules: r, red: red, tree: t, choices: choices}
	w.message(0, md)
	return w.found
}

type walker struct {
	rules  *Rules
	red    *redact.Redactor
	tree   *wire.Tree
	reader *kind.Reader
	found  []value

	choices []kind.Choice
}

// addSecret notes the value of node i.
func (w *walker) addSecret(i int32, rule redact.Rule, field string) {
	if p := w.tree.Payload(i); len(p) > 0 && !redact.IsPlaceholder(string(p)) {
		w.found = append(w.found, value{i, rule, field})
	}
}

// message looks at the fields of node i, which is of type md.
func (w *walker) message(i int32, md protoreflect.MessageDescriptor) {
	holds := w.holdsSecrets(md)
	for c := range w.tree.Children(i) {
		n := w.tree.Node(c)
		if n.Type != wire.Len && n.Type != wire.StartGroup {
			continue
		}
		fd := md.Fields().ByNumber(protoreflect.FieldNumber(min(n.Number, 1<<29)))
		switch {
		case fd == nil:
			if holds && n.Type == wire.Len && redact.LooksRandom(w.tree.Payload(c)) {
				w.addSecret(c, ruleUnknown, string(md.FullName()))
			}
		case w.rules.Fields[fd.FullName()]:
			w.secret(c, string(fd.FullName()))
		case fd.Message() != nil:
			if w.tree.IsMessage(c) {
				w.message(c, fd.Message())
			}
		case n.Type == wire.Len && (fd.Kind() == protoreflect.StringKind || fd.Kind() == protoreflect.BytesKind):
			surely, perhaps := w.red.IsSecretName(string(fd.Name()))
			if surely || perhaps && redact.LooksRandom(w.tree.Payload(c)) {
				w.addSecret(c, ruleName, string(fd.FullName()))
			}
		}
	}
}

// secret notes node i, or every text in it if it is a message rather than one.
func (w *walker) secret(i int32, field string) {
	n := w.tree.Node(i)
	if n.Type == wire.Len && (n.First == wire.None || !w.ratherMessage(i)) {
		w.addSecret(i, ruleField, field)
		return
	}
	for c := range w.tree.Children(i) {
		if t := w.tree.Node(c).Type; t == wire.Len || t == wire.StartGroup {
			w.secret(c, field)
		}
	}
}

func (w *walker) ratherMessage(i int32) bool {
	if w.reader == nil {
		w.reader = kind.NewReader(w.tree, nil)
		w.reader.Choose(w.choices)
	}
	kind, _, _ := w.reader.Best(i)
	return kind == wire.KindMessage
}

// holdsSecrets reports whether a field of md is known to hold one.
func (w *walker) holdsSecrets(md protoreflect.MessageDescriptor) bool {
	for i := range md.Fields().Len() {
		if w.rules.Fields[md.Fields().Get(i).FullName()] {
			return true
		}
	}
	return false
}
