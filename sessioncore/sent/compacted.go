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
	b.messages = append(b.messages, message{entry: b.path[at], role: "compactionSummary"})
	kept := text.Member("firstKeptEntryId")
	first, through := b.find(kept), b.find(text.Member("providerReplayThroughEntryId"))
	if text.Member("details").Member("kind").Is(rollover) {
		if err := b.takeRequest(first, at, reset); err != nil {
			return err
		}
	}
	provider, kind := providerPayload(text)
	if kind == remotePayload || provider != nil && kept.Is("") && through >= 0 {
		first = -1
		if through >= 0 {
			first = through + 1
		}
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
		if b.isRequest(e, text) {
			if i < first {
				b.take(e, text)
			}
			return nil
		}
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

// Kinds of history that a provider keeps.
const (
	remotePayload    = "openaiResponsesHistory"
	anthropicPayload = "anthropicCompaction"
)

// providerPayload returns the history that a provider keeps for a compaction, and its kind; nil if there is none.
func providerPayload(text rawjson.Value) (rawjson.Value, string) {
	preserved := text.Member("preserveData")
	remote := preserved.Member("openaiRemoteCompaction")
	provider, items := remote.Member("provider"), remote.Member("replacementHistory")
	if provider.IsString() && provider.Truthy() && items.IsArray() && allObjects(items) {
		return object("type", remotePayload, "provider", provider, "items", items), remotePayload
	}
	kept := preserved.Member(anthropicPayload)
	filled := func(key string) rawjson.Value {
		if v := kept.Member(key); v.IsString() && v.Truthy() {
			return v
		}
		return nil
	}
	if filled("provider") == nil || filled("content") == nil {
		return nil, ""
	}
	return object("type", anthropicPayload, "provider", filled("provider"), "content", filled("content"),
		"encryptedContent", filled("encryptedContent"), "filesText", filled("filesText")), anthropicPayload
}

func allObjects(array rawjson.Value) bool {
	all := true
	array.EachElement(func(v rawjson.Value, _ int) bool {
		all = all && v.IsObject()
		return all
	})
	return all
}
