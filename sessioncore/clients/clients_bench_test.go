package clients

import (
	"fmt"
	"testing"

	"sessionfs/sessioncore/internal/clienttest"
)

// BenchmarkClients measures On when no client runs, when one runs on another session beside 20 breadcrumbs, and for a
// session that its client has left.
func BenchmarkClients(b *testing.B) {
	for _, name := range []string{"idle", "elsewhere", "left"} {
		b.Run(name, func(b *testing.B) {
			a := newAgentDir(b)
			for i := range 20 {
				a.Crumb(fmt.Sprintf("pts-%d", 1000+i), fmt.Sprintf("p/x%d.jsonl", i))
			}
			if name == "left" {
				a.Crumb("pts-2000", "p/s.jsonl")
			}
			if name != "idle" {
				clienttest.Imitation{Files: []string{a.Database("agent.db"), a.Database("history.db"), a.Database("models.db")}}.Start(b)
			}
			for b.Loop() {
				a.nobodyOn("p/s.jsonl")
			}
		})
	}
}
