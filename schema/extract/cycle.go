package extract

import (
	"fmt"

	"google.golang.org/protobuf/types/descriptorpb"
)

// layer splits packages that refer to each other, so that no file imports
// itself over others: an element's layer is one more than that of any element
// of another package that it needs, and no less than that of its own package's.
// Packages that are in no cycle keep the one layer 0.
func (m *merger) layer(needs map[*element]map[*element]bool) {
	type file struct {
		pkg    string
		syntax syntax
	}
	of := func(e *element) file { return file{e.pkg, e.syntax} }
	graph := map[file]map[file]bool{}
	for _, e := range m.elements {
		if graph[of(e)] == nil {
			graph[of(e)] = map[file]bool{}
		}
		for to := range needs[e] {
			if of(to) != of(e) {
				graph[of(e)][of(to)] = true
			}
		}
	}
	var files []file
	seen := map[file]bool{}
	for _, e := range m.elements {
		if !seen[of(e)] {
			seen[of(e)] = true
			files = append(files, of(e))
		}
	}
	group := components(files, func(f file) []file {
		var list []file
		for to := range graph[f] {
			list = append(list, to)
		}
		return list
	})
	sizes := map[int]int{}
	for _, n := range group {
		sizes[n]++
	}
	cyclic := func(a, b *element) bool { return group[of(a)] == group[of(b)] && sizes[group[of(a)]] > 1 }

	// Elements that need each other share a layer.
	unit := components(m.elements, func(e *element) []*element {
		var list []*element
		for to := range needs[e] {
			if cyclic(e, to) {
				list = append(list, to)
			}
		}
		return list
	})
	members := map[int][]*element{}
	for _, e := range m.elements {
		members[unit[e]] = append(members[unit[e]], e)
	}
	// components numbers a component after all that it reaches.
	for n := range len(members) {
		layer := 0
		for _, e := range members[n] {
			for to := range needs[e] {
				if unit[to] == n || !cyclic(e, to) {
					continue
				}
				if of(to) == of(e) {
					layer = max(layer, to.layer)
				} else {
					layer = max(layer, to.layer+1)
				}
			}
		}
		for _, e := range members[n] {
			e.layer = layer
		}
		m.breakCycle(members[n], func(e *element) any { return of(e) })
	}
}

// components numbers the strongly connected components of a graph, each after
// those that it reaches (Tarjan's, without recursion).
func components[N comparable](nodes []N, next func(N) []N) map[N]int {
	type frame struct {
		node N
		rest []N
	}
	index, low, comp := map[N]int{}, map[N]int{}, map[N]int{}
	on := map[N]bool{}
	var stack []N
	count := 0
	for _, root := range nodes {
		if _, ok := index[root]; ok {
			continue
		}
		var frames []frame
		enter := func(n N) {
			index[n] = len(index)
			low[n] = index[n]
			stack = append(stack, n)
			on[n] = true
			frames = append(frames, frame{n, next(n)})
		}
		enter(root)
		for len(frames) > 0 {
			f := &frames[len(frames)-1]
			if len(f.rest) > 0 {
				to := f.rest[0]
				f.rest = f.rest[1:]
				if _, ok := index[to]; !ok {
					enter(to)
				} else if on[to] {
					low[f.node] = min(low[f.node], index[to])
				}
				continue
			}
			n := f.node
			frames = frames[:len(frames)-1]
			if len(frames) > 0 {
				up := frames[len(frames)-1].node
				low[up] = min(low[up], low[n])
			}
			if low[n] != index[n] {
				continue
			}
			for {
				top := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				on[top] = false
				comp[top] = count
				if top == n {
					break
				}
			}
			count++
		}
	}
	return comp
}

// breakCycle cuts references between files among elements that need each
// other: no files could declare them, so no files did.
func (m *merger) breakCycle(list []*element, file func(*element) any) {
	within := map[string]*element{}
	for _, e := range list {
		typesIn(e, func(full string) { within["."+full] = e })
	}
	for _, e := range list {
		eachType(e.msg, func(path string, name **string, f *descriptorpb.FieldDescriptorProto) {
			to := within[**name]
			if to == nil || f == nil || file(to) == file(e) {
				return
			}
			full := join(e.full(), path)
			m.notes[full] = fmt.Sprintf("Its type is %s, which refers back to this package; bytes has the same wire format.", (**name)[1:])
			m.unresolved(full, "", "its type "+(**name)[1:]+" refers back to this package, which no .proto file can; it is declared as bytes")
			replaceType(f)
			*name = nil
		})
	}
}
