package secret

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures/redact"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// A value is a field whose whole value is a secret.
type value struct {
	// node is the index of the secret field in the tree.
	node int32

	// rule is the rule that declares the field secret.
	rule redact.Rule

	// field is the full name of the field, or of its message if the field has no definition.
	field string
}

// secretFields returns the values of message t that are secret by its type md, in order. Placeholders are not
// secret. choices are the types that users chose for fields.
func (r *Rules) secretFields(red *redact.Redactor, t *wire.Tree, md protoreflect.MessageDescriptor, choices []kind.Choice) []value {
	if t == nil || md == nil {
		return nil
	}
	w := walker{rules: r, red: red, tree: t, choices: choices}
	w.visitMessage(0, md)
	return w.found
}

// A walker collects the secret values of one message.
type walker struct {
	// rules decide which fields are secret, by path or name.
	rules *Rules

	// red decides whether a text looks like a secret.
	red *redact.Redactor

	// tree is the parsed message.
	tree *wire.Tree

	// reader infers the types of the fields in tree.
	reader *kind.Reader

	// found are the secret values found so far.
	found []value

	// choices are the types that persons chose for fields.
	choices []kind.Choice
}

// addSecret adds the value of node i unless it is empty or a placeholder.
func (w *walker) addSecret(i int32, rule redact.Rule, field string) {
	if p := w.tree.Payload(i); len(p) > 0 && !redact.IsPlaceholder(string(p)) {
		w.found = append(w.found, value{i, rule, field})
	}
}

// visitMessage visits the fields of node i, which is a message of type md, and collects the secret ones.
func (w *walker) visitMessage(i int32, md protoreflect.MessageDescriptor) {
	hasSecrets := w.holdsSecrets(md)
	for c := range w.tree.Children(i) {
		n := w.tree.Node(c)
		if n.Type != wire.Len && n.Type != wire.StartGroup {
			continue
		}
		fd := md.Fields().ByNumber(protoreflect.FieldNumber(min(n.Number, 1<<29)))
		switch {
		case fd == nil:
			// In a message with secret fields, unknown fields that look like tokens are probably secret, too.
			if hasSecrets && n.Type == wire.Len && redact.LooksRandom(w.tree.Payload(c)) {
				w.addSecret(c, ruleUnknown, string(md.FullName()))
			}
		case w.rules.Fields[fd.FullName()]:
			w.addAllTexts(c, string(fd.FullName()))
		case fd.Message() != nil:
			if w.tree.IsMessage(c) {
				w.visitMessage(c, fd.Message())
			}
		case n.Type == wire.Len && (fd.Kind() == protoreflect.StringKind || fd.Kind() == protoreflect.BytesKind):
			// A weak name must be confirmed by the value.
			surely, perhaps := w.red.IsSecretName(string(fd.Name()))
			if surely || perhaps && redact.LooksRandom(w.tree.Payload(c)) {
				w.addSecret(c, ruleName, string(fd.FullName()))
			}
		}
	}
}

// addAllTexts adds node i as a secret or, if it is a message, every text in it. field is the full name of the field
// that the rules declare secret.
func (w *walker) addAllTexts(i int32, field string) {
	n := w.tree.Node(i)
	if n.Type == wire.Len && (n.First == wire.None || !w.isProbablyMessage(i)) {
		w.addSecret(i, ruleField, field)
		return
	}
	for c := range w.tree.Children(i) {
		if t := w.tree.Node(c).Type; t == wire.Len || t == wire.StartGroup {
			w.addAllTexts(c, field)
		}
	}
}

// isProbablyMessage reports whether the most probable type of node i is message.
func (w *walker) isProbablyMessage(i int32) bool {
	if w.reader == nil {
		w.reader = kind.NewReader(w.tree, nil)
		w.reader.Choose(w.choices)
	}
	kind, _, _ := w.reader.Best(i)
	return kind == wire.KindMessage
}

// holdsSecrets reports whether the rules declare a field of md as secret.
func (w *walker) holdsSecrets(md protoreflect.MessageDescriptor) bool {
	for i := range md.Fields().Len() {
		if w.rules.Fields[md.Fields().Get(i).FullName()] {
			return true
		}
	}
	return false
}
