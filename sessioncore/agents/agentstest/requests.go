package agentstest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/message"
	"sessionfs/sessioncore/storage"
)

// Requests checks each case of the page testdata/requests.txt: the session of an agent's file has the title and the requests
// of a person in the lines behind it, and the same ones at each length.
func (k Kit) Requests(t *testing.T) {
	sessiontest.Page(t, "testdata/requests.txt", func(t *testing.T, name, file, want string) {
		t.Run(name, func(t *testing.T) {
			file += "\n"
			k.Growth(t, "s.jsonl", file)
			h := k.with(t, "s.jsonl", file)
			session := h.Sessions("")[0]
			text := h.Read(session)
			require.Equal(t, want, requestsIn(text))
			require.Equal(t, titleIn(text), h.listedTitle(session), "in a list")
		})
	})
}

// requestsIn returns the title of a session, and the words of each request in it, a line each.
func requestsIn(session string) string {
	lines := fmt.Sprintf("title %q\n", titleIn(session))
	for line := range strings.Lines(session) {
		entry := rawjson.Value(strings.TrimSpace(line))
		typ := entry.Member("type")
		if typ.Is("session") {
			continue
		}
		m := message.Read(entry)
		if typ.Is("message") {
			m = message.Read(entry.Member("message"))
		}
		words, isRequest := message.Request(&m)
		if !isRequest {
			continue
		}
		text, _ := message.FirstText(words).Text()
		lines += fmt.Sprintf("%q\n", text)
	}
	return lines
}

// titleIn returns the title in the header of a session.
func titleIn(session string) string {
	header, _, _ := strings.Cut(session, "\n")
	title, _ := rawjson.Value(header).Member("title").Text()
	return title
}

// listedTitle returns the title that a list has of a session, without its whole file.
func (h *Home) listedTitle(session string) string {
	obj, err := h.Open(session)
	require.NoError(h.T, err)
	defer obj.Close()
	raw, _ := obj.(interface {
		Beginning() (prefix []byte, st storage.Stat, size int64, err error)
	})
	prefix, _, _, err := raw.Beginning()
	require.NoError(h.T, err)
	return titleIn(string(prefix))
}
