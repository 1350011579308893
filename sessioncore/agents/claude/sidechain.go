package claude

import (
	"hash/maphash"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage/foreign"
)

// shownIn is the directory below a session's that has its subagents.
const shownIn = "artifacts/" + subagents + "/"

var seed = maphash.MakeSeed()

// chains are the conversations of subagents that older clients wrote into the file of the session.
type chains struct {
	first map[string]string   // of a record of a subagent: the first one of its conversation
	asked map[uint64][]string // the first records, by the hash of what they ask
}

func newChains() chains { return chains{first: map[string]string{}, asked: map[uint64][]string{}} }

// add adds a record of a subagent, and returns the first one of its conversation.
func (c *chains) add(uuid, parent string) string {
	first, ok := c.first[parent]
	if !ok || parent == "" {
		first = uuid
	}
	if uuid != "" {
		c.first[uuid] = first
	}
	return first
}

// isMine reports whether a record is one of the session's. In the file of a session, subagents are noted.
func (c *converter) isMine(r *record, isUser bool) bool {
	if c.Side && c.Chain == "" {
		return true // the file of a subagent
	}
	if !isTrue(r.Member("isSidechain")) {
		return !c.Side
	}
	parent, _ := r.Member("parentUuid").Text()
	first := c.side.add(r.uuid, parent)
	if !c.Side && isUser && first == r.uuid {
		if hash := hashOf(textOf(r.Member("message").Member("content"))); hash != 0 {
			c.side.asked[hash] = append(c.side.asked[hash], first)
		}
	}
	return c.Side && first == c.Chain
}

// hashOf returns a hash of what a subagent is asked, 0 for nothing.
func hashOf(text string) uint64 {
	if text == "" {
		return 0
	}
	return max(1, maphash.String(seed, text))
}

// prompt returns the hash of what a tool is called with if that calls a subagent, 0 where no session is to be named.
func (c *converter) prompt(call foreign.Object) uint64 {
	if name := call.Member("name"); c.Facts || !name.Is("Task") && !name.Is("Agent") {
		return 0
	}
	text, _ := call.Member("input").Member("prompt").Text()
	return hashOf(text)
}

// subagent returns the path of the session whose result it is, as it is shown in the session's directory, "" for none. Newer
// clients name it; else it is the one that was asked the same.
func (c *converter) subagent(r *record, result foreign.Object) string {
	if c.Facts {
		return ""
	}
	if id, _ := r.Member("toolUseResult").Member("agentId").Text(); isName(id) {
		return shownIn + agentPrefix + id
	}
	id, _ := result.Member("tool_use_id").Text()
	hash := c.calls[id].prompt
	asked := c.side.asked[hash]
	if hash == 0 || len(asked) == 0 {
		return ""
	}
	c.side.asked[hash] = asked[1:]
	return shownIn + chainPrefix + asked[0]
}

// textOf returns the texts of content.
func textOf(content rawjson.Value) string {
	text, _ := content.Text()
	content.EachElement(func(block rawjson.Value, _ int) bool {
		more, _ := block.Member("text").Text()
		text += more
		return true
	})
	return text
}
