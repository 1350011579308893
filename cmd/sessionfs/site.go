package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"sessionfs/fs"
	"sessionfs/mountopts"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/names"
	reports "sessionfs/sessioncore/report"
	"sessionfs/sessioncore/secrets"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/transfer"
	"sessionfs/sessioncore/view"
	"sessionfs/source"
)

// siteSource is SOURCE for the pages of a site.
type siteSource struct {
	*sourceTree
	console *console
}

// Subject implements view.SiteSource.
func (s siteSource) Subject(ctx context.Context, info *listing.Info) (*sessioncore.Snapshot, view.Subject, error) {
	return s.subject(ctx, source.NamedSession{Dir: info.Path()})
}

// EachCost implements view.SiteSource.
func (s siteSource) EachCost(ctx context.Context, each func(reports.Row)) error {
	showProgress(s.console.err, "")
	return s.console.withProgress(ctx, func(ctx context.Context) error {
		return s.Costs(ctx, fs.Count{}, func(r reports.Row, _ string) {
			each(r)
		})
	})
}

// exportSite writes the pages of all sessions into a directory, new ones only of those that changed since a time. It
// prints their numbers, and the number of secrets in the ones that were written. If a session has no page, the
// command fails after the others.
func exportSite(ctx context.Context, o exportOptions, src *sourceTree, c *console) error {
	since, err := c.spanOf("since", o.since)
	if err != nil {
		return err
	}
	s, err := view.OpenSite(siteSource{sourceTree: src, console: c}, o.site, src.Redact)
	if err != nil {
		return refuse(exitUsage, "export: %s", err)
	}
	defer s.Close()
	s.Since = since.Begin
	found := map[string]int{} // secrets by rule
	s.Done = func(done, of int) {
		showProgress(c.err, progressText(done, of))
	}
	s.Fail = func(err error) {
		showProgress(c.err, "")
		c.sayError(err)
	}
	s.Wrote = func(snap *sessioncore.Snapshot) {
		kinds := transfer.MaskedIn(snap.File())
		if !src.Redact {
			kinds = secretsIn(ctx, snap)
		}
		for rule, n := range kinds {
			found[rule] += n
		}
	}
	sessions, err := src.Sessions(ctx)
	if err != nil {
		return err
	}
	key, err := siteKey(src)
	if err != nil {
		return err
	}
	err = s.Write(ctx, sessions, key)
	showProgress(c.err, "")
	src.sayLeftOut(c)
	if err != nil {
		return err
	}
	if src.Redact {
		c.sayMasked("masked in the pages that were written", found, "")
	} else if len(found) > 0 {
		c.sayMasked("not masked in the pages that were written", found, "; --redact masks those that are known")
	}
	_, err = fmt.Fprintf(c.out, "%d pages written, %d as they were, %d removed: %s\n",
		s.Written, s.Unchanged, s.Removed, names.Visible(o.site+"/"+view.SiteIndex))
	if err == nil && s.Failed > 0 {
		err = ended(exitFailure)
	}
	return err
}

// secretsIn counts the known secrets in a session file, by the rules that find them; nil if it cannot be read. Of a
// file with too many it counts the first ones.
func secretsIn(ctx context.Context, snap *sessioncore.Snapshot) map[string]int {
	var found secrets.Scan
	err := found.Extend(ctx, snap.File(), snap.Stat().Size)
	if err != nil && !secrets.IsTooMany(err) {
		return nil // it is not readable any more, and its page was written before
	}
	kinds := map[string]int{}
	for _, place := range found.Places {
		kinds[place.Kind]++
	}
	return kinds
}

// maxKeyed bounds the size of a file that an option names, in bytes. Those of prices may be the
// largest (package report).
const maxKeyed = 64 << 20

// siteKey returns a hash of all that pages depend on beside their sessions: the program, the
// options with the files that they name, and the time zone.
func siteKey(src *sourceTree) (string, error) {
	hash := sha256.New()
	fmt.Fprintln(hash, view.SiteFormat, version(), src.flags.options, src.Prices().Source(), sessioncore.ZoneName())
	for _, file := range []string{src.RedactRules, src.Options.Prices} {
		if file == "" || file == mountopts.NoPrices {
			continue
		}
		text, err := storage.ReadNamed(file, maxKeyed)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(hash, "%d\n%s", len(text), text)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
