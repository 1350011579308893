package report

import (
	"bytes"
	"context"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
	"sessionfs/sessioncore/storage"
)

// maxCostText is the longest text in which an answer's cost is looked for by itself. Clients write some 400 bytes.
const maxCostText = 16 << 10

// isAnswer reports whether an entry is an assistant's message.
func isAnswer(s *sessioncore.Snapshot, e sessioncore.Entry) bool {
	return s.Kind(e) == sessioncore.TypeMessage && s.Role(e) == sessioncore.RoleAssistant
}

// usagesOfAnswer returns the usages of an answer: its own, and those of calls of other models that this does not have. An
// answer of pi may name the model that gave it.
func usagesOfAnswer(s *sessioncore.Snapshot, m *message.Members) []usage {
	by := m[message.Model]
	if served := m[message.ResponseModel]; s.Dialect() == sessioncore.Pi && !served.Missing() {
		by = served
	}
	own := usageOf(modelName(m[message.Provider], by), m[message.Usage])
	own.AssistantMessages = 1
	all := []usage{own}
	if !bytes.Contains(m[message.Usage], []byte("modelCalls")) {
		return all
	}
	m[message.Usage].Member("modelCalls").EachElement(func(call rawjson.Value, _ int) bool {
		all = append(all, usageOf(modelName(m[message.Provider], call.Member("model")), call))
		return len(all) <= maxParts
	})
	return all
}

// readAnswers reads what answers among the entries cost, and nothing else of them: not their texts, which are most of a
// session, and without which there is no checksum. It calls found for them, and returns the numbers of the others in
// entries: all of them, if it is not certain that the file is as it was indexed.
func readAnswers(ctx context.Context, s *sessioncore.Snapshot, entries []sessioncore.Entry, found func(i int, of []usage)) (others []int) {
	var buf []byte
	lookedAt := time.Now().UnixNano()
	for i, e := range entries {
		if ctx.Err() != nil {
			return nil // the caller sees it too
		}
		if isAnswer(s, e) {
			var members rawjson.Value
			if members, buf = costMembers(s, e, buf); members != nil {
				m := message.Read(members)
				if all := usagesOfAnswer(s, &m); !all[0].mayBeMade() {
					found(i, all)
					continue
				}
			}
		}
		others = append(others, i)
	}
	if st, err := s.File().Stat(); err == nil && st.Token == s.Stat().Token && !st.Racy(lookedAt) {
		return others
	}
	others = others[:0]
	for i := range entries {
		others = append(others, i)
	}
	return others
}

// mayBeMade reports whether a cost of 0 may have been filled in by a program other than the client, which the whole entry
// tells.
func (u *usage) mayBeMade() bool { return u.TotalTokens != 0 && u.Cost == (usageCost{known: true}) }

// costMembers reads an object with the members of an answer that say what it cost, nil if it cannot. It is valid until
// the next call with that buf.
func costMembers(s *sessioncore.Snapshot, e sessioncore.Entry, buf []byte) (members rawjson.Value, _ []byte) {
	at := s.CostRange(e)
	if at.Size > maxCostText {
		return nil, buf
	}
	if need := int(at.Size) + len("{}"); cap(buf) < need {
		buf = make([]byte, 2*need)
	}
	text := buf[:at.Size+2]
	text[0], text[at.Size+1] = '{', '}'
	if storage.ReadFull(s.File(), text[1:at.Size+1], at.Offset) != nil || !rawjson.IsValidObject(text) {
		return nil, buf
	}
	return text, buf
}
