package compare

import "unwire/schema"

// Outdated reports of each change between two versions whether definitions still are
// as the older version is: whether they differ from the newer one in the same way.
func Outdated(changes []Change, definitions, newer *schema.Schema) []bool {
	type difference struct {
		change        ChangeKind
		kind          ElementKind
		element, next string
	}
	open := map[difference]bool{}
	for _, c := range Diff(definitions, newer) {
		open[difference{c.Change, c.Kind, c.Element, c.New}] = true
	}
	outdated := make([]bool, len(changes))
	for i, c := range changes {
		outdated[i] = open[difference{c.Change, c.Kind, c.Element, c.New}]
	}
	return outdated
}
