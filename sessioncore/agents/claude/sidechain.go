package claude

import (
	"hash/maphash"

	"sessionfs/sessioncore/agents"
)

// shownIn is the directory of subagents below a session's directory.
const shownIn = "artifacts/" + subagents + "/"

// seed makes all hashes of prompts and uuids comparable.
var seed = maphash.MakeSeed()

// chains are the conversations of subagents in a session's file by an older client.
type chains struct {
	first map[string]string   // by the uuid of a record: the first record of its conversation
	asked map[uint64][]string // first records without a result yet, by the hash of their prompts
}

func newChains() chains {
	return chains{
		first: map[string]string{},
		asked: map[uint64][]string{},
	}
}

// add adds a record of a subagent, and returns the uuid of the first one of its conversation, which is the record
// itself if its parent is no subagent's.
func (c *chains) add(uuid, parent string) string {
	first, isKnown := c.first[parent]
	if !isKnown || parent == "" {
		first = uuid
	}
	if uuid != "" {
		c.first[uuid] = first
	}
	return first
}

// isMine reports whether a record is one of the session's. It adds the records of subagents in the session's file to
// c.side, too.
func (c *converter) isMine(r *record, isUser bool) bool {
	if c.Side && c.Chain == "" {
		return true // a subagent's file
	}
	if !r.Member("isSidechain").IsTrue() {
		return !c.Side
	}
	parent, _ := r.Member("parentUuid").Text()
	first := c.side.add(r.uuid, parent)
	isPrompt := isUser && first == r.uuid
	if !c.Side && isPrompt {
		text := agents.ChatText(r.Member("message").Member("content"))
		hash := hashOf(text)
		if hash != 0 {
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

// promptHash returns the hash of a call's prompt for a subagent, 0 for other calls and in a bill.
func (c *converter) promptHash(call agents.Object) uint64 {
	name := call.Member("name")
	isForSubagent := name.Is("Task") || name.Is("Agent")
	if c.Facts || !isForSubagent {
		return 0
	}
	text, _ := call.Member("input").Member("prompt").Text()
	return hashOf(text)
}

// subagent returns the path of the session of a result, from the session's directory, "" if there is none and in a
// bill. Newer clients name it; else it is the first one with the prompt of the result's call, which no other result
// has then.
func (c *converter) subagent(r *record, result agents.Object) string {
	if c.Facts {
		return ""
	}
	agent, _ := r.Member("toolUseResult").Member("agentId").Text()
	if isName(agent) {
		return shownIn + agentPrefix + agent
	}
	call, _ := result.Member("tool_use_id").Text()
	hash := c.calls[call].prompt
	asked := c.side.asked[hash]
	if hash == 0 || len(asked) == 0 {
		return ""
	}
	c.side.asked[hash] = asked[1:]
	return shownIn + chainPrefix + asked[0]
}
