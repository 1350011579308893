package report

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/agents/agentstest"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/ledger"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/storage"
)

// billedLines are records of Claude Code with all that a usage may have.
var billedLines = []string{
	answerOf("a", "-01T07:00:00.000Z", `"input_tokens":1,"output_tokens":2,"cache_read_input_tokens":3,"cache_creation_input_tokens":9,`+
		`"cache_creation":{"ephemeral_1h_input_tokens":7,"ephemeral_5m_input_tokens":2},"speed":"fast"`),
	answerOf("b", "-01T23:59:59.000Z", `"input_tokens":5`),
	strings.Replace(answerOf("b", "-03T00:00:01.000Z", `"input_tokens":6`), `"uuid":"b"`, `"uuid":"b2"`, 1),
	answerOf("c", "-04T07:00:00.000Z", `"input_tokens":0`),
	`{"type":"cost-state","sessionId":"s","totalCostUSD":1.5,"modelUsage":{"model-a":{"costUSD":1},"model-b":{"costUSD":0.25}}}`,
	answerOf("d", "-05T07:00:00.000Z", `"iterations":[{"type":"advisor_message","model":"model-b","input_tokens":70},`+
		`{"type":"compaction","output_tokens":5}]`),
	strings.Replace(answerOf("e", "-06T07:00:00.000Z", `"output_tokens":1`), `"model":"model-a",`, "", 1),
	`{"type":"cost-state","sessionId":"s","totalCostUSD":2,"modelUsage":{}}`,
	answerOf("f", "-07T07:00:00.000Z", ``),
}

// answerOf returns a record of Claude Code with an answer of a day in January.
func answerOf(id, day, usage string) string {
	return fmt.Sprintf(`{"parentUuid":null,"sessionId":"s","cwd":"/w","type":"assistant","message":{"id":%[1]q,"role":"assistant",`+
		`"model":"model-a","content":[{"type":"text","text":"x"}],"usage":{%[3]s}},"uuid":%[1]q,"timestamp":"2026-01%[2]s"}`, id, day, usage)
}

// TestCharges: the costs that are made of a session's charges are those of its text.
func TestCharges(t *testing.T) {
	data := sessiontest.TestData(t)
	homes := map[string]*agentstest.Home{}
	for _, agent := range []string{"claude", "codex"} {
		dir := filepath.Join(data, "demo-"+agent)
		homes["demo "+agent] = agentstest.Open(t, agent, dir, sessiontest.OpenDir(t, dir))
	}
	made := agentstest.New(t, "claude")
	made.Put("projects/-w/s.jsonl", billedLines...)
	homes["made"] = made
	prices := Prices{}
	for name, h := range homes {
		t.Run(name, func(t *testing.T) {
			store := sessioncore.NewStore(h.Facts())
			t.Cleanup(store.Close)
			withBook := NewCosts(store, prices).Recall(ledger.Open(filepath.Join(t.TempDir(), "charges"), ""))
			for _, session := range h.Sessions("") {
				file, err := store.Storage().Open(session)
				require.NoError(t, err)
				info := listing.NewInfo(session, storage.Stat{}, "")
				got, isWhole, err := NewCosts(store, prices).chargesOf(t.Context(), info, file, prices)
				require.NoError(t, err)
				require.True(t, isWhole)
				require.NoError(t, file.Close())
				want, err := costsOf(t.Context(), sessiontest.Snapshot(t, store.Session(session)), prices)
				require.NoError(t, err)
				require.NotEmpty(t, want.records)
				require.Equal(t, numbered(want), numbered(got))
				kept, isWhole := throughBook(t, withBook, session, prices)
				require.True(t, isWhole)
				require.Equal(t, numbered(want), numbered(kept))
			}
		})
	}
}

