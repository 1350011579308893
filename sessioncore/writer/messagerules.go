package writer

import (
	"sessionfs/sessioncore/internal/rawjson"
)

// This file has the rules for messages that append checks. They were derived from the code of omp 14.9.9 and 18.2.3
// that reads sessions, not from its types: the code that opens them, builds the context, draws the history, the tree
// and the list, sends the context to a model, counts and compacts it. A field has a rule if that code fails when it
// is missing or has another kind, or shows or sends something other than what was written. Types and roles that
// neither version knows are refused: both would ignore them silently.

// Rules used in several places: required members, and optional ones that may be null.
func needText(key string) fieldRule { return fieldRule{key: key, kinds: rawjson.String} }
func needName(key string) fieldRule {
	return fieldRule{key: key, kinds: rawjson.String, notEmpty: true}
}
func needNumber(key string) fieldRule { return fieldRule{key: key, kinds: rawjson.Number} }
func needBool(key string) fieldRule   { return fieldRule{key: key, kinds: rawjson.Bool} }
func needTexts(key string) fieldRule {
	return fieldRule{key: key, kinds: rawjson.Array, elements: rawjson.String}
}
func needList(key string, each *shape) fieldRule {
	return fieldRule{key: key, kinds: rawjson.Array, elements: rawjson.Object, each: each}
}
func needObject(key string, is *shape) fieldRule {
	return fieldRule{key: key, kinds: rawjson.Object, object: is}
}

// may makes a rule one for a member that may be null or missing.
func may(r fieldRule) fieldRule {
	r.kinds, r.optional = r.kinds|rawjson.Null, true
	return r
}
func mayText(key string) fieldRule              { return may(needText(key)) }
func mayNumber(key string) fieldRule            { return may(needNumber(key)) }
func mayBool(key string) fieldRule              { return may(needBool(key)) }
func mayTexts(key string) fieldRule             { return may(needTexts(key)) }
func mayList(key string, each *shape) fieldRule { return may(needList(key, each)) }
func mayObject(key string, is *shape) fieldRule { return may(needObject(key, is)) }

// filled makes a rule one for a member that is added if it is missing.
func filled(r fieldRule, member string) fieldRule {
	r.fill = member
	return r
}

// ifObject is a rule for a member that may be anything; if it is an object, it must satisfy the rules.
func ifObject(key string, rules ...fieldRule) fieldRule {
	return fieldRule{key: key, kinds: ^rawjson.Kinds(0), optional: true, object: of(rules...)}
}

// usageShape has the numbers of a usage that clients add up.
var usageShape = of(
	needNumber("input"), needNumber("output"), needNumber("cacheRead"), needNumber("cacheWrite"),
	needObject("cost", of(needNumber("total"))),
)

// noUsage is the usage added to assistant messages that have none: clients add these numbers up when they open a
// session, and fail if they are missing.
const noUsage = `"usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`

var answerUsage = filled(needObject("usage", usageShape), noUsage)

// Content blocks by type.
var (
	textBlock     = of(needText("text"), mayText("textSignature"))
	imageBlock    = of(needText("data"), fieldRule{key: "mimeType", kinds: rawjson.String, optional: true})
	thinkingBlock = of(needText("thinking"), mayText("thinkingSignature"))
	toolCall      = of(needText("id"), needText("name"), filled(needObject("arguments", nil), `"arguments":{}`))

	// writtenBlocks are the blocks sent to a model: providers take blocks of any other type for images.
	writtenBlocks = &shape{by: &variants{key: "type", of: map[string]*shape{"text": textBlock, "image": imageBlock}}}

	// answerBlocks are the blocks of an assistant. Newer clients have further types, which must only name themselves;
	// other clients ignore them.
	answerBlocks = blocks(map[string]*shape{
		"text": textBlock, "image": imageBlock, "thinking": thinkingBlock, "redactedThinking": of(needText("data")),
		"toolCall": {fields: toolCall.fields, by: toolArguments},
	})
)

// blocks is the shape of blocks of these types, and of others, which must only name themselves.
func blocks(types map[string]*shape) *shape {
	return &shape{fields: []fieldRule{needText("type")}, by: &variants{key: "type", others: true, of: types}}
}

// roles is the shape of messages of these roles.
func roles(of map[string]*shape) *shape {
	return &shape{fields: []fieldRule{needName("role")}, by: &variants{key: "role", of: of}}
}

// contentRule is the rule for the content of users and extensions: a text, or blocks. That of tools has only blocks.
var contentRule = fieldRule{key: "content", kinds: rawjson.String | rawjson.Array, elements: rawjson.Object, each: writtenBlocks}

// blocksOrText is content of which only the kinds matter.
var blocksOrText = fieldRule{key: "content", kinds: rawjson.String | rawjson.Array, elements: rawjson.Object}

// Members of several roles.
var (
	messageTime = mayNumber("timestamp")
	outputRule  = filled(needText("output"), `"output":""`)
	// outputMeta is the metadata of an execution's output.
	outputMeta = mayObject("meta", of(mayObject("diagnostics", of(needTexts("messages")))))
)

// Roles that have the same shape in several places.
var (
	userRole          = of(contentRule, messageTime)
	branchSummaryRole = of(needText("summary"), mayText("fromId"), messageTime)
	// extensionRole is a message of an extension as older clients and exports write it.
	extensionRole = of(needText("customType"), contentRule, mayBool("display"), messageTime)
	customRole    = &shape{fields: extensionRole.fields, by: customDetails}
)

// messageRules are the rules for a message, by its role.
var messageRules = roles(map[string]*shape{
	"user": userRole, "developer": userRole,
	"assistant": of(
		needList("content", answerBlocks), answerUsage, mayText("api"), mayText("provider"), mayText("model"),
		mayText("stopReason"), mayText("errorMessage"), mayObject("providerPayload", nil), messageTime,
	),
	"toolResult": {fields: []fieldRule{
		needText("toolCallId"), needText("toolName"), needList("content", writtenBlocks), mayBool("isError"), messageTime,
	}, by: toolDetails},
	"bashExecution": of(
		needText("command"), outputRule,
		fieldRule{key: "images", kinds: rawjson.Array, optional: true, elements: rawjson.Object, each: imageBlock},
		mayNumber("exitCode"), mayBool("cancelled"), outputMeta, messageTime,
	),
	"pythonExecution": of(
		needText("code"), outputRule, mayNumber("exitCode"), mayBool("cancelled"), outputMeta, messageTime,
	),
	"custom": customRole, "hookMessage": customRole,
	"branchSummary": branchSummaryRole,
	"compactionSummary": of(
		needText("summary"), mayText("shortSummary"), needNumber("tokensBefore"),
		fieldRule{key: "tokensAfter", kinds: rawjson.Number, optional: true},
		fieldRule{key: "blocks", kinds: rawjson.Array, optional: true, elements: rawjson.Object, each: writtenBlocks},
		mayObject("providerPayload", nil), messageTime,
	),
	"fileMention": of(needList("files", of(
		needText("path"), mayText("content"), mayNumber("lineCount"), mayObject("image", imageBlock),
	)), messageTime),
})

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
