package writer

import "sessionfs/sessioncore/internal/rawjson"

// This file has the rules for messages that append checks. They were derived from the code of omp 14.9.9 and 18.2.3
// that reads sessions, not from its types: the code that opens them, builds the context, draws the history, the tree
// and the list, sends the context to a model, counts and compacts it. A field has a rule if that code fails when it
// is missing or has another kind, or shows or sends something other than what was written. Types and roles that
// neither version knows are refused: both would ignore them silently.

// Rules used in several places: a required string, and optional members that may be null.
func needText(key string) fieldRule { return fieldRule{key: key, kinds: rawjson.String} }
func mayText(key string) fieldRule {
	return fieldRule{key: key, kinds: rawjson.String | rawjson.Null, optional: true}
}
func mayNumber(key string) fieldRule {
	return fieldRule{key: key, kinds: rawjson.Number | rawjson.Null, optional: true}
}
func mayBool(key string) fieldRule {
	return fieldRule{key: key, kinds: rawjson.Bool | rawjson.Null, optional: true}
}
func mayObject(key string) fieldRule {
	return fieldRule{key: key, kinds: rawjson.Object | rawjson.Null, optional: true}
}

// usageRules are the numbers of a usage that clients add up.
var usageRules = []fieldRule{
	{key: "input", kinds: rawjson.Number},
	{key: "output", kinds: rawjson.Number},
	{key: "cacheRead", kinds: rawjson.Number},
	{key: "cacheWrite", kinds: rawjson.Number},
	{key: "cost", kinds: rawjson.Object, members: []fieldRule{{key: "total", kinds: rawjson.Number}}},
}

// noUsage is the usage added to assistant messages that have none: clients add these numbers up when they open a
// session, and fail if they are missing.
const noUsage = `"usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`

// Content blocks by type.
var (
	textBlock  = &shape{fields: []fieldRule{needText("text"), mayText("textSignature")}}
	imageBlock = &shape{fields: []fieldRule{needText("data"), {key: "mimeType", kinds: rawjson.String, optional: true}}}

	// writtenBlocks are the blocks sent to a model: providers take blocks of any other type for images.
	writtenBlocks = &shape{by: &variants{key: "type", of: map[string]*shape{"text": textBlock, "image": imageBlock}}}

	// answerBlocks are the blocks of an assistant. Newer clients have further types, which must only name themselves;
	// other clients ignore them.
	answerBlocks = &shape{
		fields: []fieldRule{needText("type")},
		by: &variants{key: "type", others: true, of: map[string]*shape{
			"text":             textBlock,
			"image":            imageBlock,
			"thinking":         {fields: []fieldRule{needText("thinking"), mayText("thinkingSignature")}},
			"redactedThinking": {fields: []fieldRule{needText("data")}},
			"toolCall": {fields: []fieldRule{
				needText("id"), needText("name"), {key: "arguments", kinds: rawjson.Object, fill: `"arguments":{}`},
			}, by: toolArguments},
		}},
	}
)

// contentRule is the rule for the content of users, tools and extensions: a text, or blocks.
func contentRule(kinds rawjson.Kinds) fieldRule {
	return fieldRule{key: "content", kinds: kinds, elements: rawjson.Object, each: writtenBlocks}
}

// messageRules are the rules for a message, by its role.
var messageRules = &shape{fields: []fieldRule{{key: "role", kinds: rawjson.String, notEmpty: true}}, by: &variants{key: "role", of: map[string]*shape{
	"user":      {fields: []fieldRule{contentRule(rawjson.String | rawjson.Array), mayNumber("timestamp")}},
	"developer": {fields: []fieldRule{contentRule(rawjson.String | rawjson.Array), mayNumber("timestamp")}},
	"assistant": {fields: []fieldRule{
		{key: "content", kinds: rawjson.Array, elements: rawjson.Object, each: answerBlocks},
		{key: "usage", kinds: rawjson.Object, members: usageRules, fill: noUsage},
		mayText("api"), mayText("provider"), mayText("model"),
		mayText("stopReason"), mayText("errorMessage"), mayObject("providerPayload"),
		mayNumber("timestamp"),
	}},
	"toolResult": {fields: []fieldRule{
		needText("toolCallId"), needText("toolName"), contentRule(rawjson.Array), mayBool("isError"), mayNumber("timestamp"),
	}, by: toolDetails},
	"bashExecution": {fields: []fieldRule{
		needText("command"), {key: "output", kinds: rawjson.String, fill: `"output":""`},
		{key: "images", kinds: rawjson.Array, optional: true, elements: rawjson.Object, each: imageBlock},
		mayNumber("exitCode"), mayBool("cancelled"), outputMeta, mayNumber("timestamp"),
	}},
	"pythonExecution": {fields: []fieldRule{
		needText("code"), {key: "output", kinds: rawjson.String, fill: `"output":""`},
		mayNumber("exitCode"), mayBool("cancelled"), outputMeta, mayNumber("timestamp"),
	}},
	"custom":      customRole,
	"hookMessage": customRole,
	"branchSummary": {fields: []fieldRule{
		needText("summary"), mayText("fromId"), mayNumber("timestamp"),
	}},
	"compactionSummary": {fields: []fieldRule{
		needText("summary"), mayText("shortSummary"), {key: "tokensBefore", kinds: rawjson.Number},
		{key: "tokensAfter", kinds: rawjson.Number, optional: true},
		{key: "blocks", kinds: rawjson.Array, optional: true, elements: rawjson.Object, each: writtenBlocks},
		mayObject("providerPayload"), mayNumber("timestamp"),
	}},
	"fileMention": {fields: []fieldRule{
		{key: "files", kinds: rawjson.Array, elements: rawjson.Object, each: &shape{fields: []fieldRule{
			needText("path"), mayText("content"), mayNumber("lineCount"),
			{key: "image", kinds: rawjson.Object | rawjson.Null, optional: true, object: imageBlock},
		}}},
		mayNumber("timestamp"),
	}},
}}}

// outputMeta is the rule for the metadata of an execution's output.
var outputMeta = fieldRule{key: "meta", kinds: rawjson.Object | rawjson.Null, optional: true, members: []fieldRule{
	{key: "diagnostics", kinds: rawjson.Object | rawjson.Null, optional: true, members: []fieldRule{
		{key: "messages", kinds: rawjson.Array, elements: rawjson.String},
	}},
}}

// customRole is a message of an extension as older clients and exports write it.
var customRole = &shape{fields: []fieldRule{
	needText("customType"), contentRule(rawjson.String | rawjson.Array), mayBool("display"), mayNumber("timestamp"),
}, by: customDetails}
