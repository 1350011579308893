package persist

import (
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
)

// withoutReplayed removes the signatures of an assistant's thinking that its provider payload has too: omp 18 sends the
// payload back, and a signature repeats one of its items (docs/format.md, Persisting).
func withoutReplayed(text rawjson.Value) rawjson.Value {
	if !text.Member("type").Is("message") {
		return text
	}
	message := text.Member("message")
	if !message.Member("role").Is("assistant") {
		return text
	}
	payload := message.Member("providerPayload")
	if !payload.Member("type").Is("openaiResponsesHistory") {
		return text
	}
	items := replayedItems{}
	payload.Member("items").EachElement(func(item rawjson.Value, _ int) bool {
		items.add(item)
		return true
	})
	if len(items) == 0 {
		return text
	}
	var edits rawjson.Edits
	message.Member("content").EachElement(func(block rawjson.Value, _ int) bool {
		if signature, _ := block.Member(signatureKey).Text(); block.Member("type").Is("thinking") && items.has(signature) {
			edits = edits.Object(block, block.OffsetIn(text), "", func(m rawjson.Member) bool { return m.KeyIs(signatureKey) })
		}
		return true
	})
	if len(edits) == 0 {
		return text
	}
	return edits.Apply(text)
}

const signatureKey = "thinkingSignature"

// replayedItems has what identifies the reasoning items of a payload: their encrypted content, and their ids.
type replayedItems map[replayedItem]bool

type replayedItem struct{ key, text string }

// reasoningKeys are the members that identify a reasoning item; the first one that it has counts.
var reasoningKeys = []string{"encrypted_content", "id"}

func (l replayedItems) add(item rawjson.Value) {
	for _, key := range reasoningKeys {
		if text, _ := item.Member(key).Text(); text != "" && item.Member("type").Is("reasoning") {
			l[replayedItem{key, text}] = true
		}
	}
}

// has reports whether the JSON of a reasoning item is one of them.
func (l replayedItems) has(signature string) bool {
	var s rawjson.Scanner
	item := rawjson.Value(strings.TrimLeft(signature, " \t\r\n"))
	end, status := s.ScanValue(item)
	if status != rawjson.OK || rawjson.SkipSpace(item, end) != len(item) || !item[:end].IsObject() || !item[:end].Member("type").Is("reasoning") {
		return false
	}
	for _, key := range reasoningKeys {
		if text, _ := item[:end].Member(key).Text(); text != "" {
			return l[replayedItem{key, text}]
		}
	}
	return false
}
