package live

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"unwire/decode"
	"unwire/replay/live/values"
)

// listFrame returns a message with a list of texts, as JSON.
func listFrame(list []string) *parsedMessage {
	f := &decode.Frame{}
	f.Data = []byte(`{"ids":["` + strings.Join(list, `","`) + `"]}`)
	return &parsedMessage{frame: f, leaves: values.Leaves(f, nil)}
}

// sentOf returns the values of a frame in which the client sends the elements of list at the given places.
func sentOf(list []string, places ...int) *sentList {
	s := &sentList{}
	for i, text := range list {
		s.list = append(s.list, element{path: fmt.Sprintf("ids[%d]", i), value: text})
	}
	for _, i := range places {
		s.sent = append(s.sent, s.list[i])
	}
	return s
}

// An order is found only if the places do not explain what the client sends, and it is certain only if it
// is improbable by chance.
func TestOrderOfLists(t *testing.T) {
	cab, bca, abc, acb := []string{"c3", "a1", "b2"}, []string{"b2", "c3", "a1"}, []string{"a1", "b2", "c3"}, []string{"a1", "c3", "b2"}
	for _, c := range []struct {
		name   string
		groups []*sentList
		want   string // "" if the places count
	}{
		{"in the order of the list", []*sentList{sentOf(abc, 0, 1, 2), sentOf(cab, 0, 1, 2)}, ""},
		{"a part in the order of the list", []*sentList{sentOf(abc, 0, 2), sentOf(cab, 1, 2)}, ""},
		{"in no order", []*sentList{sentOf(abc, 0, 2, 1), sentOf(cab, 0, 1, 2)}, ""},
		{"sorted", []*sentList{sentOf(cab, 1, 2, 0), sentOf(bca, 2, 0, 1)}, "sorted, certain"},
		{"sorted once", []*sentList{sentOf(cab, 1, 2, 0)}, "sorted"},
		{"sorted numbers", []*sentList{sentOf([]string{"100", "20", "3"}, 2, 1, 0), sentOf([]string{"20", "3", "100"}, 1, 0, 2)}, "sorted, certain"},
		{"always in reverse", []*sentList{sentOf(cab[1:], 1, 0), sentOf(abc[:2], 1, 0)}, "sorted in descending order"},
		{"the same place", []*sentList{sentOf(abc, 0), sentOf(acb, 0)}, ""},
		{"the smallest", []*sentList{sentOf(abc, 0), sentOf(cab, 1), sentOf(bca, 2)}, "the smallest of a list, certain"},
		{"the largest of two lists", []*sentList{sentOf(abc, 2), sentOf(cab, 0)}, "the largest of a list"},
		{"another of each list", []*sentList{sentOf(abc, 1), sentOf(cab, 1), sentOf(bca, 2)}, ""},
	} {
		got := ""
		if !isByPlace(c.groups) {
			if o := orderOf(c.groups); o != nil {
				if got = o.String(); o.certain {
					got += ", certain"
				}
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Sorted values take the places of the live values in that order; if the order is uncertain and the places
// lead to another result, the frame is not sent.
func TestReorder(t *testing.T) {
	for _, c := range []struct {
		order ordering
		live  []string
		want  string // the values that are sent; "" if the frame is not
	}{
		{ordering{certain: true}, []string{"y", "z", "x"}, "x y z"},
		{ordering{certain: true, descending: true}, []string{"y", "z", "x"}, "z y x"},
		{ordering{}, []string{"z", "x", "y"}, "x y z"},
		{ordering{}, []string{"y", "z", "x"}, ""},
	} {
		// In the capture, the client has sorted the list c3, a1, b2.
		var bindings []Binding
		for rank, e := range sentOf([]string{"c3", "a1", "b2"}, 1, 2, 0).sent {
			bindings = append(bindings, Binding{Path: fmt.Sprintf("for[%d]", rank), FromPath: e.path, value: "t" + e.value, order: &c.order, rank: rank})
		}
		h := listFrame(c.live)
		unknown, reason := reorder(bindings, []*parsedMessage{h, h, h})
		var got []string
		for i := range bindings {
			got = append(got, values.LeafAt(h.leaves, bindings[i].FromPath).Text())
		}
		if c.want == "" {
			if unknown == nil || unknown.FromPath != "ids[1]" || !strings.Contains(reason, "sorted") {
				t.Errorf("%v: %v, %q", c.live, unknown, reason)
			}
		} else if unknown != nil || !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%v, %v: %v, %q", c.order, c.live, got, reason)
		}
	}
}
