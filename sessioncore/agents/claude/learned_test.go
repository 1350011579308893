package claude

import (
	"strings"
	"testing"
)

// leafOf returns a last-prompt record.
func leafOf(members string) string { return `{"type":"last-prompt","sessionId":"s",` + members + `}` }

func boundaryOf(uuid, logical, metadata string) string {
	return rec("system", uuid, "", `"subtype":"compact_boundary","logicalParentUuid":"`+logical+`","compactMetadata":{`+metadata+`}`)
}

func summaryOf(uuid, parent, text string) string {
	return rec("user", uuid, parent, `"isCompactSummary":true,"message":{"role":"user","content":"`+text+`"}`)
}

// without returns a record without a member that begins it.
func without(record, member string) string { return strings.Replace(record, member, "", 1) }

// TestLearned: what later records say of earlier ones.
func TestLearned(t *testing.T) {
	for name, c := range map[string]convertCase{
		"of a uuid that comes again the later record counts": {
			[]string{user("u1", "", "first"), says("a1", "u1", "M", textBlock("hi"), 1), user("u1", "", "second"), user("u2", "a1", "on")},
			[]string{
				`a1 < u1 message assistant "hi" stop 15+1 [2]`, `u1 <  message user "second" [3]`, `u2 < a1 message user "on" [4]`,
			},
		},
		"a file that has everything twice": {
			[]string{
				user("u1", "", "hello"), says("a1", "u1", "M", textBlock("well"), 1), says("a2", "a1", "M", callBlock("c1"), 2), result("r1", "a2", "c1", "out"),
				user("u1", "", "hello"), says("a1", "u1", "M", textBlock("well"), 1), says("a2", "a1", "M", callBlock("c1"), 2), result("r1", "a2", "c1", "out"),
				user("u2", "r1", "on"),
			},
			[]string{
				`u1 <  message user "hello" [5]`, `a1 < u1 message assistant "well" c1:Bash{"command":"ls"} toolUse 15+2 [6 7]`,
				`r1 < a1 message toolResult Bash "out" [8]`, `u2 < r1 message user "on" [9]`,
			},
		},
		"a record that says nothing stands behind one that hangs on it": {
			[]string{user("u1", "", "hello"), says("a1", "p1", "M", textBlock("hi"), 1), rec("progress", "p1", "u1", `"data":{}`)},
			[]string{`u1 <  message user "hello" [1]`, `a1 < u1 message assistant "hi" stop 15+1 [2]`},
		},
		"and so does a part of an answer": {
			[]string{
				user("u1", "", "hello"), user("u2", "a2", "on"), says("a1", "u1", "M", textBlock("one"), 1), says("a2", "a1", "M", textBlock("two"), 1),
			},
			[]string{`u1 <  message user "hello" [1]`, `u2 < a1 message user "on" [2]`, `a1 < u1 message assistant "one" "two" stop 15+1 [3 4]`},
		},
		"records that say nothing hang on one another": {
			[]string{rec("progress", "p1", "p2", `"data":{}`), rec("progress", "p2", "p1", `"data":{}`), user("u1", "p2", "hello")},
			[]string{`u1 <  message user "hello" [3]`},
		},
		"messages hang on one another": {
			[]string{user("u1", "u2", "hello"), user("u2", "u1", "on"), user("u3", "u3", "self")},
			[]string{`u1 < u2 message user "hello" [1]`, `u2 < u1 message user "on" [2]`, `u3 < u3 message user "self" [3]`},
		},
		"records that were snipped are a branch": {
			[]string{
				user("u1", "", "hello"), says("a1", "u1", "M", textBlock("hi"), 1),
				user("u2", "a1", "look"), says("a2", "u2", "N", textBlock("much"), 1),
				user("u3", "a2", "on"), rec("system", "x1", "u3", `"subtype":"snip_boundary","snipMetadata":{"removedUuids":["u2","a2"]}`),
				says("a3", "x1", "O", textBlock("so"), 1),
			},
			[]string{
				`u1 <  message user "hello" [1]`, `a1 < u1 message assistant "hi" stop 15+1 [2]`,
				`u2 < a1 message user "look" [3]`, `a2 < u2 message assistant "much" stop 15+1 [4]`,
				`u3 < a1 message user "on" [5]`, `a3 < u3 message assistant "so" stop 15+1 [7]`,
			},
		},
		"an answer that was taken back is a branch": {
			[]string{
				user("u1", "", "hello"), says("a1", "u1", "M", textBlock("no"), 1), says("a2", "a1", "M", callBlock("c1"), 1), result("r1", "a2", "c1", "out"),
				rec("system", "x1", "r1", `"subtype":"model_refusal_fallback","retractedMessageUuids":["a1","a2","r1",7]`), says("a3", "x1", "N", textBlock("so"), 1),
			},
			[]string{
				`u1 <  message user "hello" [1]`, `a1 < u1 message assistant "no" c1:Bash{"command":"ls"} toolUse 15+1 [2 3]`, `r1 < a1 message toolResult Bash "out" [4]`,
				`a3 < u1 message assistant "so" stop 15+1 [6]`,
			},
		},
		"by a message, and a part of it alone": {
			[]string{
				user("u1", "", "hello"), says("a1", "u1", "M", textBlock("well"), 1), says("a2", "a1", "M", textBlock("bad"), 2),
				rec("user", "u2", "a2", `"isMeta":true,"retractedMessageUuids":["a2"],"message":{"role":"user","content":"again"}`), says("a3", "u2", "N", textBlock("so"), 1),
			},
			[]string{
				`u1 <  message user "hello" [1]`, `a1 < u1 message assistant "well" stop [2]`, `a2 < a1 message assistant "bad" stop 15+2 [3]`,
				`u2 < a1 custom_message "again" [4]`, `a3 < u2 message assistant "so" stop 15+1 [5]`,
			},
		},
		"by an answer, with uuids that differ at their end": {
			[]string{
				user("u1", "", "hello"), says("11111111-2222-4333-8444-555555555555", "u1", "M", textBlock("no"), 1),
				rec("assistant", "a2", "11111111-2222-4333-8444-555555555555", `"retractedMessageUuids":["11111111-2222-4333-8444-000000000001"],"message":{"id":"N","role":"assistant","content":"so"}`),
			},
			[]string{
				`u1 <  message user "hello" [1]`, `11111111-2222-4333-8444-555555555555 < u1 message assistant "no" stop 15+1 [2]`,
				`a2 < u1 message assistant "so" stop [3]`,
			},
		},
		"other records that have the same beginning of a uuid": {
			[]string{
				user("11111111-2222-4333-8444-000000000001", "", "hello"), says("11111111-2222-4333-8444-000000000002", "11111111-2222-4333-8444-000000000001", "M", textBlock("no"), 1),
				rec("system", "x1", "11111111-2222-4333-8444-000000000002", `"subtype":"model_refusal_fallback","retractedMessageUuids":["11111111-2222-4333-8444-000000000002"]`),
				rec("system", "x2", "x1", `"subtype":"other","retractedMessageUuids":["11111111-2222-4333-8444-000000000001"]`), user("u2", "x2", "on"),
			},
			[]string{
				`11111111-2222-4333-8444-000000000001 <  message user "hello" [1]`,
				`11111111-2222-4333-8444-000000000002 < 11111111-2222-4333-8444-000000000001 message assistant "no" stop 15+1 [2]`,
				`u2 < 11111111-2222-4333-8444-000000000001 message user "on" [5]`,
			},
		},
		"an answer between whose records another one stands has its usage once": {
			[]string{
				user("u1", "", "hello"), says("a1", "u1", "M", textBlock("one"), 1), says("b1", "a1", "N", textBlock("other"), 2),
				says("a2", "b1", "M", textBlock("two"), 9),
			},
			[]string{
				`u1 <  message user "hello" [1]`, `a1 < u1 message assistant "one" stop [2]`, `b1 < a1 message assistant "other" stop 15+2 [3]`,
				`a2 < b1 message assistant "two" stop 15+9 [4]`,
			},
		},
		"a result that comes late, on which nothing hangs": {
			[]string{
				user("u1", "", "go"), says("a1", "u1", "M", callBlock("c1")+","+callBlock("c2"), 1), result("r1", "a1", "c1", "one"),
				says("a2", "r1", "N", textBlock("so"), 1), result("r2", "a1", "c2", "late"), user("u2", "a2", "and"),
			},
			[]string{
				`u1 <  message user "go" [1]`, `a1 < u1 message assistant c1:Bash{"command":"ls"} c2:Bash{"command":"ls"} toolUse 15+1 [2]`,
				`r1 < a1 message toolResult Bash "one" [3]`, `a2 < r1 message assistant "so" stop 15+1 [4]`,
				`r2 < a2 message toolResult Bash "late" [5]`, `u2 < r2 message user "and" [6]`,
			},
		},
		"a result whose call is not there": {
			[]string{user("u1", "", "go"), result("r1", "u1", "gone", "out"), user("u2", "r1", "on")},
			[]string{`u1 <  message user "go" [1]`, `r1 < u1 message toolResult unknown "out" [2]`, `u2 < r1 message user "on" [3]`},
		},
		"records that name no parent follow one another": {
			[]string{
				without(user("u1", "", "hello"), `"parentUuid":null,`), without(without(says("a1", "", "M", callBlock("c1"), 1), `"parentUuid":null,`), `"uuid":"a1",`),
				without(result("r1", "", "c1", "out"), `"parentUuid":null,`), without(says("a2", "", "", textBlock("so"), 2), `"parentUuid":null,`),
			},
			[]string{
				`u1 <  message user "hello" [1]`, `l2 < u1 message assistant c1:Bash{"command":"ls"} toolUse 15+1 [2]`,
				`r1 < l2 message toolResult Bash "out" [3]`, `a2 < r1 message assistant "so" stop 15+2 [4]`,
			},
		},
		"copies of a fork have the ids of the originals": {
			[]string{
				strings.Replace(user("n1", "", "hello"), `"message"`, `"forkedFrom":{"sessionId":"old","messageUuid":"u1"},"message"`, 1),
				strings.Replace(says("n2", "n1", "M", textBlock("hi"), 1), `"message"`, `"forkedFrom":{"sessionId":"old","messageUuid":"a1"},"message"`, 1),
				user("u2", "n2", "on"),
			},
			[]string{`u1 <  message user "hello" [1]`, `a1 < u1 message assistant "hi" stop 15+1 [2]`, `u2 < a1 message user "on" [3]`},
		},
		"an error of the API that has no name": {
			[]string{
				user("u1", "", "hello"),
				rec("assistant", "a1", "u1", `"isApiErrorMessage":true,"apiErrorStatus":529,"message":{"id":"E","content":[{"type":"text","text":"API Error: 529"}]}`),
				rec("assistant", "a2", "a1", `"error":"rate_limit","message":{"id":"F","content":"You hit the limit"}`),
			},
			[]string{`u1 <  message user "hello" [1]`, `a1 < u1 message assistant "API Error: 529" error [2]`, `a2 < a1 message assistant "You hit the limit" error [3]`},
		},
	} {
		t.Run(name, c.check)
	}
}

