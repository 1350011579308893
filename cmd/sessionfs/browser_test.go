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

// do runs the body of a function behind testdata/browser/lib.js, and returns the JSON of its value. An exception fails the test.
func (b *browser) do(body string) string {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails any
	}
	expression := "(async () => {" + string(readFile(b.t, "testdata/browser/lib.js")) + body + "})()"
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &r)
	require.Nil(b.t, r.ExceptionDetails, body)
	return string(r.Result.Value)
}

// requireReadable holds a page's colours against WCAG AA, in light and dark, and looks for text beside a narrow screen.
func (b *browser) requireReadable() {
	b.t.Helper()
	for _, scheme := range []string{"dark", "light"} {
		b.call("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]string{"name": "prefers-color-scheme", "value": scheme}}}, nil)
		require.Equal(b.t, "[]", b.do("return faint()"), scheme)
	}
	for _, width := range []int{390, 800, 1440} {
		b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
		require.Equal(b.t, "true", b.do("return document.documentElement.scrollWidth <= innerWidth"), width)
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
	entries := b.do(`is(0, shown("form")); is("e657ffb9", one("main article:nth-of-type(5)").id); return shown("main article")`)
	b.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": false}, nil)

	b.open(file)
	b.do("const entries = " + entries + ";\n" + string(readFile(t, "testdata/browser/page.js")))
	b.requireReadable()
	b.do("scrollTo(0, 0)")
	b.open(file)
	for _, kind := range []string{"keyDown", "keyUp"} {
		b.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}, nil)
	}
	b.do(`is("skip", document.activeElement.className); is("An hour late, a hand too high", document.title)`) // the keyboard reaches the text first
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
	links := b.do(`return [...new Set(all("main a").map(a => a.href))].sort()`)
	require.Equal(t, 5, strings.Count(links, "file://"+dir))
	b.do(string(readFile(t, "testdata/browser/site.js")))
	b.requireReadable()
	b.do(`is(one("figure").getBoundingClientRect().left, one("figure svg").getBoundingClientRect().left)`) // of a wide window
	var files []string
	require.NoError(t, json.Unmarshal([]byte(links), &files))
	for _, link := range files {
		b.open(strings.TrimPrefix(link, "file://"))
		b.do(fmt.Sprintf(`is("file://%s", one("header a").href); not(0, shown("main article"))`, first))
		b.requireReadable()
	}
	require.Empty(t, b.events)
}
