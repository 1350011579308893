package writer

import "sessionfs/sessioncore/internal/rawjson"

// This file has the rules for the arguments and details of tool calls and of the messages that clients write
// themselves. They complete those in messagerules.go: 14.9.9 draws many of these without checking them, and cannot
// show a session in which that fails; later versions check first.

// detailsShape is a shape whose member details may be anything; if it is an object, it must satisfy the rules.
func detailsShape(rules ...fieldRule) *shape { return of(ifObject("details", rules...)) }

// toolShape is detailsShape for a tool, whose results may have images.
func toolShape(rules ...fieldRule) *shape {
	return detailsShape(append([]fieldRule{mayList("images", nil)}, rules...)...)
}

// argumentsShape is a shape for the arguments of a tool call, which must be an object.
func argumentsShape(rules ...fieldRule) *shape {
	return of(fieldRule{key: "arguments", kinds: rawjson.Object, optional: true, object: of(rules...)})
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
	"ask":   toolShape(mayText("question"), mayList("results", of(mayText("question")))),
	"debug": toolShape(mayText("action")),
	"lsp":   toolShape(mayText("action")),
	"eval":  toolShape(mayList("cells", of(mayText("code"), mayText("output"), mayList("statusEvents", nil)))),
	"job": toolShape(mayList("jobs", &shape{
		fields: []fieldRule{mayText("label"), mayText("errorText")},
		by: &variants{key: "status", of: map[string]*shape{
			"running": {}, "completed": {}, "failed": {}, "cancelled": {},
		}},
	})),
	"github": toolShape(ifObject("watch",
		mayText("headSha"), mayList("failedLogs", of(needText("jobName"), mayText("tail"))),
	)),
	"task": toolShape(taskRules...),
	"web_search": toolShape(ifObject("response",
		mayList("sources", nil), mayList("citations", nil), mayTexts("searchQueries"), mayTexts("relatedQuestions"),
	)),

	"bash": imageDetails, "browser": imageDetails, "ast_edit": imageDetails, "ast_grep": imageDetails,
	"calc": imageDetails, "find": imageDetails, "inspect_image": imageDetails, "recipe": imageDetails,
	"resolve": imageDetails, "search": imageDetails, "ssh": imageDetails, "todo_write": imageDetails,
}}

var (
	imageDetails = toolShape()
	editDetails  = toolShape(mayText("diff"), mayObject("diagnostics", of(needText("summary"), needTexts("messages"))))
)

// taskRules are the rules for the details of a subagent's result. Clients add up its usage when they open a session.
var taskRules = []fieldRule{
	mayObject("usage", usageShape),
	filled(needList("results", of(
		needText("id"), needText("output"), mayText("assignment"), mayText("description"),
		ifObject("extractedToolData", mayList("yield", nil)),
	)), `"results":[]`),
	mayList("progress", of(
		needText("id"), mayText("assignment"), mayText("description"), mayText("lastIntent"),
		fieldRule{key: "recentOutput", kinds: rawjson.Array}, needList("recentTools", nil),
	)),
}

// customDetails are the rules for the details of an extension's messages, by the customTypes that clients write.
var customDetails = &variants{key: "customType", others: true, of: map[string]*shape{
	"async-result":        detailsShape(mayList("jobs", nil)),
	"lsp-late-diagnostic": detailsShape(mayList("files", of(mayTexts("messages")))),
	"skill-prompt":        detailsShape(mayText("name"), mayText("path"), mayText("args"), mayText("prompt")),
	"irc:incoming":        ircDetails, "irc:autoreply": ircDetails, "irc:relay": ircDetails, "irc:workpool": ircDetails,
	"advisor":                 detailsShape(mayList("notes", of(needText("note")))),
	"background-tan-dispatch": detailsShape(mayText("work")),
	"collab-prompt":           detailsShape(mayText("from")),
}}

var ircDetails = detailsShape(mayText("from"), mayText("to"), mayText("message"), mayText("reply"), mayText("body"))

// fileDetails is the rule for the details of a summary: the files that the next summary is told of.
var fileDetails = ifObject("details", mayTexts("readFiles"), mayTexts("modifiedFiles"))
