package view

import (
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"io"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
)

// This file puts the JSON Lines of a session into its page, to be downloaded without a connection. Compressed
// they are a tenth to a quarter of the page.

const (
	// maxDownload bounds the compressed lines, in bytes. They wait in memory until their size is known, and a
	// browser holds them too.
	maxDownload = 8 << 20
	// downloadShare is how many times as large the page is at least: images that the page shows are in the
	// lines of some agents once more, and would double it.
	downloadShare = 2
	// lineRead is how much of the lines is read at once, in bytes.
	lineRead = 256 << 10
)

// sizedWriter counts the bytes of a page.
type sizedWriter struct {
	io.Writer
	size int64
}

// Write implements io.Writer.
func (w *sizedWriter) Write(text []byte) (int, error) {
	n, err := w.Writer.Write(text)
	w.size += int64(n)
	return n, err
}

// errLarge ends the compression of lines that a page has no room for.
var errLarge = errors.New("too large for the page")

// packedLines keeps compressed lines, up to a limit.
type packedLines struct {
	parts      [][]byte
	size, most int64
}

// Write implements io.Writer.
func (l *packedLines) Write(text []byte) (int, error) {
	if l.size+int64(len(text)) > l.most {
		return 0, errLarge
	}
	l.parts = append(l.parts, append([]byte(nil), text...))
	l.size += int64(len(text))
	return len(text), nil
}

// download writes the compressed lines of the session, of a branch alone its header and entries, if they are
// small beside the page, which has pageSize bytes by now. The script of the page offers them.
func (p *pageWriter) download(ctx context.Context, path []sessioncore.Entry, pageSize int64) error {
	header, _, err := p.s.ReadHeader()
	if err != nil {
		return err
	}
	packed := &packedLines{most: min(maxDownload, pageSize/downloadShare*3/4)} // base64 takes four bytes for three
	zip := gzip.NewWriter(packed)
	if p.alone {
		err = p.branchLines(ctx, zip, header, path)
	} else {
		err = p.allLines(ctx, zip)
	}
	if err == nil {
		err = zip.Close()
	}
	if errors.Is(err, errLarge) {
		return nil
	}
	if err != nil {
		return err
	}
	name := "session"
	id, _ := header.Member("id").Text()
	if id != "" {
		name = names.FileName(id)
	}
	p.write(`<template id="/lines" data-name="`, escaped(name), `.jsonl">`)
	encoder := base64.NewEncoder(base64.StdEncoding, p.out)
	for _, part := range packed.parts {
		_, _ = encoder.Write(part) // an error comes back with Flush
	}
	_ = encoder.Close()
	p.write("</template>\n")
	return nil
}

// allLines writes the session file as it was indexed.
func (p *pageWriter) allLines(ctx context.Context, out io.Writer) error {
	in := io.NewSectionReader(p.s, 0, p.s.Stat().Size)
	buffer := make([]byte, lineRead)
	for {
		n, err := in.Read(buffer)
		if n > 0 {
			_, err := out.Write(buffer[:n])
			if err != nil {
				return err
			}
		}
		if err == io.EOF {
			return ctx.Err()
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// branchLines writes the header and the entries of a branch.
func (p *pageWriter) branchLines(ctx context.Context, out io.Writer, header rawjson.Value, path []sessioncore.Entry) error {
	_, err := out.Write(append(header, '\n'))
	if err != nil {
		return err
	}
	for _, e := range path {
		text, err := p.s.EntryText(e)
		if err != nil {
			return err
		}
		_, err = out.Write(append(text, '\n'))
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}
