package layout

import (
	"fmt"

	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/search"
)

// Names in search/, and in the directory of a query.
const (
	Search       = "search"
	HitsTable    = "results.tsv"
	HitsSessions = "sessions"
)

// HitName returns the name of a link to a hit: its number in the table, what it is, and the name of its file in entries/.
func HitName(number int, h *search.Hit) string {
	digits := fmt.Sprintf("%04d", number)
	if h.Entry == "" {
		return digits + "-" + h.What
	}
	label := cutPathLabel(h.What, maxFileName-len(digits)-len(h.Entry)-len("--"+EntrySuffix))
	return digits + "-" + label + "-" + h.Entry + EntrySuffix
}

// HitSessions returns the first hit of each session among hits, in their order.
func HitSessions(hits []search.Hit) (first []*search.Hit) {
	seen := map[string]bool{}
	for i := range hits {
		if h := &hits[i]; !seen[h.File] {
			seen[h.File] = true
			first = append(first, h)
		}
	}
	return first
}

// HitSessionName returns the name of a link to a session that has hits.
func HitSessionName(number int, h *search.Hit) string {
	return names.FileName(fmt.Sprintf("%04d-%s", number, h.Session))
}
