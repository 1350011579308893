package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestIsOther: a file among sessions is something else if it begins with whole objects of which none is an entry. Of a longer file
// the last line is cut, and an object as far as it goes.
func TestIsOther(t *testing.T) {
	const object = `{"name":"ducks"}` + "\n"
	cut := func(last string) string { // a beginning of which the last line goes on
		text := strings.Repeat(object, maxOther/len(object)-1)
		return text + last + strings.Repeat("x", maxOther-len(text)-len(last))
	}
	for text, want := range map[string]bool{
		"":              false,
		object:          true,
		object + object: true,
		object + `{"parentId":"b","id":"a"}` + "\n":  false,
		object + `{"parent_id":"b","id":"a"}` + "\n": false,
		object + "ducks\n":                           false,
		object + `{"name":"x`:                        false,
		cut(`{"name":"`):                             true,
		cut(`["name","`):                             false,
	} {
		require.Equal(t, want, isOther([]byte(text)), "%d bytes: %.40q", len(text), text)
	}
}
