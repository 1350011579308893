package agents_test

import (
	"fmt"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// records is a session in the form of an agent: records without ids of parents.
const records = `{"is":"start","at":"2026-02-16T10:20:30.000Z","in":"/srv/weather"}
{"is":"asked","id":"a1","at":"2026-02-16T10:20:31.000Z","text":"Will it rain?"}
{"is":"answered","id":"a2","at":"2026-02-16T10:20:32.000Z","text":"Rain is likely."}
`

// An agent's part is a function of a record. The Builder makes the lines of a session, with ids and parents. Those
// that a later record may change are its tail.
func ExampleBuilder() {
	provider := agents.Provider{API: "cloud", Name: "cloud", Model: "nimbus-1"}
	b := agents.NewBuilder(agents.About{ID: "w"}, provider, func(b *agents.Builder) func(*agents.Record) {
		return func(r *agents.Record) {
			id, _ := r.Member("id").Text()
			b.From(id, r.Member("at"))
			kind, _ := r.Member("is").Text()
			switch kind {
			case "start":
				b.Begin(agents.Header{Time: r.Member("at"), Cwd: r.Member("in")})
			case "asked":
				var words agents.Blocks
				words.Text(r.Member("text"))
				b.User(words)
			case "answered":
				b.Answer(id).Text(r.Member("text"))
			}
		}
	})
	var final []byte
	number := int64(0)
	for line := range strings.Lines(records) {
		number++
		final = b.Add(final, rawjson.Value(strings.TrimSpace(line)), number)
	}
	for line := range strings.Lines(string(final) + string(b.Tail(nil))) {
		entry := rawjson.Value(strings.TrimSpace(line))
		if entry.Member("type").Is("session") {
			continue
		}
		said := entry.Member("message").Member("content")
		fmt.Printf("%s %s < %s %s\n", entry.Member("type"), entry.Member("id"), entry.Member("parentId"), said)
	}
	// Output:
	// "message" "a1" < null [{"type":"text","text":"Will it rain?"}]
	// "message" "a2" < "a1" [{"type":"text","text":"Rain is likely."}]
}
