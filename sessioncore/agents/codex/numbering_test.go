package codex

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestUnresumed: a rollout is named that the client refuses to resume, by the record, as long as that is
// the last one, and no other rollout.
func TestUnresumed(t *testing.T) {
	record := func(ordinal, text string) string {
		number := ""
		if ordinal != "" {
			number = `,"ordinal":` + ordinal
		}
		return fmt.Sprintf(`{"timestamp":"2026-03-30T07:13:41.000Z"%s,"type":"response_item",`+
			`"payload":{"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}}`, number, text)
	}
	const missing, cut = "has no ordinal", "are cut off at ordinal 2, before 4"
	paginated := `,"history_mode":"paginated"`
	for _, c := range []struct {
		name, meta string
		lines      []string
		want       string
		at         int // the line of the problem
	}{
		{"all numbered", paginated, []string{record("1", "a"), record("2", "b")}, "", 0},
		{"the last one is not", paginated, []string{record("1", "a"), record("", "b")}, missing, 3},
		{"none is", paginated, []string{record("", "a"), record("", "b")}, missing, 3},
		{"null is none", paginated, []string{record("1", "a"), record("null", "b")}, missing, 3},
		{"another one is not", paginated, []string{record("", "a"), record("2", "b")}, "", 0},
		{"repeated", paginated, []string{record("1", "a"), record("1", "b")}, "", 0},
		{"back", paginated, []string{record("2", "a"), record("1", "b")}, "", 0},
		{"not paginated", `,"history_mode":"legacy"`, []string{record("1", "a"), record("", "b")}, "", 0},
		{"old", "", []string{record("", "a")}, "", 0},
		{"torn", paginated, []string{record("1", "a"), `{"timestamp":"2026`}, "", 0},
		{"unknown behind", paginated, []string{record("1", "a"), `{"timestamp":"t","type":"note","payload":{"a":1}}`}, "", 0},
		{"unknown behind it", paginated, []string{record("", "a"), `{"timestamp":"t","type":"note","payload":{"a":1}}`}, missing, 2},
		{"cut off", paginated + `,"subagent_history_start_ordinal":5`, []string{record("1", "a"), record("2", "b")}, cut, 3},
		{"not cut off", paginated + `,"subagent_history_start_ordinal":3`, []string{record("1", "a"), record("2", "b")}, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHome(t)
			meta := strings.Replace(metaOf(1, c.meta), `"type"`, `"ordinal":0,"type"`, 1)
			h.write(1, append([]string{meta}, c.lines...)...)
			var problems []string
			for line := range strings.Lines(h.read(1)) {
				if strings.Contains(line, "refuses to resume") {
					problems = append(problems, line)
				}
			}
			if c.want == "" {
				require.Empty(t, problems)
				return
			}
			require.Len(t, problems, 1)
			require.Contains(t, problems[0], fmt.Sprintf(`"line %d, %d bytes: `, c.at, len(c.lines[c.at-2])))
			require.Contains(t, problems[0], c.want)
		})
	}
}

// TestUnresumedGrows: the record is no problem any more when a numbered one follows.
func TestUnresumedGrows(t *testing.T) {
	h := newHome(t)
	unnumbered := user("a note")
	numbered := strings.Replace(user("more"), `"type"`, `"ordinal":2,"type"`, 1)
	meta := metaOf(1, `,"history_mode":"paginated"`)
	h.write(1, meta, unnumbered)
	require.Contains(t, h.read(1), "refuses to resume")
	h.write(1, meta, unnumbered, numbered)
	require.NotContains(t, h.read(1), "refuses to resume")
}

// TestUnresumedChain: of a rollout that goes on from another one, its own records count.
func TestUnresumedChain(t *testing.T) {
	h := newHome(t)
	first := []string{metaOf(1, `,"history_mode":"paginated"`), user("one")}
	meta := strings.Replace(metaOf(2, `,"history_mode":"paginated"`+based(1, 2, first...)), `"type"`, `"ordinal":2,"type"`, 1)
	h.write(1, first...)
	h.write(2, meta)
	require.Contains(t, h.read(2), "one")
	require.NotContains(t, h.read(2), "refuses to resume")
	h.write(2, meta, user("two"))
	require.Contains(t, h.read(2), "refuses to resume")
}
