package claude

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents/agentstest"
)

// said is a record that says something, or the one that replaces it.
type said struct {
	key    string // its uuid, and whether it is a subagent's
	text   string // "" for a record without words
	answer string // the id of the message
	tokens int
	leaf   string // of a prompt: whether it is a pin, and a uuid; of a compaction "false "

	isCompaction bool // it is the boundary or the summary of one
}

var (
	wordsOf = regexp.MustCompile(`\b(?:text|said|out|short) \d+|c\d+:Bash`)
	linesOf = regexp.MustCompile(`(?:\+(\d+) )?\[(.+)\]$`)
)

// TestRandom: in conversations that are made at random, with rewinds, parallel calls, answers in parts, subagents,
// compactions, and records that come again, stand too early or are missing, each text is in one entry, which names its
// line, each entry says something, the tokens of an answer count once, and the leaf is that of the rules.
func TestRandom(t *testing.T) {
	for seed := range uint64(200) {
		lines, records := randomConversation(rand.New(rand.NewPCG(seed, 1)))
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			h := agentstest.New(t, "claude")
			h.Put("projects/"+session, lines...)
			want, tokens := map[string]string{}, map[string]int{}
			last := map[string]int{}
			for i, r := range records {
				if before, isAgain := last[r.key]; isAgain && r.isCompaction && records[before].isCompaction {
					continue // it cuts nothing
				}
				last[r.key] = i
			}
			for i, r := range records {
				if last[r.key] != i {
					continue
				}
				if r.text != "" {
					want[r.text] = fmt.Sprint(i + 1)
				}
				if r.answer != "" {
					tokens[r.answer] = r.tokens
				}
			}
			sum := 0
			checkLeaf(t, records, last, h.Outline(h.Sessions("")[0])[1:])
			for _, name := range h.Sessions("") {
				for _, entry := range h.Outline(name)[1:] {
					if strings.HasPrefix(entry, "leaf ") {
						continue
					}
					origin, words := linesOf.FindStringSubmatch(entry), wordsOf.FindAllString(entry, -1)
					require.NotEmpty(t, words, entry)
					for _, text := range words {
						require.Contains(t, strings.Fields(origin[2]), want[text], entry)
						delete(want, text)
					}
					n, _ := strconv.Atoi(origin[1])
					sum += n
				}
			}
			require.Empty(t, want)
			for _, n := range tokens {
				sum -= n
			}
			require.Zero(t, sum, "tokens")
		})
	}
}

