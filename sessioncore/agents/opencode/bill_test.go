package opencode

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

// billedHome returns the home of a database, and its sessions as a mount shows them.
func (d *database) billedHome() (*home, *agents.Files) {
	t := d.T.(*testing.T)
	h := d.home()
	return h, agents.NewFiles(agents.Shown{Files: h, Format: h}, h, nil, t.TempDir())
}

// answer is what a bill needs of an answer.
type answer struct {
	ID        string
	Timestamp string
	Message   struct {
		Role, Model string
		Usage       json.RawMessage
	}
}

// answersIn returns the answers in a session from a time on, each as one text.
func answersIn(t *testing.T, files storage.Files, name, from string) (all []string) {
	for line := range strings.Lines(storagetest.Read(t, files, name)) {
		var entry answer
		_ = json.Unmarshal([]byte(line), &entry) // a problem is no entry
		m := &entry.Message
		if m.Role == "assistant" && entry.Timestamp >= from {
			all = append(all, fmt.Sprint(entry.ID, entry.Timestamp, m.Model, string(m.Usage)))
		}
	}
	return all
}

// begunAt returns the time of a session's header.
func begunAt(t *testing.T, files storage.Files, name string) string {
	first, _, _ := strings.Cut(storagetest.Read(t, files, name), "\n")
	var a answer
	require.NoError(t, json.Unmarshal([]byte(first), &a))
	return a.Timestamp
}

// tokens are those of an answer.
const tokens = `"modelID":"fake-1","cost":0.5,"tokens":{"input":7,"output":2,"reasoning":1,"cache":{"read":3,"write":4}}`

// commandPart is the part of a prompt that a command of the person begins with.
const commandPart = `{"type":"text","synthetic":true,"text":"` + executed + `"}`

// handedPart returns a part with the entry that its message was in another session.
func handedPart(id, timestamp string) string {
	return fmt.Sprintf(`{"type":"text","text":"Two","metadata":{"handedOver":{"id":%q,"timestamp":%q}}}`, id, timestamp)
}

// answer writes an answer with members of its JSON and a part, created at a time in ms.
func (d *database) answer(session, id string, at int, members, part string) {
	info := fmt.Sprintf(`{"role":"assistant","time":{"created":%d},%s}`, at, members)
	d.info(session, id, at, info)
	d.part(session, id, "prt_"+id, part)
}

// TestBill: the bill of a session has its answers with their ids, times, models and usages, as its text has them.
func TestBill(t *testing.T) {
	d := newDatabase(t, tables)
	d.insertSamples()
	d.session("ses_1", "Herons", 9)
	d.message("ses_1", "msg_1", 1001, "user", "Count the herons")
	d.answer("ses_1", "msg_2", 1002, tokens, `{"type":"tool","tool":"task","callID":"c","state":{"status":"completed","metadata":{"usage":{"input":5}}}}`)
	d.answer("ses_1", "msg_3", 1003, tokens, handedPart("aa", "2026-01-01T00:00:00.000Z"))
	d.answer("ses_1", "msg_4", 1004, `"modelID":"fake-1"`, handedPart("bb", "2026-01-01T00:00:00.000Z"))
	d.message("ses_1", "msg_5", 1005, "user", "x")
	d.part("ses_1", "msg_5", "prt_msg_5", commandPart)
	d.answer("ses_1", "msg_6", 1006, `"modelID":"fake-1"`, `{"type":"tool","tool":"bash","state":{"status":"completed","input":{"command":"ls"}}}`)
	d.answer("ses_1", "msg_7", 1007, tokens, `{"type":"tool","tool":"bash","state":{"status":"completed","input":{"command":"ls"}}}`)
	_, files := d.billedHome()
	found := 0
	for _, name := range d.Sessions("") {
		from := begunAt(t, files, name)
		want := answersIn(t, files, name, from)
		require.Equal(t, want, answersIn(t, files.Facts(), name, from), name)
		found += len(want)
	}
	require.Greater(t, found, 10)
	name := "-srv-pond/ses_1.jsonl"
	want := []string{"msg_2", "msg_3", "bb", "msg_7"}
	got := answersIn(t, files, name, "")
	require.Len(t, got, len(want))
	for i, id := range want {
		require.Regexp(t, "^"+id+"(1970|2026)", got[i], "its time follows")
	}
	require.NotContains(t, storagetest.Read(t, files, name), `"usage":{"input":5}`, "no client reports a bill in a result")
}

