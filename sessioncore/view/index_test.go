package view

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// indexTags are the elements of the first page of a site beyond those of pages.
var indexTags = regexp.MustCompile(`</?(?:figure|figcaption|svg|title|text|rect|time)>|<figure tabindex="0">|` +
	`<svg viewBox="[0-9 ]+" role="img" aria-label="[^"<>]*">|` +
	`<text x="\d+" y="\d+">|<rect x="\d+" y="\d+" class="l[0-4]">|<(?:h[23]) id="/[a-z0-9-]+">|` +
	`<(?:div|details) class="group">|<ul class="rows">|<li class="row">|` +
	`<nav aria-label="Days">|<a href="[A-Za-z0-9%._-]+">`)

// emptyDay is a day without sessions in the plot of a year.
var emptyDay = regexp.MustCompile(`<rect [^>]* class="l0">.*</rect>\n`)

// TestIndex: the first page of a site has sessions by day, project and agent, the newest first, and their words are text: see testdata/index.html.
func TestIndex(t *testing.T) {
	at := func(day int) time.Time { return time.Date(2026, 3, day, 9, 0, 0, 0, time.Local) }
	hostile := `"><script>alert(1)</script>`
	indexOf := func(of Site) string {
		var out bytes.Buffer
		require.NoError(t, Index(&out, of))
		body := partOf(t, out.String(), string(indexTools()))
		requireHarmless(t, indexTags.ReplaceAllString(body, ""))
		return body
	}
	body := indexOf(Site{
		Sessions: []Linked{
			{File: "a.html", Title: "A", Project: "/p", Agent: "omp", Began: at(1), Cost: "$1.00", Dollars: 1},
			{File: hostile, Title: hostile, Project: hostile, Agent: hostile, Began: at(2), Cost: hostile},
			{File: "c.html", Began: at(2).Add(time.Hour), Agent: "omp", Cost: "$4.00+", Dollars: 4},
		},
		Days: map[string]float64{"2026-03-01": 1, "2026-03-02": 4}, Total: "$5.00+",
	})
	requireGolden(t, "testdata/index.html", emptyDay.ReplaceAllString(body, ""))
	body = indexOf(Site{Sessions: []Linked{{File: "a.html", Began: at(1)}}})
	require.Contains(t, body, `Sessions of each day`, "where nobody knows a cost")
	require.Contains(t, body, `class="l4"><title>2026-03-01: 1 session</title>`)
	require.NotContains(t, indexOf(Site{}), "<svg")
	require.Equal(t, 53*7, strings.Count(indexOf(Site{Days: map[string]float64{"2026-03-01": 1}}), "<rect"), "up to a Sunday")
}