// randomConversation returns the lines of a file, and a record for each.
func randomConversation(rnd *rand.Rand) (lines []string, records []said) {
	var uuids, answers, others, calls []string
	last, branch := "", 0
	put := func(line string, r said) { lines, records = append(lines, line), append(records, r) }
	add := func(uuid, line string, r said) {
		if r.key = uuid; rnd.IntN(20) == 0 {
			own := fmt.Sprintf(`"id":"s%d-`, len(lines))
			line, r.key = side(strings.Replace(line, `"id":"m`, own, 1)), "side "+uuid
			if r.answer != "" {
				r.answer = own + r.answer[1:]
			}
		} else {
			last, uuids = uuid, append(uuids, uuid)
			if r.answer != "" {
				answers = append(answers, uuid)
			} else {
				others = append(others, uuid)
			}
		}
		put(line, r)
	}
	quoted := func(word string, i int) (text string, r said) {
		text = fmt.Sprint(word, " ", i)
		return text, said{text: text}
	}
	for i := range 40 {
		uuid, parent := fmt.Sprint("r", i), last
		kind := rnd.IntN(12)
		again := others // a record that comes again is of its kind
		if 2 <= kind && kind <= 6 {
			again = answers
		}
		switch n := rnd.IntN(30); {
		case n == 0 && len(uuids) > 0:
			parent, branch = uuids[rnd.IntN(len(uuids))], i
		case n == 1:
			parent, branch = fmt.Sprint("r", rnd.IntN(45)), i
		case n == 2 && len(again) > 0:
			uuid = again[rnd.IntN(len(again))]
		}
		answer := fmt.Sprintf("m%d-%d", branch, i/3)
		switch kind {
		case 0, 1:
			text, r := quoted("text", i)
			add(uuid, user(uuid, parent, text), r)
		case 2, 3, 4:
			text, r := quoted("said", i)
			r.answer, r.tokens = answer, i
			add(uuid, says(uuid, parent, answer, textBlock(text), i), r)
		case 5, 6:
			calls = append(calls, fmt.Sprint("c", i))
			r := said{text: calls[len(calls)-1] + ":Bash", answer: answer, tokens: i}
			add(uuid, says(uuid, parent, answer, callBlock(calls[len(calls)-1]), i), r)
		case 7, 8:
			if len(calls) > 0 {
				text, r := quoted("out", i)
				add(uuid, result(uuid, parent, calls[0], text), r)
				calls = calls[1:]
			}
		case 9:
			add(uuid, rec("progress", uuid, parent, `"data":{}`), said{})
		case 10:
			isPin := rnd.IntN(2) == 0
			if isPin && len(uuids) > 0 {
				parent = uuids[rnd.IntN(len(uuids))]
			}
			put(leafOf(fmt.Sprintf(`"leafUuid":%q,"explicit":%t`, parent, isPin)),
				said{key: fmt.Sprint("leaf ", i), leaf: fmt.Sprint(isPin, " ", parent)})
		case 11:
			if rnd.IntN(4) == 0 {
				put(boundaryOf(uuid, parent, `"preTokens":1`), said{key: uuid, leaf: "false ", isCompaction: true})
				text, r := quoted("short", i)
				r.isCompaction = true
				add(uuid+"s", summaryOf(uuid+"s", uuid, text), r)
			}
		}
	}
	return lines, records
}

// checkLeaf: the conversation stands at the entry of the recorded leaf or at a result of its calls, unless the last
// entry comes from that or nothing is recorded.
func checkLeaf(t *testing.T, records []said, last map[string]int, outline []string) {
	parents, at, ends := map[string]string{}, map[string]string{}, map[string]string{} // at: the entry of a line
	end, leaf := "", ""
	for _, entry := range outline {
		id, parent, _ := strings.Cut(entry, " < ")
		parent, _, _ = strings.Cut(parent, " ")
		if id == "leaf" {
			leaf = parent
			break
		}
		parents[id], end, leaf = parent, id, id
		ends[id] = id
		if strings.Contains(entry, " message toolResult Bash ") {
			ends[id] = ends[parent]
		}
		for _, line := range strings.Fields(linesOf.FindStringSubmatch(entry)[2]) {
			at[line] = id
		}
	}
	recorded, isPinned, boundary := "", false, -1
	for i, r := range records {
		if r.isCompaction && last[r.key] != i {
			continue
		}
		if r.isCompaction && r.leaf != "" {
			boundary = i
		}
		switch pin, uuid, isLeaf := strings.Cut(r.leaf, " "); {
		case isLeaf:
			if isPin := pin == "true"; isPin || uuid == "" || uuid != recorded {
				recorded, isPinned = uuid, isPin
			}
		case r.text != "" && last[r.key] == i && !strings.HasPrefix(r.key, "side "):
			isPinned = false
		}
	}
	i, isKnown := last[recorded]
	isKnown = isKnown && i >= boundary // the client reads nothing before it
	want, isFrom := at[fmt.Sprint(i+1)], !isKnown
	if isKnown && want == "" {
		return // it says nothing
	}
	for id, n := end, 0; n < len(outline) && !isFrom; id, n = parents[id], n+1 {
		isFrom = ends[id] == ends[want]
	}
	if !isKnown || !isPinned && isFrom {
		require.Equal(t, end, leaf)
		return
	}
	require.Equal(t, ends[want], ends[leaf], "%s %v", recorded, isPinned)
}
