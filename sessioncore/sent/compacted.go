package sent

import (
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
)

// takeCompacted adds the messages of a path whose entry at is the last compaction.
func (b *builder) takeCompacted(at, reset int) error {
	text, _, _, err := b.s.LoadedText(b.path[at])
	if err != nil {
		return err
	}
	if a, ok := archiveOf(text); ok {
		b.slots = b.slotsOf(&a)
	}
	b.messages = append(b.messages, message{entry: b.path[at], of: ofCompaction, role: "compactionSummary"})
	first, through := b.find(text.Member("firstKeptEntryId")), -1
	if replayed := text.Member("providerReplayThroughEntryId"); replayed.Truthy() {
		through = b.find(replayed)
	}
	if text.Member("details").Member("kind").Is(rollover) {
		if err := b.takeRequest(first, at, reset); err != nil {
			return err
		}
	}
	provider, kind := providerPayload(text)
	switch {
	case kind == remotePayload:
		first = -1
		if through >= 0 {
			first = through + 1
		}
	case first >= 0 && first < at:
	case provider != nil && text.Member("firstKeptEntryId").Is("") && through >= 0:
		first = through + 1
	default:
		first = -1
	}
	if first >= 0 && first < at {
		if err := b.takeAll(b.path[first:at]); err != nil {
			return err
		}
	}
	return b.takeAll(b.path[at+1:])
}

// takeRequest adds the last request of the user before a compaction if the compaction, whose first kept entry is first,
// drops it.
func (b *builder) takeRequest(first, at, reset int) error {
	for i := at - 1; i > reset; i-- {
		e := b.path[i]
		if kind := b.s.Kind(e); kind != sessioncore.TypeMessage && kind != sessioncore.TypeCustomMessage {
			continue
		}
		text, _, _, err := b.s.LoadedText(e)
		if err != nil {
			return err
		}
		if !b.isRequest(e, text) {
			continue
		}
		if i < first {
			b.take(e, text)
		}
		return nil
	}
	return nil
}

// isRequest reports whether an entry is what a user asked.
func (b *builder) isRequest(e sessioncore.Entry, text rawjson.Value) bool {
	if b.s.Kind(e) == sessioncore.TypeMessage {
		text = messageOf(text)
		if role := text.Member("role"); !role.Is("custom") {
			return role.Is("user")
		}
	} else if !isContent(text.Member("content")) {
		return false
	}
	custom := text.Member("customType")
	return (custom.Is(skillPrompt) || custom.Is(collabPrompt)) && text.Member("attribution").Is("user")
}
