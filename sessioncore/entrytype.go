package sessioncore

// EntryType is the type of an entry, as far as the model distinguishes types. Unknown types are
// valid too (docs/format.md, Entry types).
type EntryType uint8

// The entry types that the model knows.
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
	TypeResetBoundary // nothing before it is sent
	TypeArchive       // hides or shows the entries under another one
	TypeSessionInfo   // the session's title, in the dialects of pi and operator
	// Only of effect in pi's dialect.
	TypeUsage       // the cost of something that is no message
	TypeContextEdit // another content for an entry in the context
	// Only in the operator dialect, where branch is TypeBranchSummary and custom_info TypeCustom.
	TypeLeaf // a move of the leaf

	typeHeader // not an entry; to omp, session_header is an unknown type like any other (docs/format.md, Loading)
)

// String returns the type as files write it, in omp's words, or "" for TypeUnknown.
func (t EntryType) String() string {
	// omp's words first, as both maps have most types.
	for _, types := range []map[string]EntryType{ompTypes, operatorTypes} {
		for name, named := range types {
			if named == t {
				return name
			}
		}
	}
	return ""
}

// ompTypes maps the types that omp and pi write.
var ompTypes = map[string]EntryType{
	"session": typeHeader, "message": TypeMessage, "custom": TypeCustom, "custom_message": TypeCustomMessage,
	"compaction": TypeCompaction, "branch_summary": TypeBranchSummary, "label": TypeLabel,
	"thinking_level_change": TypeThinkingLevelChange, "model_change": TypeModelChange, "mode_change": TypeModeChange,
	"service_tier_change": TypeServiceTierChange, "mcp_tool_selection": TypeMCPToolSelection,
	"ttsr_injection": TypeTTSRInjection, "session_init": TypeSessionInit, "session_info": TypeSessionInfo,
	"title_change": TypeTitleChange, "reset_boundary": TypeResetBoundary, "archive": TypeArchive,
	"usage": TypeUsage, "context_edit": TypeContextEdit,
}

// operatorTypes maps the types that operator writes (docs/format.md, Operator dialect).
var operatorTypes = map[string]EntryType{
	"session": typeHeader, "session_header": typeHeader,
	"message":               TypeMessage,
	"compaction":            TypeCompaction,
	"branch":                TypeBranchSummary,
	"leaf":                  TypeLeaf,
	"label":                 TypeLabel,
	"thinking_level_change": TypeThinkingLevelChange,
	"model_change":          TypeModelChange,
	"session_info":          TypeSessionInfo,
	"custom_info":           TypeCustom,
	"custom_message":        TypeCustomMessage,
}

// TitleType is the type of a title slot, which is not an entry.
const TitleType = "title"
