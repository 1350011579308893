package codex

import (
	"slices"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

var webSearch = rawjson.Value(`"web_search"`)

// searchCall makes entries of a call of the web search. An event may have its results.
func (c *converter) searchCall(item agents.Object, id rawjson.Value) {
	args := item.AnyOf("action", "arguments", "input")
	i := c.searchEvent(id)
	if i >= 0 {
		c.flushEvents(i)
		e := c.events[0]
		c.events = c.events[1:]
		c.call(e.id, webSearch, args)
		c.Of(&e.at, func() { c.result(e.id, nil, &outcome{blocks: e.results}) })
		return
	}
	c.flushEvents(len(c.events))
	c.call(id, webSearch, args)
	text, hasID := id.Text()
	if hasID { // its event may follow
		call := c.calls[text]
		call.hosted = true
		c.calls[text] = call
	}
}

// searchEvent returns the index of the event of a search, of any one for a missing id, or -1.
func (c *converter) searchEvent(id rawjson.Value) int {
	return slices.IndexFunc(c.events, func(e event) bool {
		if e.speaker != search {
			return false
		}
		return !id.IsString() || string(id) == string(e.id)
	})
}

// searchResult handles the results of a search or, without them, its query, in a record of size bytes. Its call may
// follow. One that has its results already, and one without an id and a call, changes nothing.
func (c *converter) searchResult(id rawjson.Value, p agents.Object, size int) {
	results := outputBlocks(p.AnyOf("results", "query"))
	text, hasID := id.Text()
	known, isKnown := c.calls[text]
	switch {
	case known.done:
	case known.hosted:
		c.result(id, nil, &outcome{blocks: results})
	case isKnown:
		c.wait(text, &outcome{at: c.Here(), blocks: results}, size)
	case hasID:
		c.await(event{
			speaker: search,
			id:      slices.Clone(id),
			text:    slices.Clone(p.AnyOf("action", "query")),
			results: results,
			at:      c.Here(),
		})
	}
}
