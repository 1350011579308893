package view

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"sync"
	"text/template"
	"time"

	"sessionfs/sessioncore"
)

// This file has the parts that all pages share: style, script, and a policy that lets a browser
// load nothing and run that script alone.

var (
	//go:embed page.html index.html
	pageFiles embed.FS
	//go:embed page.css
	pageStyle string
	//go:embed page.js
	pageScript string
)

// templates are the parts of pages in page.html, and index.html. They escape with html, byte for
// byte as entries are.
var templates = sync.OnceValue(func() *template.Template {
	policy := "default-src 'none'; img-src data:; style-src " + hashOfSource(pageStyle) +
		"; script-src " + hashOfSource(pageScript) + "; base-uri 'none'; form-action 'none'"
	text := func(text string) func() string { return func() string { return text } }
	funcs := template.FuncMap{"policy": text(policy), "style": text(pageStyle), "script": text(pageScript)}
	return template.Must(template.New("").Funcs(funcs).ParseFS(pageFiles, "*.html"))
})

// render returns a template with its data.
func render(name string, data any) string {
	var out bytes.Buffer
	if err := templates().ExecuteTemplate(&out, name, data); err != nil {
		panic(err) // no template calls anything that fails
	}
	return out.String()
}

// pageFact is a name and a value in the header of a page. One without a value is left out.
type pageFact [2]string

// hashOfSource names a source in a policy.
func hashOfSource(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// extent returns the time from the first entry to the last one, "" if there is none, and the number
// of prompts: of the session, or of a branch alone.
func extent(of *Subject, path []sessioncore.Entry) (length string, prompts int) {
	s, entries := of.Session, path
	if !of.Alone {
		entries = make([]sessioncore.Entry, s.Len())
		for e := range entries {
			entries[e] = sessioncore.Entry(e)
		}
	}
	var first, last time.Time
	for _, e := range entries {
		if s.IsMessage(e, sessioncore.RoleUser) {
			prompts++
		}
		if at, ok := s.OwnTime(e); ok {
			if first.IsZero() || at.Before(first) {
				first = at
			}
			if at.After(last) {
				last = at
			}
		}
	}
	if !first.IsZero() {
		length = durationText(last.Sub(first))
	}
	return length, prompts
}

// durationText formats a duration for people, by its two largest units.
func durationText(d time.Duration) string {
	switch seconds := int(d.Round(time.Second) / time.Second); {
	case seconds < 60:
		return fmt.Sprintf("%d s", seconds)
	case seconds < 3600:
		return fmt.Sprintf("%d min %d s", seconds/60, seconds%60)
	case seconds < 86400:
		return fmt.Sprintf("%d h %d min", seconds/3600, seconds/60%60)
	default:
		return fmt.Sprintf("%d d %d h", seconds/86400, seconds/3600%24)
	}
}