// TestCompacted: compactions as several versions of the client write them.
func TestCompacted(t *testing.T) {
	begun := []string{user("u1", "", "long"), says("a1", "u1", "M", textBlock("talk"), 1), user("u2", "a1", "last")}
	shown := []string{`u1 <  message user "long" [1]`, `a1 < u1 message assistant "talk" stop 15+1 [2]`, `u2 < a1 message user "last" [3]`}
	for name, c := range map[string]convertCase{
		"messages that are kept by name": {
			append(begun[:3:3], boundaryOf("b1", "never", `"preTokens":9,"preservedMessages":{"anchorUuid":"s1","uuids":["a1","u2"],"allUuids":["a1","u2","never"]}`),
				summaryOf("s1", "b1", "In short"), says("a2", "u2", "N", textBlock("so"), 1)),
			append(shown[:3:3], `b1 < u2 compaction In short kept a1 [4 5]`, `a2 < b1 message assistant "so" stop 15+1 [6]`),
		},
		"what hangs on the summary follows what is kept": {
			append(begun[:3:3], boundaryOf("b1", "u2", `"preTokens":9,"preservedSegment":{"headUuid":"u2","anchorUuid":"s1","tailUuid":"u2"}`),
				summaryOf("s1", "b1", "In short"), says("a2", "s1", "N", textBlock("so"), 1)),
			append(shown[:3:3], `b1 < u2 compaction In short kept u2 [4 5]`, `a2 < b1 message assistant "so" stop 15+1 [6]`),
		},
		"messages that are written again are not there twice in the context": {
			append(begun[:3:3], boundaryOf("b1", "u2", `"preservedSegment":{"headUuid":"k1","anchorUuid":"s1","tailUuid":"k2"}`),
				summaryOf("s1", "b1", "In short"), user("k1", "s1", "last"), says("k2", "k1", "N", textBlock("so"), 1), user("u3", "k2", "on")),
			append(shown[:3:3], `b1 < u2 compaction In short [4 5]`, `k1 < b1 message user "last" [6]`, `k2 < k1 message assistant "so" stop 15+1 [7]`,
				`u3 < k2 message user "on" [8]`),
		},
		"a summary without a boundary": {
			append(begun[:3:3], summaryOf("s1", "", "In short"), user("u3", "s1", "on")),
			append(shown[:3:3], `s1 < u2 compaction In short [4]`, `u3 < s1 message user "on" [5]`),
		},
		"a boundary whose summary is still to come": {
			append(begun[:3:3], boundaryOf("b1", "u2", `"preTokens":9`)),
			shown,
		},
		"a boundary forgets the leaf": {
			append(begun[:3:3], leafOf(`"leafUuid":"a1","explicit":true`), boundaryOf("b1", "u2", `"preTokens":9`), summaryOf("s1", "b1", "In short")),
			append(shown[:3:3], `b1 < u2 compaction In short [5 6]`),
		},
	} {
		t.Run(name, c.check)
	}
}

