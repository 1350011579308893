package claude

import (
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// This file tells which lines a bill can do without: the words of people, and the results of tools, which are
// most of a file.

// maxStart bounds the search for the type of a line's record, in bytes. The client writes some 300 before it.
const maxStart = 1 << 10

var (
	// userStart is how the client begins the message of a person, behind the facts of the record.
	userStart = agents.NewWord(`"type":"user","message":{"role":"user",`, '{')
	// taskWord is in the calls of agents.BilledTool.
	taskWord = agents.NewWord(`"`+agents.BilledTool+`"`, 'k')
)

// Words of lines of a person that change which answers count.
var (
	summaryWord   = agents.NewWord(`"isCompactSummary"`, 'C')
	retractedWord = agents.NewWord(`"retractedMessageUuids"`, 'M')
	removedWord   = agents.NewWord(`"removedUuids"`, 'U')
	forkedWord    = agents.NewWord(`<fork-boilerplate>`, '<')
)

// chargeless returns Builder.Chargeless for a session, which may be a subagent's. A skipped line is a person's
// message or has the results of tools, and neither ends, removes nor replaces an answer. It may still stand between
// two answers: where that matters, isOver has all lines read.
func chargeless(isSubagents bool) func(line []byte) bool {
	return func(line []byte) bool {
		start := line[:min(len(line), maxStart)]
		if !isTalk(line) || !userStart.IsIn(start) {
			return false
		}
		if isSubagents && forkedWord.IsIn(line) { // it tells that the answer before is a copy
			return false
		}
		return !summaryWord.IsIn(line) && !retractedWord.IsIn(line) && !removedWord.IsIn(line)
	}
}

// checkCalls has the file read again if a call in the content of an answer may have a result with a usage.
func (c *converter) checkCalls(content rawjson.Value) {
	if taskWord.IsIn(content) {
		c.needWhole()
	}
}

// needWhole has the file read again with all lines, once.
func (c *converter) needWhole() {
	if !c.learned.whole {
		c.learned.whole = true
		c.Reread()
	}
}
