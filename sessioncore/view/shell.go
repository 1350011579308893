package view

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"time"

	"sessionfs/sessioncore"
)

// This file has the parts that all pages share: style, script, and a policy that lets a browser
// load nothing and run that script alone.

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageStyle string
	//go:embed page.js
	pageScript string
	//go:embed tools.html
	pageTools string
)

// indexTools returns the tools of the first page of a site, which has nothing to filter or to unfold. Its
// search is for the texts of the page alone.
func indexTools() markup {
	search, _, _ := strings.Cut(pageTools, "<fieldset>")
	const where = "Search titles and directories"
	return markup(strings.ReplaceAll(search, "Search, also in folded text", where) +
		"<div>For what was said in the sessions, type <code>sessionfs search WORD</code> in a terminal.</div>\n</form>\n")
}

// htmlWriter writes a page.
type htmlWriter struct {
	out *bufio.Writer // Flush returns its first error
}

// write writes HTML.
func (x htmlWriter) write(parts ...markup) {
	for _, part := range parts {
		_, _ = x.out.WriteString(string(part))
	}
}

// begin begins a page, and its header. above stands before its title.
func (x htmlWriter) begin(above markup, title string) {
	shown := escaped(title)
	before, after, _ := strings.Cut(string(pageShell().begin), "{title}")
	x.write(markup(before), shown, markup(after), "<header>\n", above, "<h1>", shown, "</h1>\n")
}

// facts writes names and values, those without a value left out.
func (x htmlWriter) facts(list ...[2]string) {
	x.write("<dl>")
	for _, fact := range list {
		if fact[1] != "" {
			x.write("<div><dt>", escaped(fact[0]), "</dt><dd>", escaped(fact[1]), "</dd></div>")
		}
	}
	x.write("</dl>\n")
}

// shell is the text before and after the content of a page.
type shell struct{ begin, end markup }

// pageShell returns the shell of each page.
var pageShell = sync.OnceValue(func() shell {
	policy := "default-src 'none'; img-src data:; style-src " + hashOfSource(pageStyle) +
		"; script-src " + hashOfSource(pageScript) + "; base-uri 'none'; form-action 'none'"
	text := strings.NewReplacer("{policy}", policy, "{style}", pageStyle, "{script}", pageScript).Replace(pageHTML)
	begin, end, _ := strings.Cut(text, "{content}\n")
	return shell{begin: markup(begin), end: markup(end)}
})

// hashOfSource names a source in a policy.
func hashOfSource(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// extent returns the time from the first entry to the last one, "" if there is none, and the number
// of prompts: of the session, or of a branch alone, path.
func extent(subject *Subject, path []sessioncore.Entry) (length string, prompts int) {
	s := subject.Session
	entries := path
	if !subject.Alone {
		entries = make([]sessioncore.Entry, s.Len())
		for e := range entries {
			entries[e] = sessioncore.Entry(e)
		}
	}
	var first, last time.Time
	for _, e := range entries {
		if s.IsRequest(e) {
			prompts++
		}
		at, hasTime := s.OwnTime(e)
		if !hasTime {
			continue
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
		if at.After(last) {
			last = at
		}
	}
	if !first.IsZero() {
		length = durationText(last.Sub(first))
	}
	return length, prompts
}

// durationText formats a duration for people, by its two largest units.
func durationText(d time.Duration) string {
	seconds := int(d.Round(time.Second) / time.Second)
	minutes := seconds / 60
	hours := minutes / 60
	days := hours / 24
	switch {
	case days > 0:
		return fmt.Sprintf("%d d %d h", days, hours%24)
	case hours > 0:
		return fmt.Sprintf("%d h %d min", hours, minutes%60)
	case minutes > 0:
		return fmt.Sprintf("%d min %d s", minutes, seconds%60)
	}
	return fmt.Sprintf("%d s", seconds)
}
