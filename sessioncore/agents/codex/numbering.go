package codex

import (
	"fmt"
	"slices"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/jsonl"
)

// numbering follows the ordinals of a rollout's records. In a paginated rollout the client (since 0.145)
// goes on from the last record, and refuses to resume one without an ordinal; it passes over records that
// it does not know, and compares no ordinals.
type numbering struct {
	isBegun     bool
	isPaginated bool
	start       int64 // of a subagent's own records, behind its parent's
	last        int64 // the ordinal of the last record
	hasLast     bool  // it has one
	line        int64 // of the last record, 0 before the first
	size        int64 // of the last record, in bytes
}

// knownTypes are the types of the records that the client reads.
var knownTypes = []string{
	"session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state", "token_usage_record",
}

// add notes a record, with its line and size in bytes. Records that the client passes over change nothing.
func (n *numbering) add(record, payload agents.Object, line, size int64) {
	typ, _ := record.Member("type").Text()
	if !n.isBegun {
		n.isBegun = true
		n.isPaginated = typ == "session_meta" && payload.Member("history_mode").Is("paginated")
		n.start = agents.Count(payload.Member("subagent_history_start_ordinal"))
	}
	isWhole := record.Member("timestamp").IsString() && len(payload) > 0
	isRead := isWhole && slices.Contains(knownTypes, typ)
	if !n.isPaginated || !isRead {
		return
	}
	ordinal := record.Member("ordinal")
	n.last = agents.Count(ordinal)
	n.hasLast = ordinal.IsNumber()
	n.line = line
	n.size = size
}

// refusal returns the reason why the client does not resume the rollout, "" for none.
func (n *numbering) refusal() string {
	switch {
	case !n.isPaginated || n.line == 0:
		return ""
	case !n.hasLast:
		return "the last record of the paginated rollout has no ordinal"
	case n.last < n.start-1:
		return fmt.Sprintf("the records of the subagent's parent are cut off at ordinal %d, before %d", n.last, n.start-1)
	}
	return ""
}

// unresumed returns the record that makes the client not resume the rollout, or nil.
func (n *numbering) unresumed() *jsonl.LineProblem {
	why := n.refusal()
	if why == "" {
		return nil
	}
	return &jsonl.LineProblem{
		Line: n.line,
		Size: n.size,
		Why:  jsonl.ReasonNoResume + ": " + why,
	}
}
