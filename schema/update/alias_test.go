package update_test

import (
	"testing"

	"unwire/schema"
	"unwire/schema/update"
)

// TestAliases: another name of a number stands behind the name that it has, and
// the enum allows it from then on.
func TestAliases(t *testing.T) {
	const end = "\tC = 2;\n}\n"
	for _, c := range []struct{ name, later, before, after string }{
		{
			"the first alias", "A = 0; B = 1; BEE = 1; C = 2;",
			"enum E {  // states\n\t// none\n\tA = 0;\n\tB = 1;  // one\n" + end,
			"enum E {  // states\n\toption allow_alias = true;\n\t// none\n\tA = 0;\n\tB = 1;  // one\n\tBEE = 1;\n" + end,
		},
		{
			"one more", "A = 0; B = 1; BIS = 1; BEE = 1; C = 2;",
			"enum E {\n\toption allow_alias = true;\n\tA = 0;\n\tB = 1;\n\tBIS = 1;\n" + end,
			"enum E {\n\toption allow_alias = true;\n\tA = 0;\n\tB = 1;\n\tBIS = 1;\n\tBEE = 1;\n" + end,
		},
		{
			"on one line", "A = 0; B = 1; BEE = 1; C = 2;",
			"enum E { A = 0; B = 1; C = 2; }\n",
			"enum E { option allow_alias = true; A = 0; B = 1; BEE = 1; C = 2; }\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			const head = "syntax = \"proto3\";\npackage a;\n"
			want, err := schema.FromTexts(map[string]string{"b.proto": head + "enum E { option allow_alias = true; " + c.later + " }"})
			if err != nil {
				t.Fatal(err)
			}
			src := update.Source{Name: "test", Certainty: "reported", Schema: want}
			texts := map[string]string{"a.proto": head + c.before}
			checkUpdate(t, texts, src)
			r, err := update.Run(texts, "", []update.Source{src}, update.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Files[0].After; got != head+c.after {
				t.Errorf("got:\n%s\nwant:\n%s", got, head+c.after)
			}
			src.Guessed = true
			if r, err = update.Run(texts, "", []update.Source{src}, update.Options{}); err != nil || len(r.Files) > 0 {
				t.Errorf("a guess is no alias: %+v, %v", r, err)
			}
		})
	}
}
