package extract

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/types/descriptorpb"
)

// A fileKey identifies an output file before layers are assigned.
type fileKey struct {
	// pkg is the protobuf package.
	pkg string
	// syntax is the syntax of all elements of the file.
	syntax syntax
}

// file returns the key of the output file that has the element.
func (e *element) file() fileKey { return fileKey{e.pkg, e.syntax} }

// assignLayers splits packages that refer to each other into layers, each of which becomes a file, so that no
// file imports itself indirectly. The layer of an element is greater than that of each element of another
// package in the cycle that it refers to, and at least that of elements of its own package. Packages outside of
// cycles have layer 0 only. needs are the references between elements.
func (m *merger) assignLayers(needs map[*element]map[*element]bool) {
	cyclic := m.fileCycles(needs)

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
				// A reference within the package needs no import, but the layer must not decrease.
				if to.file() == e.file() {
					layer = max(layer, to.layer)
				} else {
					layer = max(layer, to.layer+1)
				}
			}
		}
		for _, e := range members[n] {
			e.layer = layer
		}
		m.breakCycle(members[n])
	}
}

// fileCycles returns a function that reports whether the files of two elements import each other, directly or
// through others. needs are the references between elements.
func (m *merger) fileCycles(needs map[*element]map[*element]bool) func(a, b *element) bool {
	graph := map[fileKey]map[fileKey]bool{}
	var files []fileKey
	for _, e := range m.elements {
		from := e.file()
		if graph[from] == nil {
			graph[from] = map[fileKey]bool{}
			files = append(files, from)
		}
		for to := range needs[e] {
			if to.file() != from {
				graph[from][to.file()] = true
			}
		}
	}

	group := components(files, func(f fileKey) []fileKey { return slices.Collect(maps.Keys(graph[f])) })
	sizes := map[int]int{}
	for _, n := range group {
		sizes[n]++
	}
	return func(a, b *element) bool {
		return group[a.file()] == group[b.file()] && sizes[group[a.file()]] > 1
	}
}

// components numbers the strongly connected components of a graph; next returns the successors of a node. The
// number of a component is greater than those of all components that it reaches. This is Tarjan's algorithm
// (1972) without recursion, because chains of types can be long.
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

		// frames is the call stack of the recursive algorithm.
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

			// All edges of n are done.
			n := f.node
			frames = frames[:len(frames)-1]
			if len(frames) > 0 {
				up := frames[len(frames)-1].node
				low[up] = min(low[up], low[n])
			}
			// n is not the root of its component.
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

// breakCycle removes references between files among the elements in list, which refer to each other in a
// circle. No .proto files can declare such elements, so the input is a guess or inconsistent.
func (m *merger) breakCycle(list []*element) {
	within := map[string]*element{}
	for _, e := range list {
		typesIn(e, func(full string) { within["."+full] = e })
	}
	for _, e := range list {
		eachType(e.msg, func(path string, name **string, f *descriptorpb.FieldDescriptorProto) {
			to := within[**name]
			if to == nil || f == nil || to.file() == e.file() {
				return
			}
			full := join(e.full(), path)
			m.notes[full] = fmt.Sprintf("Its type is %s, which refers back to this package; bytes has the same wire format.", (**name)[1:])
			m.addUnresolved(full, "", "its type "+(**name)[1:]+" refers back to this package, which .proto files cannot do, so extract declared it as bytes")
			replaceType(f)
			*name = nil
		})
	}
}
