package fs

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"sessionfs/mountopts"
	"sessionfs/nodes"
	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/report"
	"sessionfs/sessioncore/secrets"
)

// tree is the root directory of a mount and the place that it shows.
type tree struct {
	*place
	root *nodes.RootDir
}

// openTree opens SOURCE and makes the root directory of a mount of it. Callers must close the tree.
func openTree(o mountopts.Options, log *slog.Logger) (*tree, error) {
	if o.Redact { // written text would have to be read back
		o.ReadOnly = true
	}
	prices, err := openPrices(o.Prices)
	if err != nil {
		return nil, err
	}
	var rules *secrets.Rules
	if o.Redact { // parsing them takes 3 MB
		rules, err = secrets.Read(o.RedactRules)
		if err != nil {
			return nil, fmt.Errorf("%w redact-rules: %w", ErrOption, err)
		}
	}
	limit := o.Memory
	if limit == 0 {
		limit = budget.Default
	}
	memory := budget.New(limit)
	memory.LimitCollector(sessioncore.TakeReadingPeak)
	opener := &opener{
		Options: o,
		rules:   rules,
		log:     log,
		memory:  memory,
	}
	p, err := opener.open("")
	if err != nil {
		return nil, fmt.Errorf("cannot open the agent directory: %w", err)
	}
	return &tree{place: p, root: newRoot(p, prices)}, nil
}

// openPrices returns the prices of the option prices: the list prices for "", and the zero Prices for none.
func openPrices(option string) (report.Prices, error) {
	switch option {
	case "":
		return report.ListPrices, nil
	case mountopts.NoPrices:
		return report.Prices{}, nil
	}
	prices, err := report.OpenPrices(option)
	if err != nil {
		return prices, fmt.Errorf("%w prices: %w", ErrOption, err)
	}
	return prices, nil
}

// newRoot returns the root directory of a place. The Views of its parts and of their archives get it
// as their Root.
func newRoot(p *place, prices report.Prices) *nodes.RootDir {
	view := p.view
	view.Prices = prices
	for _, part := range slices.Concat(p.parts, []*place{p}) {
		if part != p {
			part.view.Root = view
		}
		if part.archive != nil {
			part.archive.view.Root = view
		}
	}
	root := nodes.NewRootDir(view, p.top, p.rootNames)
	root.Space = p.space
	return root
}

// rootNames returns the names in the root of a mount of the place.
func (p *place) rootNames() []nodes.Name {
	view := p.view
	list := p.view.Listing
	sessions := nodes.SourceName(layout.Sessions, p.listed(), p.store)
	if p.parts != nil {
		sessions = nodes.AgentsName(p.files, view.Agents...)
	}
	byID := layout.ByID{Listing: list}
	if view.Archive != nil {
		byID.Archive = view.Archive.Listing
	}
	names := []nodes.Name{
		nodes.LinksName("by-cwd", layout.Nested{Listing: list, Tree: listing.ByCwd, Dir: "/"}, ""),
		nodes.LinksName("by-date", layout.Nested{Listing: list, Tree: listing.ByDate, Dir: "/"}, ""),
		nodes.ByFileName,
		nodes.LinksName("by-id", byID, "by-id"),
		nodes.IndexName,
		nodes.LastErrorName,
		nodes.ReadmeName,
		nodes.NewSessionName,
		nodes.LinksName("recent", layout.Recent{Listing: list}, ""),
		nodes.SearchName,
		sessions,
		nodes.OverAllName("lost.tsv", report.NewLost(p.store).Table),
		nodes.OverAllName("usage.jsonl", report.NewCosts(p.billed(), view.Prices).Lines),
	}
	if view.Redacted {
		return names
	}
	names = append(names, p.kind.names()...)
	prompts := p.kind.prompts()
	if prompts != nil {
		names = append(names, nodes.HistoryName(sync.OnceValue(prompts)))
	}
	return names
}

// temporaryDir returns the directory for unpacked archives: /tmp is often in memory.
func temporaryDir() string {
	d := os.Getenv("TMPDIR")
	if filepath.IsAbs(d) {
		return d
	}
	return "/var/tmp"
}
