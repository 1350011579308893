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
			last := lastOf(records)
			sessions := h.Sessions("")
			checkLeaf(t, records, last, h.Outline(sessions[0])[1:])
			var entries []string
			for _, name := range sessions {
				for _, entry := range h.Outline(name)[1:] {
					if !strings.HasPrefix(entry, "leaf ") {
						entries = append(entries, entry)
					}
				}
			}
			checkTexts(t, records, last, entries)
			checkTokens(t, records, last, entries)
		})
	}
}

// lastOf returns the index of the record that counts of each key: the last one, but for compactions the first.
func lastOf(records []said) map[string]int {
	last := map[string]int{}
	for i, r := range records {
		before, isAgain := last[r.key]
		if isAgain && r.isCompaction && records[before].isCompaction {
			continue // it cuts nothing
		}
		last[r.key] = i
	}
	return last
}

// checkTexts fails unless each text of the records that count is in one entry, which names its line, and each entry has
// a text.
func checkTexts(t *testing.T, records []said, last map[string]int, entries []string) {
	want := map[string]string{} // lines by texts
	for i, r := range records {
		if last[r.key] == i && r.text != "" {
			want[r.text] = fmt.Sprint(i + 1)
		}
	}
	for _, entry := range entries {
		origin := linesOf.FindStringSubmatch(entry)
		texts := wordsOf.FindAllString(entry, -1)
		require.NotEmpty(t, texts, entry)
		for _, text := range texts {
			require.Contains(t, strings.Fields(origin[2]), want[text], entry)
			delete(want, text)
		}
	}
	require.Empty(t, want)
}

// checkTokens fails unless the entries have the tokens of each answer once.
func checkTokens(t *testing.T, records []said, last map[string]int, entries []string) {
	want := map[string]int{} // by answers
	for i, r := range records {
		if last[r.key] == i && r.answer != "" {
			want[r.answer] = r.tokens
		}
	}
	sum := 0
	for _, n := range want {
		sum += n
	}
	found := 0
	for _, entry := range entries {
		n, _ := strconv.Atoi(linesOf.FindStringSubmatch(entry)[1]) // 0 for an entry without
		found += n
	}
	require.Equal(t, sum, found, "tokens")
}

// conversation is one that is made at random.
type conversation struct {
	rnd     *rand.Rand
	lines   []string
	records []said   // one for each line
	uuids   []string // of the session's records with a uuid
	answers []string // those of them that are of answers
	others  []string // the other ones
	calls   []string // calls without a result, by their ids
	last    string   // the uuid of the session's last record
	branch  int      // the record that began the branch
}

// randomConversation returns the lines of a file, and a record for each.
func randomConversation(rnd *rand.Rand) (lines []string, records []said) {
	c := conversation{rnd: rnd}
	for i := range 40 {
		c.step(i)
	}
	return c.lines, c.records
}

// isOneOf reports true once in n times.
func (c *conversation) isOneOf(n int) bool { return c.rnd.IntN(n) == 0 }

// anyOf returns one of some texts.
func (c *conversation) anyOf(texts []string) string { return texts[c.rnd.IntN(len(texts))] }

// step adds the ith record, or two of a compaction, or none.
func (c *conversation) step(i int) {
	kind := c.rnd.IntN(12)
	isAnswer := 2 <= kind && kind <= 6
	uuid, parent := c.position(i, isAnswer)
	answer := fmt.Sprintf("m%d-%d", c.branch, i/3) // up to three records in a row are one answer
	switch kind {
	case 0, 1:
		text := fmt.Sprint("text ", i)
		c.add(user(uuid, parent, text), said{key: uuid, text: text})
	case 2, 3, 4:
		text := fmt.Sprint("said ", i)
		line := says(uuid, parent, answer, textBlock(text), i)
		c.add(line, said{key: uuid, text: text, answer: answer, tokens: i})
	case 5, 6:
		call := fmt.Sprint("c", i)
		c.calls = append(c.calls, call)
		line := says(uuid, parent, answer, callBlock(call), i)
		c.add(line, said{key: uuid, text: call + ":Bash", answer: answer, tokens: i})
	case 7, 8:
		c.addResult(uuid, parent, i)
	case 9:
		c.add(rec("progress", uuid, parent, `"data":{}`), said{key: uuid})
	case 10:
		c.addLeaf(parent, i)
	case 11:
		if c.isOneOf(4) {
			c.addCompaction(uuid, parent, i)
		}
	}
}

// position returns the uuid and the parent of the ith record. Some rewind, some hang on a record that is missing or comes
// later, and some come again, in the place of one of their kind.
func (c *conversation) position(i int, isAnswer bool) (uuid, parent string) {
	uuid = fmt.Sprint("r", i)
	parent = c.last
	sameKind := c.others
	if isAnswer {
		sameKind = c.answers
	}
	n := c.rnd.IntN(30)
	switch {
	case n == 0 && len(c.uuids) > 0:
		parent = c.anyOf(c.uuids)
		c.branch = i
	case n == 1:
		parent = fmt.Sprint("r", c.rnd.IntN(45))
		c.branch = i
	case n == 2 && len(sameKind) > 0:
		uuid = c.anyOf(sameKind)
	}
	return uuid, parent
}

// put adds a line.
func (c *conversation) put(line string, r said) {
	c.lines = append(c.lines, line)
	c.records = append(c.records, r)
}

