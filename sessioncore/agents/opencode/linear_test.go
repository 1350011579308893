package opencode

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/agents/agentstest"
	"sessionfs/sessioncore/internal/sessiontest"
)

// TestManyParts: the work for a prompt or a summary grows with it, and not with its square, however many parts it has.
func TestManyParts(t *testing.T) {
	sessiontest.NotUnderRace(t)
	for _, of := range []struct{ role, more string }{{"user", ""}, {"assistant", `,"summary":true`}} {
		t.Run(of.role, func(t *testing.T) {
			work := func(n int) int64 {
				d := newDatabase(t, tables)
				d.session("ses_1", "Herons", 9)
				info := fmt.Sprintf(`{"role":%q,"time":{"created":1001}%s}`, of.role, of.more)
				d.insert("message", map[string]any{"id": "msg_1", "session_id": "ses_1", "time_created": 1001, "data": info})
				require.NoError(t, d.conn.Exec("BEGIN"))
				for i := range n {
					d.insert("part", map[string]any{
						"id":         fmt.Sprintf("prt_%06d", i),
						"message_id": "msg_1",
						"session_id": "ses_1",
						"data":       `{"type":"text","text":"heron"}`,
					})
				}
				require.NoError(t, d.conn.Exec("COMMIT"))
				name := "-srv-pond/ses_1.jsonl"
				home := newHome(agents.Source{Files: sessiontest.OpenDir(t, d.Dir)}, "opencode", "opencode")
				raw, err := home.Open(name)
				require.NoError(t, err)
				defer raw.Close()
				st, err := raw.Stat()
				require.NoError(t, err)
				text := make([]byte, st.Size)
				_, err = raw.ReadAt(text, 0)
				require.NoError(t, err)
				newConverter := func() *agents.Builder { return home.Converter(home.FactsAbout(name), raw) }
				return agentstest.ConvertWork(t, newConverter, string(text)).Sum()
			}
			once := work(2000)
			more := work(4 * 2000)
			const buffers = 16 << 20 // of long lines
			require.Less(t, more, 8*once+buffers, "its square is 16 times as much; memory grows in steps")
		})
	}
}
