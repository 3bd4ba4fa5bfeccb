package compare

import "unwire/schema"

// Outdated reports, for each of the changes that led to the version newer, whether definitions lack that
// change, i.e. still differ from newer in the same way. The result has the indices of changes.
func Outdated(changes []Change, definitions, newer *schema.Schema) []bool {
	// A difference is a change without what depends on the old version.
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
