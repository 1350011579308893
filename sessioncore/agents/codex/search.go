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
	if i < 0 {
		c.flushEvents(len(c.events))
		c.call(id, webSearch, args)
		text, ok := id.Text()
		if ok {
			known := c.calls[text]
			known.hosted = true
			c.calls[text] = known
		}
		return
	}
	c.flushEvents(i)
	e := c.events[0]
	c.events = c.events[1:]
	c.call(e.id, webSearch, args)
	c.Of(&e.at, func() { c.result(e.id, nil, &outcome{blocks: e.results}) })
}

// searchEvent returns the index of the event of a search, of any one for a missing id, or -1.
func (c *converter) searchEvent(id rawjson.Value) int {
	return slices.IndexFunc(c.events, func(e event) bool {
		return e.speaker == search && (!id.IsString() || string(id) == string(e.id))
	})
}

// searchResult handles the results of a search, else the query. Its call may follow.
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
