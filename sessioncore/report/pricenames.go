package report

import (
	"regexp"
	"strings"
)

// priceTable has the prices of models, by their names and by these with dashes in the place of dots between digits.
type priceTable map[string]price

var (
	// nameSuffix is the end of a model's name that says how and where it runs: a version in Bedrock, one in Vertex, and in
	// brackets the length of the context.
	nameSuffix = regexp.MustCompile(`(@[^/]*|-v[0-9]+(:[0-9]+)?|\[[^\]]*\])$`)
	// nameDate is the day of a model's version.
	nameDate = regexp.MustCompile(`-20[0-9]{2}(-?)[0-9]{2}(-?)[0-9]{2}$`)
	// nameRegion is a region, or a provider, before the name of a model in Bedrock.
	nameRegion = regexp.MustCompile(`^([a-z]+\.)+`)
	// betweenDigits is a dot that is written as a dash elsewhere.
	betweenDigits = regexp.MustCompile(`([0-9])\.([0-9])`)
)

// find returns the price of a model. The exact name counts, then the name without providers before
// it, and then without the parts that shorterName removes.
func (t priceTable) find(model string) (price, bool) {
	if len(t) == 0 {
		return price{}, false
	}
	name := model
	for {
		if p, ok := t[name]; ok {
			return p, true
		}
		if p, ok := t[dashed(name)]; ok {
			return p, true
		}
		next := shorterName(name)
		if next == name {
			return price{}, false
		}
		name = next
	}
}

// shorterName returns a model's name without one part that other programs leave out, the same name if there is none.
func shorterName(name string) string {
	if _, rest, ok := strings.Cut(name, "/"); ok {
		return rest
	}
	for _, part := range [...]*regexp.Regexp{nameRegion, nameSuffix, nameDate} {
		if at := part.FindStringIndex(name); at != nil {
			return name[:at[0]] + name[at[1]:]
		}
	}
	return name
}

// dashed returns a name with a dash in the place of each dot between digits.
func dashed(name string) string { return betweenDigits.ReplaceAllString(name, "$1-$2") }