// TestCopies: a fork's copies of answers are shown, and are no answers of its bill.
func TestCopies(t *testing.T) {
	d := newDatabase(t, tables)
	d.session("ses_1", "Herons (fork #1)", 9)
	d.answer("ses_1", "msg_1", 900, tokens, `{"type":"text","text":"Two herons"}`)
	d.answer("ses_1", "msg_2", 901, tokens+`,"summary":true`, `{"type":"text","text":"So far"}`)
	d.answer("ses_1", "msg_3", 1002, tokens, `{"type":"text","text":"Three herons"}`)
	d.answer("ses_1", "msg_4", 902, `"modelID":"fake-1"`, handedPart("aa", "1970-01-01T00:00:00.500Z"))
	_, files := d.billedHome()
	name := "-srv-pond/ses_1.jsonl"
	require.Len(t, answersIn(t, files, name, ""), 3)
	billed := answersIn(t, files.Facts(), name, "")
	require.Len(t, billed, 2)
	require.Contains(t, billed[0], "aa1970", "it counts once by its id")
	require.Contains(t, billed[1], "msg_3")
}

// ledger is an agents.Ledger of the ids of answers with their tokens.
type ledger []string

func (l *ledger) Begin() { *l = nil }

func (l *ledger) Charge(of *agents.Charge) {
	*l = append(*l, fmt.Sprint(of.ID, " ", of.Usage.Total, " ", string(of.Cost)))
}

// chargesOf returns the charges of a session, and whether the files know all of them.
func chargesOf(t *testing.T, files storage.Files, name string) (charges ledger, isWhole bool) {
	obj := storagetest.Open(t, files, name)
	isWhole, err := obj.(agents.Charging).Charge(t.Context(), &charges)
	require.NoError(t, err)
	return charges, isWhole
}

// TestCharge: the rows alone tell the charges of a session, with the tokens of summaries.
func TestCharge(t *testing.T) {
	d := newDatabase(t, tables)
	d.session("ses_1", "Herons", 9)
	d.answer("ses_1", "msg_1", 1001, tokens+`,"summary":true`, `{"type":"text","text":"So far"}`)
	d.answer("ses_1", "msg_2", 1002, tokens, `{"type":"text","text":"Two herons"}`)
	d.answer("ses_1", "msg_3", 1003, tokens+`,"summary":true`, `{"type":"text","text":"So far"}`)
	h, files := d.billedHome()
	name := "-srv-pond/ses_1.jsonl"
	charge := func(files storage.Files) (ledger, bool) { return chargesOf(t, files, name) }
	want := ledger{`msg_2 51 "cost":{"total":0.5}`}
	got, isWhole := charge(h.Bill())
	require.True(t, isWhole)
	require.Equal(t, want, got)
	got, isWhole = charge(files.Facts())
	require.True(t, isWhole)
	require.Equal(t, want, got)
	require.Empty(t, h.sizes, "no text is made")
	d.answer("ses_1", "msg_4", 1004, `"modelID":"fake-1"`, `{"type":"text","text":"None"}`)
	d.session("ses_1", "Herons", 10)
	got, isWhole = charge(h.Bill())
	require.True(t, isWhole)
	require.Equal(t, append(want, "msg_4 0 "), got)
	require.Empty(t, h.sizes)
}

// unlisted is a home without a form for a bill.
type unlisted struct{ storage.Files }