// TestLeaf: where the conversation stands.
func TestLeaf(t *testing.T) {
	begun := []string{user("u1", "", "hello"), says("a1", "u1", "M", textBlock("hi"), 1), user("u2", "a1", "one way")}
	shown := []string{`u1 <  message user "hello" [1]`, `a1 < u1 message assistant "hi" stop 15+1 [2]`, `u2 < a1 message user "one way" [3]`}
	old := strings.Replace(user("u3", "a1", "other"), "07:13:41", "07:00:00", 1)
	for name, c := range map[string]convertCase{
		"the conversation was cleared":       {append(begun[:3:3], leafOf(`"leafUuid":null,"explicit":true`)), append(shown[:3:3], `leaf <  custom [4]`)},
		"it was cleared, and another begins": {append(begun[:3:3], leafOf(`"leafUuid":null,"explicit":true`), user("u3", "", "anew")), append(shown[:3:3], `u3 <  message user "anew" [5]`)},
		"a leaf that is no entry":            {append(begun[:3:3], rec("system", "x1", "a1", `"subtype":"away_summary"`), leafOf(`"leafUuid":"x1","explicit":true`)), append(shown[:3:3], `leaf < a1 custom a1 [5]`)},
		"a leaf that is not there":           {append(begun[:3:3], leafOf(`"leafUuid":"gone","explicit":true`)), shown},
		"a leaf that is stale":               {append(begun[:3:3], leafOf(`"leafUuid":"u1"`)), shown},
		"the same leaf again keeps the pin":  {append(begun[:3:3], leafOf(`"leafUuid":"a1","explicit":true`), leafOf(`"leafUuid":"a1"`)), append(shown[:3:3], `leaf < a1 custom a1 [4]`)},
		"a prompt without a leaf says nothing": {append(begun[:3:3], leafOf(`"leafUuid":"a1","explicit":true`), leafOf(`"lastPrompt":"x"`)),
			append(shown[:3:3], `leaf < a1 custom a1 [4]`)},
		"nothing is recorded: the newest": {append(begun[:3:3], old), append(shown[:3:3], `u3 < a1 message user "other" [4]`, `leaf < u2 custom u2 [1]`)},
		"a leaf is recorded from which the end of the file does not come": {append(begun[:3:3], old, leafOf(`"leafUuid":"u2"`)),
			append(shown[:3:3], `u3 < a1 message user "other" [4]`, `leaf < u2 custom u2 [5]`)},
		"before that end": {append(begun[:3:3], leafOf(`"leafUuid":"u2"`), user("u3", "a1", "other")),
			append(shown[:3:3], `u3 < a1 message user "other" [5]`, `leaf < u2 custom u2 [4]`)},
		"a leaf that was pinned, and another branch": {append(begun[:3:3], leafOf(`"leafUuid":"u2","explicit":true`), user("u3", "a1", "other")),
			append(shown[:3:3], `u3 < a1 message user "other" [5]`, `leaf < u2 custom u2 [4]`)},
		"a leaf among parallel results": {
			[]string{
				user("u1", "", "go"), says("a1", "u1", "M", callBlock("c1"), 1), result("r1", "a1", "c1", "one"), leafOf(`"leafUuid":"r1"`),
				says("a2", "a1", "M", callBlock("c2"), 1), result("r2", "a2", "c2", "two"), says("a3", "r2", "N", textBlock("so"), 1),
			},
			[]string{
				`u1 <  message user "go" [1]`, `a1 < u1 message assistant c1:Bash{"command":"ls"} c2:Bash{"command":"ls"} toolUse 15+1 [2 5]`,
				`r1 < a1 message toolResult Bash "one" [3]`, `r2 < r1 message toolResult Bash "two" [6]`, `a3 < r2 message assistant "so" stop 15+1 [7]`,
			},
		},
		"a leaf before a compaction without a boundary": {
			append(begun[:3:3], leafOf(`"leafUuid":"u2"`), summaryOf("s1", "", "In short"), user("u3", "s1", "on")),
			append(shown[:3:3], `s1 < u2 compaction In short [5]`, `u3 < s1 message user "on" [6]`),
		},
		"a leaf that is gone": {append(begun[:3:3], old, leafOf(`"leafUuid":"gone"`)), append(shown[:3:3], `u3 < a1 message user "other" [4]`)},
		"an answer that was taken back ends the file": {
			append(begun[:3:3], says("a2", "u2", "N", textBlock("no"), 1), rec("system", "x1", "a2", `"subtype":"model_refusal_fallback","retractedMessageUuids":["a2"]`)),
			append(shown[:3:3], `a2 < u2 message assistant "no" stop 15+1 [4]`, `leaf < u2 custom u2 [1]`),
		},
	} {
		t.Run(name, c.check)
	}
}
