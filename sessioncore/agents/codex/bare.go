package codex

import (
	"slices"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// begin begins the session. meta is the session_meta, or nil if that is damaged. id is missing where
// the file's name counts.
func (c *converter) begin(id rawjson.Value, meta agents.Object) {
	c.begun = true
	c.Begin(agents.Header{
		ID:         id,
		Time:       meta.Member("timestamp"),
		Cwd:        meta.Member("cwd"),
		Originator: meta.Member("originator"),
		Version:    meta.Member("cli_version"),
		Git:        meta.Member("git"),
		Base:       meta.Member("history_base"),
		Subagent:   subagentOf(meta),
		Problems:   c.chain.problems,
	})
}

// bare handles a line without an envelope, as rollouts of mid-2025 have them: a header, then items
// without times. A message of the program has the working directory.
func (c *converter) bare(line agents.Object) {
	typ, _ := line.Member("type").Text()
	id := line.Member("id")
	time := line.Member("timestamp")
	content := line.Member("content")
	isHeader := typ == "" && id.IsString() && time.IsString()
	isSpoken := typ == "message" || typ == "reasoning"
	isOfTool := strings.HasSuffix(typ, "_call") || strings.HasSuffix(typ, "_output")
	switch {
	case isHeader && !c.begun:
		c.began = slices.Clone(time)
		c.begin(id, line)
	case isSpoken || isOfTool:
		c.begin(nil, nil) // the first line may be missing
		if line.Member("role").Is("user") && isContext(content) {
			c.Directory(agents.Quoted(cwdIn(content)))
		}
		c.item(line)
	}
}

// cwdIn returns the working directory in a message of the program, or "".
func cwdIn(content rawjson.Value) string {
	text := agents.ChatText(content)
	if cwd := agents.Between(text, "<cwd>", "</cwd>"); cwd != "" {
		return cwd
	}
	return agents.Between(text, "Current working directory: ", "\n")
}
