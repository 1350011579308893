package claude

import (
	"hash/maphash"

	"sessionfs/sessioncore/agents"
)

// shownIn is the directory of subagents below a session's directory.
const shownIn = "artifacts/" + subagents + "/"

var seed = maphash.MakeSeed()

// chains are the conversations of subagents in a session's file by an older client.
type chains struct {
	first map[string]string   // the first record of the conversation of a record
	asked map[uint64][]string // first records, by the hash of their prompts
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

// isMine reports whether a record is one of the session's. It collects subagents, too.
func (c *converter) isMine(r *record, isUser bool) bool {
	if c.Side && c.Chain == "" {
		return true // a subagent's file
	}
	if !r.Member("isSidechain").IsTrue() {
		return !c.Side
	}
	parent, _ := r.Member("parentUuid").Text()
	first := c.side.add(r.uuid, parent)
	if !c.Side && isUser && first == r.uuid {
		if hash := hashOf(agents.ChatText(r.Member("message").Member("content"))); hash != 0 {
			c.side.asked[hash] = append(c.side.asked[hash], first)
		}
	}
	return c.Side && first == c.Chain
}

// hashOf returns a hash of a subagent's prompt, 0 for none.
func hashOf(text string) uint64 {
	if text == "" {
		return 0
	}
	return max(1, maphash.String(seed, text))
}

// prompt returns the hash of a call's prompt for a subagent, 0 for other calls.
func (c *converter) prompt(call agents.Object) uint64 {
	if name := call.Member("name"); c.Facts || !name.Is("Task") && !name.Is("Agent") {
		return 0
	}
	text, _ := call.Member("input").Member("prompt").Text()
	return hashOf(text)
}

// subagent returns the path of the session of a result, from the session's directory, or "". Newer
// clients name it; else the prompts match.
func (c *converter) subagent(r *record, result agents.Object) string {
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