// add adds a record with the uuid r.key. One of twenty is a subagent's.
func (c *conversation) add(line string, r said) {
	uuid := r.key
	if c.isOneOf(20) {
		own := fmt.Sprintf(`"id":"s%d-`, len(c.lines)) // a message of its own
		r.key = "side " + uuid
		if r.answer != "" {
			r.answer = own + r.answer[1:]
		}
		c.put(side(strings.Replace(line, `"id":"m`, own, 1)), r)
		return
	}
	c.last = uuid
	c.uuids = append(c.uuids, uuid)
	if r.answer != "" {
		c.answers = append(c.answers, uuid)
	} else {
		c.others = append(c.others, uuid)
	}
	c.put(line, r)
}

// addResult adds the result of the oldest call without one, if there is one.
func (c *conversation) addResult(uuid, parent string, i int) {
	if len(c.calls) == 0 {
		return
	}
	text := fmt.Sprint("out ", i)
	c.add(result(uuid, parent, c.calls[0], text), said{key: uuid, text: text})
	c.calls = c.calls[1:]
}

// addLeaf adds a leaf: the parent, or pinned any record.
func (c *conversation) addLeaf(parent string, i int) {
	isPin := c.isOneOf(2)
	if isPin && len(c.uuids) > 0 {
		parent = c.anyOf(c.uuids)
	}
	line := leafOf(fmt.Sprintf(`"leafUuid":%q,"explicit":%t`, parent, isPin))
	c.put(line, said{
		key:  fmt.Sprint("leaf ", i),
		leaf: fmt.Sprint(isPin, " ", parent),
	})
}

// addCompaction adds the boundary of a compaction, and its summary.
func (c *conversation) addCompaction(uuid, parent string, i int) {
	boundary := boundaryOf(uuid, parent, `"preTokens":1`)
	c.put(boundary, said{key: uuid, leaf: "false ", isCompaction: true})
	text := fmt.Sprint("short ", i)
	summary := uuid + "s"
	c.add(summaryOf(summary, uuid, text), said{key: summary, text: text, isCompaction: true})
}

// outlineTree is the outline of a session, up to its leaf.
type outlineTree struct {
	size    int
	parents map[string]string // of entries
	ends    map[string]string // for an answer and the results of its calls in a row: the answer; for others themselves
	at      map[string]string // the entries of lines
	end     string            // the last entry
	leaf    string            // where the conversation stands
}

// readOutline reads the entries of an outline.
func readOutline(outline []string) outlineTree {
	tree := outlineTree{
		size:    len(outline),
		parents: map[string]string{},
		ends:    map[string]string{},
		at:      map[string]string{},
	}
	for _, entry := range outline {
		id, rest, _ := strings.Cut(entry, " < ")
		parent, _, _ := strings.Cut(rest, " ")
		tree.leaf = id
		if id == "leaf" {
			tree.leaf = parent
			break
		}
		tree.end = id
		tree.parents[id] = parent
		tree.ends[id] = id
		if strings.Contains(entry, " message toolResult Bash ") {
			tree.ends[id] = tree.ends[parent]
		}
		for _, line := range strings.Fields(linesOf.FindStringSubmatch(entry)[2]) {
			tree.at[line] = id
		}
	}
	return tree
}

// descends reports whether the last entry comes from another one, or from its answer.
func (o *outlineTree) descends(from string) bool {
	id := o.end
	for range o.size {
		if o.ends[id] == o.ends[from] {
			return true
		}
		id = o.parents[id]
	}
	return false
}

// recordedLeaf is the leaf that records tell.
type recordedLeaf struct {
	uuid     string
	isPinned bool
	boundary int // the index of the last compaction's boundary, or -1
}

// leafIn returns the leaf that the records tell. last has the ones that count.
func leafIn(records []said, last map[string]int) recordedLeaf {
	leaf := recordedLeaf{boundary: -1}
	for i, r := range records {
		counts := last[r.key] == i
		if r.isCompaction && !counts {
			continue
		}
		if r.isCompaction && r.leaf != "" {
			leaf.boundary = i
		}
		pin, uuid, isLeaf := strings.Cut(r.leaf, " ")
		isPin := pin == "true"
		isSubagents := strings.HasPrefix(r.key, "side ")
		switch {
		case isLeaf && (isPin || uuid == "" || uuid != leaf.uuid):
			leaf.uuid = uuid
			leaf.isPinned = isPin
		case !isLeaf && r.text != "" && counts && !isSubagents:
			leaf.isPinned = false
		}
	}
	return leaf
}

// checkLeaf: the conversation stands at the entry of the recorded leaf or at a result of its calls, unless the last
// entry comes from that or nothing is recorded.
func checkLeaf(t *testing.T, records []said, last map[string]int, outline []string) {
	tree := readOutline(outline)
	recorded := leafIn(records, last)
	i, isKnown := last[recorded.uuid]
	if !isKnown || i < recorded.boundary { // the client reads nothing before a boundary
		require.Equal(t, tree.end, tree.leaf)
		return
	}
	want := tree.at[fmt.Sprint(i+1)]
	switch {
	case want == "": // it says nothing
	case !recorded.isPinned && tree.descends(want):
		require.Equal(t, tree.end, tree.leaf)
	default:
		require.Equal(t, tree.ends[want], tree.ends[tree.leaf], "%s %v", recorded.uuid, recorded.isPinned)
	}
}