// TestRowsAsText: the charges that rows tell, of sessions read one by one and ahead, are those of the texts.
func TestRowsAsText(t *testing.T) {
	d := newDatabase(t, tables)
	d.insertSamples()
	// Summaries before the first answer and behind the last one, an answer without tokens, and one with a cost alone.
	d.message("ses_1", "msg_1", 1001, "user", "Count the herons")
	d.answer("ses_1", "msg_2", 1002, tokens+`,"summary":true`, `{"type":"text","text":"So far"}`)
	d.answer("ses_1", "msg_3", 1003, tokens, `{"type":"text","text":"Two herons"}`)
	d.answer("ses_1", "msg_4", 1004, `"modelID":"fake-1"`, `{"type":"text","text":"None"}`)
	d.answer("ses_1", "msg_5", 1005, `"modelID":"fake-1","cost":2`, `{"type":"tool","state":{"input":{"command":"ls"}}}`)
	d.answer("ses_1", "msg_6", 1006, tokens+`,"summary":true`, `{"type":"text","text":"So far"}`)
	// A fork with copies, which are older than the session.
	d.answer("ses_copy", "msg_c1", 900, `"modelID":"fake-1"`, `{"type":"text","text":"None"}`)
	d.answer("ses_copy", "msg_c2", 901, tokens, `{"type":"text","text":"Two herons"}`)
	d.answer("ses_copy", "msg_c4", 902, tokens+`,"summary":true`, `{"type":"text","text":"So far"}`)
	d.answer("ses_copy", "msg_c3", 1001, tokens, `{"type":"text","text":"Three herons"}`)
	// A command of the person, and an answer that was handed over: only the text tells.
	d.message("ses_command", "msg_d1", 1001, "user", "x")
	d.part("ses_command", "msg_d1", "prt_msg_d1", commandPart)
	d.answer("ses_command", "msg_d2", 1002, `"modelID":"fake-1"`, `{"type":"tool","state":{"status":"completed","input":{"command":"ls"}}}`)
	d.answer("ses_handed", "msg_h1", 1001, `"modelID":"fake-1"`, handedPart("aa", "2026-01-01T00:00:00.000Z"))
	// A row with damaged JSON.
	d.answer("ses_old", "msg_o1", 1001, tokens[:len(tokens)-1]+`}`, `{"type":"text"}`)
	d.info("ses_old", "msg_o2", 1002, `{"role":"assistant"`)
	// Removed answers, with tokens and without.
	removed := func(session, members string) {
		info := fmt.Sprintf(`{"info":{"id":"msg_%s","role":"assistant","time":{"created":1003},%s}}`, session, members)
		d.event(session, 1, "message.updated.1", info)
		d.event(session, 2, "message.removed.1", `{"messageID":"msg_`+session+`"}`)
	}
	d.answer("ses_undone", "msg_u1", 1002, tokens, `{"type":"text","text":"Two herons"}`)
	removed("ses_undone", tokens)
	d.answer("ses_unused", "msg_v1", 1002, tokens, `{"type":"text","text":"Two herons"}`)
	removed("ses_unused", `"modelID":"fake-1"`)
	for _, id := range []string{"ses_1", "ses_copy", "ses_command", "ses_handed", "ses_old", "ses_undone", "ses_unused"} {
		d.session(id, "Herons", 9)
	}
	h, rows := d.billedHome()
	texts := agents.NewFiles(unlisted{h}, h, nil, t.TempDir()).Facts()
	facts := rows.Facts()
	names := d.Sessions("")
	partial := map[string]bool{}
	for range 2 {
		for _, name := range names {
			want, isWhole := chargesOf(t, texts, name)
			require.True(t, isWhole, name)
			got, isWhole := chargesOf(t, facts, name)
			require.True(t, isWhole, name)
			require.Equal(t, want, got, name)
			_, isOfRows := chargesOf(t, h.Bill(), name)
			partial[path.Base(name)] = !isOfRows
		}
		facts.ReadAhead(append(slices.Clone(names), "-srv-pond/ses_none.jsonl"))
	}
	for id, isPartial := range map[string]bool{
		"1":       false,
		"copy":    false,
		"command": true,
		"handed":  true,
		"old":     false,
		"undone":  false,
		"unused":  true,
	} {
		require.Equal(t, isPartial, partial["ses_"+id+ending], id)
	}
}

// TestReadAhead: charges that were read ahead are given once, and are those of the state in which the session is opened.
func TestReadAhead(t *testing.T) {
	d := newDatabase(t, tables)
	d.answer("ses_1", "msg_1", 1001, tokens, `{"type":"text","text":"Two herons"}`)
	d.session("ses_1", "Herons", 9)
	h, _ := d.billedHome()
	name := "-srv-pond/ses_1.jsonl"
	_, err := h.sessions()
	require.NoError(t, err)
	b := h.Bill().(*bill)
	b.ReadAhead([]string{name, "-srv-pond/ses_none.jsonl"})
	require.Len(t, b.ahead, 1)
	answers := func() int {
		got, isWhole := chargesOf(t, b, name)
		require.True(t, isWhole)
		return len(got)
	}
	require.Equal(t, 1, answers())
	require.Empty(t, b.ahead)
	require.Equal(t, 1, answers())
	b.ReadAhead([]string{name})
	d.answer("ses_1", "msg_2", 1002, tokens, `{"type":"text","text":"Three herons"}`)
	d.session("ses_1", "Herons", 10)
	_, err = h.sessions()
	require.NoError(t, err)
	require.Equal(t, 2, answers())
}
