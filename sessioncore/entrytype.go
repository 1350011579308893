package sessioncore

// EntryType is an entry's type as far as the model treats it in a way of its own. Unknown types are
// entries like any other (format.md, entry types).
type EntryType uint8

// The entry types of the seeds and of format.md.
const (
	TypeUnknown EntryType = iota
	TypeMessage
	TypeThinkingLevelChange
	TypeModelChange
	TypeCompaction
	TypeBranchSummary
	TypeCustom
	TypeCustomMessage
	TypeLabel
	TypeTTSRInjection
	TypeSessionInit
	TypeModeChange
	TypeServiceTierChange
	TypeMCPToolSelection
	TypeTitleChange
)

var typeNames = [...]string{
	TypeUnknown:             "",
	TypeMessage:             "message",
	TypeThinkingLevelChange: "thinking_level_change",
	TypeModelChange:         "model_change",
	TypeCompaction:          "compaction",
	TypeBranchSummary:       "branch_summary",
	TypeCustom:              "custom",
	TypeCustomMessage:       "custom_message",
	TypeLabel:               "label",
	TypeTTSRInjection:       "ttsr_injection",
	TypeSessionInit:         "session_init",
	TypeModeChange:          "mode_change",
	TypeServiceTierChange:   "service_tier_change",
	TypeMCPToolSelection:    "mcp_tool_selection",
	TypeTitleChange:         "title_change",
}

var typesByName = func() map[string]EntryType {
	m := make(map[string]EntryType, len(typeNames))
	for t, name := range typeNames[1:] {
		m[name] = EntryType(t + 1)
	}
	return m
}()

// String returns the type as files write it, "" for an unknown one.
func (t EntryType) String() string { return typeNames[t] }

// typeOf returns the type that a JSON value names.
func typeOf(v value) EntryType {
	if !v.isString() {
		return TypeUnknown
	}
	if t, ok := typesByName[string(v[1:len(v)-1])]; ok {
		return t
	}
	text, _ := v.text()
	return typesByName[text]
}

// headerType and titleType are the types of the lines that are no entries.
const (
	headerType = "session"
	titleType  = "title"
)
