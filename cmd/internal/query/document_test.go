package query

import (
	"errors"
	"testing"

	"unwire/cmd/internal/contract"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/fieldpath"
	"unwire/decode/kind"
	"unwire/decode/text"
)

// TestDocument: choices are fitted to the fields of all messages of a document, and each
// message with a field is explained.
func TestDocument(t *testing.T) {
	data := envelope.Append(envelope.Append(nil, 0, fieldOne("A text")), 0, fieldOne("Another text"))
	doc, err := text.Decode(data, text.Options{})
	if err != nil {
		t.Fatal(err)
	}
	choices := func(list ...string) (out []kind.Choice) {
		for _, s := range list {
			c, err := kind.ParseChoice(s)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, c)
		}
		return out
	}
	misfits, err := FitDocument(doc, choices("1:string", "1:double", "1:bytes"))
	if err != nil || len(misfits) != 1 || misfits[0].Choice.Type != "double" || misfits[0].Why == nil {
		t.Errorf("misfits %+v, %v", misfits, err)
	}
	misfits, err = FitDocument(doc, choices("1:double", "2:string"))
	if e, ok := errors.AsType[*ChoiceError](err); !ok || e.Choice.String() != "2:string" || len(misfits) != 1 {
		t.Errorf("misfits %+v, %v", misfits, err)
	}

	for path, want := range map[string]int{"1": 2, "2": 0} {
		p, err := fieldpath.ParseNumbers(path)
		if err != nil {
			t.Fatal(err)
		}
		calls := 0
		err = ExplainDocument(doc, decode.View{}, p, 1, func(list []contract.Explanation) error {
			calls++
			if len(list) != 1 || list[0].Path != path || len(list[0].Readings) == 0 {
				t.Errorf("%s: %+v", path, list)
			}
			return nil
		})
		if err != nil || calls != want {
			t.Errorf("%s: explained in %d messages, want %d; %v", path, calls, want, err)
		}
	}
}
