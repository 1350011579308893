package claude

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestRandom checks what must hold of every file on conversations that are made at random: with rewinds, parallel calls,
// answers in parts, subagents, compactions, and records that come again, stand too early or are missing.
func TestRandom(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var lines, uuids []string
		last, calls, branch := "", []string(nil), 0
		add := func(uuid, line string) {
			if rnd.IntN(20) == 0 {
				line = side(strings.Replace(line, `"id":"m`, fmt.Sprintf(`"id":"s%d-`, len(lines)), 1))
			} else {
				last, uuids = uuid, append(uuids, uuid)
			}
			lines = append(lines, line)
		}
		for i := range 40 {
			uuid, parent := fmt.Sprint("r", i), last
			switch n := rnd.IntN(30); {
			case n == 0 && len(uuids) > 0:
				parent, branch = uuids[rnd.IntN(len(uuids))], i
			case n == 1:
				parent, branch = fmt.Sprint("r", rnd.IntN(45)), i
			case n == 2 && len(uuids) > 0:
				uuid = uuids[rnd.IntN(len(uuids))]
			}
			switch rnd.IntN(12) {
			case 0, 1:
				add(uuid, user(uuid, parent, fmt.Sprint("text ", i)))
			case 2, 3, 4:
				add(uuid, says(uuid, parent, fmt.Sprintf("m%d-%d", branch, i/3), textBlock(fmt.Sprint("said ", i)), i))
			case 5, 6:
				calls = append(calls, fmt.Sprint("c", i))
				add(uuid, says(uuid, parent, fmt.Sprintf("m%d-%d", branch, i/3), callBlock(calls[len(calls)-1]), i))
			case 7, 8:
				if len(calls) > 0 {
					add(uuid, result(uuid, parent, calls[0], fmt.Sprint("out ", i)))
					calls = calls[1:]
				}
			case 9:
				add(uuid, rec("progress", uuid, parent, `"data":{}`))
			case 10:
				lines = append(lines, leafOf(fmt.Sprintf(`"leafUuid":%q,"explicit":%t`, parent, rnd.IntN(2) == 0)))
			case 11:
				if rnd.IntN(4) == 0 {
					lines = append(lines, boundaryOf(uuid, parent, `"preTokens":1`))
					add(uuid+"s", summaryOf(uuid+"s", uuid, fmt.Sprint("short ", i)))
				}
			}
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) { checkFile(t, "s.jsonl", strings.Join(lines, "\n")+"\n") })
	}
}
