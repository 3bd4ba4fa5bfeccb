package probe

import (
	"slices"
	"testing"
)

func TestQuestionsOfInference(t *testing.T) {
	const evidence = `{"v":1,"fields":[
		{"message":"p.GetRequest","number":1,"kind":"string","type":"string","label":"singular","settle":"","alternatives":[]},
		{"message":"p.GetRequest","number":2,"kind":"message","type":"p.GetRequestField2","label":"singular","settle":"a payload that is not empty","alternatives":[{"kind":"string","p":0.28}]},
		{"message":"p.GetRequestField2","number":7,"kind":"varint","type":"int32","label":"optional","settle":"a negative value","alternatives":[]},
		{"message":"p.GetResponse","number":3,"kind":"string","type":"string","label":"singular","settle":"x","alternatives":[]}]}`
	list, texts, err := QuestionsOfInference([]byte(evidence), "", "/p.Service/Get")
	if err != nil || len(list) != 2 || !slices.Equal(texts, []int32{1}) || list[1].Path != "2" || list[1].Claims[0].Type != "int32" || list[0].Claims[1].Kind != "string" {
		t.Errorf("%v: %+v %v", err, list, texts)
	}
	for _, c := range []struct{ data, root string }{{`{}`, ""}, {`[1]`, ""}, {evidence, "p.Nothing"}, {`{"fields":[{"message":"","number":1}]}`, ""}} {
		if list, _, err := QuestionsOfInference([]byte(c.data), c.root, "/p.Service/Get"); err == nil {
			t.Errorf("%s: %+v", c.data, list)
		}
	}
}

// What ends a request is read wherever it is wrapped: a path that leads to no
// message is found out, and runs nothing.