// TestUsageOfCharge: a charge is the usage that the answer's entry has.
func TestUsageOfCharge(t *testing.T) {
	for _, of := range []agents.Charge{
		{Usage: agents.Usage{Input: 1, Total: 1, Premium: 0.33}},
		{Usage: agents.Usage{Input: 1, Total: 1}, Cost: []byte(`"cost":{"total":0}`)}, // unrecorded
		{Usage: agents.Usage{Input: 1, Total: 1}, Cost: []byte(`"cost":{"input":0.5,"total":0.5}`)},
		{Usage: agents.Usage{Input: 1 << 60, CacheWrite: 3, CacheWrite1h: 5, Total: 1 << 61, Ended: 1 << 60}},
		{Model: rawjson.Value(`""`), Usage: agents.Usage{Input: 1, Total: 1}, Calls: []byte(`{"model":"b","input":1},{"model":7}`)},
	} {
		of.ID = "00000001"
		of.At = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
		of.Provider = "maker"
		if of.Model == nil {
			of.Model = rawjson.Value(`"model-a"`)
		}
		usage := of.Usage.AppendMembers(nil)
		if len(of.Cost) > 0 {
			usage = append(append(of.Cost[:len(of.Cost):len(of.Cost)], ','), usage...)
		}
		entry := fmt.Sprintf(`{"type":"message","id":%q,"parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"assistant",`+
			`"content":[],"provider":%q,"model":%s,"usage":{%s,"modelCalls":[%s]}},"origin":{"line":1}}`+"\n",
			of.ID, of.Provider, of.Model, usage, of.Calls)
		want, err := costsOf(t.Context(), snapshotOf(t, entry), Prices{})
		require.NoError(t, err)
		var got charges
		got.Charge(&of)
		require.Equal(t, want.records, got.records, entry)
	}
}

// numbered returns costs with the numbers of the answers in place of those of all entries.
func numbered(costs sessionCosts) sessionCosts {
	at := -1
	last := sessioncore.NoEntry
	for i := range costs.records {
		r := &costs.records[i]
		if r.entry != last {
			at++
			last = r.entry
		}
		r.entry = sessioncore.Entry(at)
	}
	return costs
}

// throughBook returns the costs of a session that a book has, or is read with it, the second time.
func throughBook(t *testing.T, costs *Costs, session string, prices Prices) (kept sessionCosts, isWhole bool) {
	st, err := costs.store.Storage().Stat(session)
	require.NoError(t, err)
	long := storage.Stat{Token: storage.Token{Device: 1, Inode: st.Inode, Changed: 1}} // which is settled
	info := listing.NewInfo(session, long, "")
	for range 2 {
		file, err := costs.store.Storage().Open(session)
		require.NoError(t, err)
		kept, isWhole, err = costs.chargesOf(t.Context(), info, file, prices)
		require.NoError(t, err)
		require.NoError(t, file.Close())
	}
	return kept, isWhole
}

// TestLongCharges: a long session is billed by its charges once. From the second time on, as it may grow, it is
// converted, so that its growth is read alone.
func TestLongCharges(t *testing.T) {
	h := agentstest.New(t, "claude")
	var lines []string
	for n := range 20_000 {
		at := time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC).Format("-02T15:04:05.000Z")
		lines = append(lines, answerOf(fmt.Sprint("a", n), at, `"input_tokens":1`))
	}
	h.Put("projects/-w/s.jsonl", lines...)
	store := sessioncore.NewStore(h.Facts())
	t.Cleanup(store.Close)
	for n, isBilled := range []bool{true, false, false} {
		session := h.Sessions("")[0]
		file, err := store.Storage().Open(session)
		require.NoError(t, err)
		info := listing.NewInfo(session, storage.Stat{}, "")
		got, isWhole, err := NewCosts(store, Prices{}).chargesOf(t.Context(), info, file, Prices{})
		require.NoError(t, err)
		require.Equal(t, isBilled, isWhole, "%d", n)
		require.Equal(t, isBilled, len(got.records) == len(lines))
		require.NoError(t, file.Close())
	}
}
