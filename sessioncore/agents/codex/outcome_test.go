package codex

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// TestPatchesOfScript: of the patches of one script the files of those that succeeded count, each with its last
// change; those of failed ones only where none succeeded.
func TestPatchesOfScript(t *testing.T) {
	patch := func(success bool, changes string) *outcome {
		text := `{"success":false,"changes":` + changes + `}`
		if success {
			text = `{"success":true,"changes":` + changes + `}`
		}
		o, _, _ := outcomeOf(patchEvent, agents.Read(rawjson.Value(text)))
		return o
	}
	a := `{"/a":1}`
	b := `{"/b":2,"/c":3}`
	again := `{"/c":4}`
	for name, c := range map[string]struct {
		patches []*outcome
		want    string
	}{
		"both":             {[]*outcome{patch(true, a), patch(true, b)}, `{"changes":{"/a":1,"/b":2,"/c":3},"success":true}`},
		"the first failed": {[]*outcome{patch(false, a), patch(true, b)}, `{"changes":{"/b":2,"/c":3},"success":true}`},
		"the last failed":  {[]*outcome{patch(true, b), patch(false, a)}, `{"changes":{"/b":2,"/c":3},"success":true}`},
		"all failed":       {[]*outcome{patch(false, a), patch(false, b)}, `{"changes":{"/a":1,"/b":2,"/c":3},"success":false}`},
		"one file twice":   {[]*outcome{patch(true, b), patch(true, again)}, `{"changes":{"/b":2,"/c":4},"success":true}`},
	} {
		sum := c.patches[0].with(c.patches[1])
		require.Equal(t, c.want, string(sum.details()), name)
		require.Equal(t, name == "all failed", sum.failed, name)
	}
}
