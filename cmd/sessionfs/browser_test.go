//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/view"
)

// browser is a page in a headless Chromium, driven by the DevTools protocol over a pipe.
type browser struct {
	t       *testing.T
	out     *os.File
	in      *bufio.Reader
	session string
	calls   int
	loads   int
	events  []string // requests beyond the page itself, messages on the console, exceptions and dialogs
}

// newBrowser starts Chromium with an empty page. The test is skipped where Chromium is not installed.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	if testing.Short() {
		t.Skip("not with -short")
	}
	program, err := exec.LookPath("chromium")
	if err != nil {
		program, err = exec.LookPath("google-chrome")
	}
	if err != nil {
		skip(t, "Chromium is not installed")
	}
	toRead, out, err := os.Pipe()
	require.NoError(t, err)
	in, toWrite, err := os.Pipe()
	require.NoError(t, err)
	dir := t.TempDir()
	cmd := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--user-data-dir="+dir, "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{toRead, toWrite}
	cmd.Env = append(os.Environ(), "HOME="+dir)
	require.NoError(t, cmd.Start())
	toRead.Close()
	toWrite.Close()
	b := &browser{t: t, out: out, in: bufio.NewReader(in)}
	require.NoError(t, in.SetReadDeadline(time.Now().Add(2*time.Minute)))
	t.Cleanup(func() {
		_, _ = fmt.Fprint(out, `{"id":1000000,"method":"Browser.close"}`+"\x00")
		_ = cmd.Wait()
		out.Close()
		in.Close()
	})
	var made struct{ TargetID, SessionID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &made)
	b.call("Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true}, &made)
	b.session = made.SessionID
	for _, domain := range []string{"Page", "Runtime", "Network", "Log"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

// call calls a method, and notes the events before its answer.
func (b *browser) call(method string, params, answer any) {
	b.t.Helper()
	b.calls++
	text, err := json.Marshal(struct {
		ID      int    `json:"id"`
		Method  string `json:"method"`
		Params  any    `json:"params,omitempty"`
		Session string `json:"sessionId,omitempty"`
	}{b.calls, method, params, b.session})
	require.NoError(b.t, err)
	_, err = b.out.Write(append(text, 0))
	require.NoError(b.t, err)
	for id := 0; id != b.calls; {
		id = b.read(answer)
	}
}

// read reads a message, and returns the call that it answers.
func (b *browser) read(answer any) (id int) {
	b.t.Helper()
	text, err := b.in.ReadBytes(0)
	require.NoError(b.t, err)
	var m struct {
		ID             int
		Method         string
		Params, Result json.RawMessage
		Error          any
	}
	require.NoError(b.t, json.Unmarshal(text[:len(text)-1], &m))
	require.Nil(b.t, m.Error)
	switch m.Method {
	case "Page.loadEventFired":
		b.loads++
	case "Network.requestWillBeSent":
		var p struct{ Request struct{ URL string } }
		require.NoError(b.t, json.Unmarshal(m.Params, &p))
		if !strings.HasPrefix(p.Request.URL, "file:") && !strings.HasPrefix(p.Request.URL, "data:image/") {
			b.events = append(b.events, p.Request.URL)
		}
	case "Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Page.javascriptDialogOpening":
		b.events = append(b.events, string(m.Params))
	}
	if m.ID > 0 && answer != nil {
		require.NoError(b.t, json.Unmarshal(m.Result, answer))
	}
	return m.ID
}

// open opens a file of the machine.
func (b *browser) open(file string) {
	b.t.Helper()
	loads := b.loads
	b.call("Page.navigate", map[string]any{"url": (&url.URL{Scheme: "file", Path: file}).String()}, nil)
	for b.loads == loads {
		b.read(nil)
	}
}

// do returns the JSON of an expression, whose promise is waited for.
func (b *browser) do(expression string) string {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails any
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &r)
	require.Nil(b.t, r.ExceptionDetails, expression)
	return string(r.Result.Value)
}

// seen returns the number of elements that are shown.
func (b *browser) seen(selector string) string {
	return b.do(`[...document.querySelectorAll("` + selector + `")].filter(e => e.offsetParent).length`)
}

// search types into the search field.
func (b *browser) search(text string) {
	b.do(`(() => { const i = document.querySelector("input[type=search]"); i.value = ` + fmt.Sprintf("%q", text) +
		`; i.dispatchEvent(new Event("input", {bubbles: true})); return new Promise(done => setTimeout(done, 400)); })()`)
}

// faint returns the texts whose contrast is below that of WCAG AA, 4.5.
const faint = `(() => {
	const paint = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
	const rgb = color => { paint.clearRect(0, 0, 1, 1); paint.fillStyle = color; paint.fillRect(0, 0, 1, 1); return [...paint.getImageData(0, 0, 1, 1).data]; };
	const light = c => { const [r, g, b] = c.map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
		return .2126 * r + .7152 * g + .0722 * b; };
	const found = new Set();
	for (const e of document.querySelectorAll("body *")) {
		if (!e.offsetParent || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || e.matches(".skip, legend")) continue;
		let behind = e, back = rgb(getComputedStyle(e).backgroundColor);
		while (back[3] === 0 && (behind = behind.parentElement)) back = rgb(getComputedStyle(behind).backgroundColor);
		const [a, b] = [light(rgb(getComputedStyle(e).color)), light(back)].sort((a, b) => b - a);
		if ((a + .05) / (b + .05) < 4.5) found.add(e.outerHTML.slice(0, 90));
	}
	return [...found];
})()`

// requireReadable holds a page's colours against WCAG AA, in light and dark, and looks for text beside a narrow screen.
func (b *browser) requireReadable() {
	b.t.Helper()
	for _, scheme := range []string{"dark", "light"} {
		b.call("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]string{"name": "prefers-color-scheme", "value": scheme}}}, nil)
		require.Equal(b.t, "[]", b.do(faint), scheme)
	}
	for _, width := range []int{390, 800, 1440} {
		b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
		require.Equal(b.t, "true", b.do("document.documentElement.scrollWidth <= innerWidth"), width)
	}
}

// TestPageInBrowser: filters, folds, search and anchors of a page work, no request leaves it, and hostile text runs nothing.
func TestPageInBrowser(t *testing.T) {
	b := newBrowser(t)
	s := commandStore(t)
	hostile := `{"type":"message",` +
		`"message":{"role":"user",` +
		`"content":"<script>document.title='run'</script> <img src=https://example.org/x onerror=alert(1)> ![x](https://example.org/y.png)"}}` + "\n"
	require.Zero(t, s.fed(hostile, "write", "by-id/019d3d9/append").code)
	file := filepath.Join(t.TempDir(), "page.html")
	require.NoError(t, os.WriteFile(file, []byte(s.here("export", "019d3d9").ok(t).stdout), 0o600))

	b.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
	b.open(file)
	require.Equal(t, `0`, b.seen("form"), "without scripts there are no filters")
	all := b.seen("main article")
	require.Equal(t, `"e657ffb9"`, b.do(`document.querySelector("main article:nth-of-type(5)").id`), "and all entries")
	b.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": false}, nil)

	b.open(file)
	require.Equal(t, `"An hour late, a hand too high"`, b.do("document.title"))
	require.Equal(t, all, b.seen("main article"))
	pick := func(what string) { b.do(`document.querySelector("input[value=` + what + `]").click()`) }
	pick("user")
	require.Equal(t, b.seen("main article.user"), b.seen("main article"))
	require.Equal(t, b.seen("nav li.user"), b.seen("nav li"))
	require.NotEqual(t, all, b.seen("main article"))
	pick("labelled")
	require.Equal(t, b.seen("main article.labelled"), b.seen("main article"))
	require.NotEqual(t, "0", b.seen("main article"))
	pick("talk")
	require.Equal(t, "0", b.seen("main .call"))
	require.NotEqual(t, "0", b.seen("main article:not(.user)"))
	pick("all")
	require.NotEqual(t, "0", b.seen("main .call"))

	expand := `document.querySelector("form button").click()`
	b.do(expand)
	require.Equal(t, "0", b.do(`document.querySelectorAll("main details:not([open])").length`))
	b.do(expand)
	require.Equal(t, "0", b.do(`document.querySelectorAll("main details[open]").length`))

	b.search("--- FAIL: TestTable")
	require.Equal(t, "0", b.do(`document.querySelectorAll("main details[open]:not(.call)").length`), "only the fold that has the text is open")
	require.NotEqual(t, "0", b.seen("main details[open] pre"))
	require.NotEqual(t, "0", b.seen("nav li"))
	require.NotEqual(t, all, b.seen("main article"))
	require.NotEqual(t, "0", b.do(`CSS.highlights.get("found").size`))
	b.do(`document.querySelector("input[type=search]").dispatchEvent(new KeyboardEvent("keydown", {key: "Enter"}))`)
	require.Regexp(t, `^"1 of \d+"$`, b.do(`document.querySelector("output").value`))
	b.search("no such text")
	require.Equal(t, "0", b.seen("main article"))
	b.search("")
	require.Equal(t, all, b.seen("main article"))
	require.Equal(t, "0", b.do(`document.querySelectorAll("main details[open]").length`))

	id := b.do(`document.querySelector("main .call > div[id]").id`)
	pick("user")
	b.do(`new Promise(done => { location.hash = "#" + ` + id + `; setTimeout(done, 200); })`)
	require.Equal(t, "true", b.do(`document.querySelector("main .call").open && document.querySelector(":target").offsetParent !== null`), "an anchor unfolds")
	require.Equal(t, "[]", b.do(`[...document.querySelectorAll("a[href^='#']")].
		map(a => decodeURIComponent(a.hash.slice(1))).filter(id => !document.getElementById(id))`))

	b.requireReadable()
	b.do("scrollTo(0, 0)")
	b.open(file)
	for _, kind := range []string{"keyDown", "keyUp"} {
		b.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}, nil)
	}
	require.Equal(t, `"skip"`, b.do("document.activeElement.className"), "the keyboard reaches the text first")
	require.Equal(t, `"An hour late, a hand too high"`, b.do("document.title"))
	require.Empty(t, b.events)
}

