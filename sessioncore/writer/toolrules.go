package writer

import "sessionfs/sessioncore/internal/rawjson"

// This file has the rules for the arguments and details of tool calls and of the messages that clients write
// themselves. They complete those in messagerules.go: 14.9.9 draws many of these without checking them, and cannot
// show a session in which that fails; later versions check first.

// detailsShape is a shape whose member details may be anything; if it is an object, it must satisfy the rules.
func detailsShape(rules ...fieldRule) *shape {
	return &shape{fields: []fieldRule{{key: "details", kinds: ^rawjson.Kinds(0), optional: true, object: &shape{fields: rules}}}}
}

// argumentsShape is the same for the arguments of a tool call, which must be an object.
func argumentsShape(rules ...fieldRule) *shape {
	return &shape{fields: []fieldRule{{key: "arguments", kinds: rawjson.Object, optional: true, object: &shape{fields: rules}}}}
}

// mayList is a rule for an optional array of objects with the shape each, or of any objects if each is nil.
func mayList(key string, each *shape) fieldRule {
	return fieldRule{key: key, kinds: rawjson.Array | rawjson.Null, optional: true, elements: rawjson.Object, each: each}
}

// mayTexts is a rule for an optional array of strings.
func mayTexts(key string) fieldRule {
	return fieldRule{key: key, kinds: rawjson.Array | rawjson.Null, optional: true, elements: rawjson.String}
}

// toolArguments are the rules for arguments by tool.
var toolArguments = &variants{key: "name", others: true, of: map[string]*shape{
	"read":  argumentsShape(mayText("path"), mayText("file_path")),
	"ask":   argumentsShape(mayText("question")),
	"debug": argumentsShape(mayText("action")),
	"lsp":   argumentsShape(mayText("action")),
}}

// toolDetails are the rules for the details of results by tool.
var toolDetails = &variants{key: "toolName", others: true, of: map[string]*shape{
	"edit": editDetails, "apply_patch": editDetails, "write": editDetails,
	"ask": detailsShape(toolImages, mayText("question"),
		mayList("results", &shape{fields: []fieldRule{mayText("question")}})),
	"debug": detailsShape(toolImages, mayText("action")),
	"lsp":   detailsShape(toolImages, mayText("action")),
	"eval": detailsShape(toolImages, mayList("cells", &shape{fields: []fieldRule{
		mayText("code"), mayText("output"), mayList("statusEvents", nil),
	}})),
	"job": detailsShape(toolImages, mayList("jobs", &shape{
		fields: []fieldRule{mayText("label"), mayText("errorText")},
		by: &variants{key: "status", of: map[string]*shape{
			"running": {}, "completed": {}, "failed": {}, "cancelled": {},
		}},
	})),
	"github": detailsShape(toolImages, fieldRule{key: "watch", kinds: ^rawjson.Kinds(0), optional: true, object: &shape{fields: []fieldRule{
		mayText("headSha"), mayList("failedLogs", &shape{fields: []fieldRule{needText("jobName"), mayText("tail")}}),
	}}}),
	"task": detailsShape(append([]fieldRule{toolImages}, taskRules...)...),

	"bash": imageDetails, "browser": imageDetails, "ast_edit": imageDetails, "ast_grep": imageDetails,
	"web_search": detailsShape(toolImages, fieldRule{key: "response", kinds: ^rawjson.Kinds(0), optional: true, members: []fieldRule{
		mayList("sources", nil), mayList("citations", nil), mayTexts("searchQueries"), mayTexts("relatedQuestions"),
	}}),
	"calc": imageDetails, "find": imageDetails, "inspect_image": imageDetails, "recipe": imageDetails,
	"resolve": imageDetails, "search": imageDetails, "ssh": imageDetails, "todo_write": imageDetails,
}}

var (
	toolImages   = mayList("images", nil)
	imageDetails = detailsShape(toolImages)
	editDetails  = detailsShape(toolImages, mayText("diff"),
		fieldRule{key: "diagnostics", kinds: rawjson.Object | rawjson.Null, optional: true, members: []fieldRule{
			needText("summary"), {key: "messages", kinds: rawjson.Array, elements: rawjson.String},
		}})
)

// taskRules are the rules for the details of a subagent's result. Clients add up its usage when they open a session.
var taskRules = []fieldRule{
	{key: "usage", kinds: rawjson.Object | rawjson.Null, optional: true, members: usageRules},
	{key: "results", kinds: rawjson.Array, elements: rawjson.Object, fill: `"results":[]`, each: &shape{fields: []fieldRule{
		needText("id"), needText("output"), mayText("assignment"), mayText("description"),
		{key: "extractedToolData", kinds: ^rawjson.Kinds(0), optional: true, members: []fieldRule{mayList("yield", nil)}},
	}}},
	mayList("progress", &shape{fields: []fieldRule{
		needText("id"), mayText("assignment"), mayText("description"), mayText("lastIntent"),
		{key: "recentOutput", kinds: rawjson.Array},
		{key: "recentTools", kinds: rawjson.Array, elements: rawjson.Object},
	}}),
}

// customDetails are the rules for the details of an extension's messages, by the customTypes that clients write.
var customDetails = &variants{key: "customType", others: true, of: map[string]*shape{
	"async-result":        detailsShape(mayList("jobs", nil)),
	"lsp-late-diagnostic": detailsShape(mayList("files", &shape{fields: []fieldRule{mayTexts("messages")}})),
	"skill-prompt":        detailsShape(mayText("name"), mayText("path"), mayText("args"), mayText("prompt")),
	"irc:incoming":        ircDetails, "irc:autoreply": ircDetails, "irc:relay": ircDetails, "irc:workpool": ircDetails,
	"advisor":                 detailsShape(mayList("notes", &shape{fields: []fieldRule{needText("note")}})),
	"background-tan-dispatch": detailsShape(mayText("work")),
	"collab-prompt":           detailsShape(mayText("from")),
}}

var ircDetails = detailsShape(mayText("from"), mayText("to"), mayText("message"), mayText("reply"), mayText("body"))

// fileDetails is the rule for the details of a summary: the files that the next summary is told of.
var fileDetails = fieldRule{key: "details", kinds: ^rawjson.Kinds(0), optional: true, members: []fieldRule{
	mayTexts("readFiles"), mayTexts("modifiedFiles"),
}}