// TestSiteInBrowser: the first page of a site leads to each page and back, its search works, and no request leaves the disk.
func TestSiteInBrowser(t *testing.T) {
	b := newBrowser(t)
	dir := t.TempDir()
	s := commandStore(t)
	s.here("export", "--all", dir).ok(t)
	first := filepath.Join(dir, view.SiteIndex)
	b.open(first)
	links := b.do(`[...new Set([...document.querySelectorAll("main a")].map(a => a.href))].sort()`)
	require.Equal(t, 5, strings.Count(links, "file://"+dir))
	require.Equal(t, "[]", b.do(`[...document.querySelectorAll("a[href^='#']")].map(a => a.hash.slice(1)).filter(id => !document.getElementById(id))`))
	require.Equal(t, "5", b.seen("main > div .row"))
	b.search("an hour LATE")
	require.Equal(t, "1", b.seen("main > div .row"))
	require.Equal(t, "1", b.seen("h3"), "days without a hit are hidden")
	b.search("")
	b.requireReadable()
	var files []string
	require.NoError(t, json.Unmarshal([]byte(links), &files))
	for _, link := range files {
		b.open(strings.TrimPrefix(link, "file://"))
		require.Equal(t, fmt.Sprintf("%q", "file://"+first), b.do(`document.querySelector("header a").href`))
		require.NotEqual(t, "0", b.seen("main article"))
		b.requireReadable()
	}
	require.Empty(t, b.events)
}
