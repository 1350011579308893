package storage

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
)

// Unsupported implements the methods of Storage that not every storage has. They return ErrUnsupported and do
// nothing. Implementations embed it and override the methods that they have.
type Unsupported struct{}

// ListStat implements Storage.
func (Unsupported) ListStat(string, func(Item) bool) ([]StatItem, error) { return nil, ErrUnsupported }

// StatNames implements Storage.
func (Unsupported) StatNames(string, []string, func(int, Stat)) error { return ErrUnsupported }

// ReadAhead implements Storage. It does nothing.
func (Unsupported) ReadAhead([]string) {}

// Readlink implements Storage.
func (Unsupported) Readlink(string) (string, error) { return "", ErrUnsupported }

// MkdirAll implements Storage.
func (Unsupported) MkdirAll(string) error { return ErrUnsupported }

// CheckWritable implements Storage.
func (Unsupported) CheckWritable(string) error { return ErrUnsupported }

// Overwrite implements Storage.
func (Unsupported) Overwrite(string, Token, []byte) (Stat, error) { return Stat{}, ErrUnsupported }

// ReplaceIf implements Storage.
func (Unsupported) ReplaceIf(string, Token, func(io.Writer) error, Ready) (Stat, error) {
	return Stat{}, ErrUnsupported
}

// HardLink implements Storage.
func (Unsupported) HardLink(string, string) error { return ErrUnsupported }

// Move implements Storage.
func (Unsupported) Move(string, string, string) error { return ErrUnsupported }

// Writers implements Storage.
func (Unsupported) Writers(string) (WriterState, error) { return WritersUnknown, ErrUnsupported }

// CreatePending implements Storage.
func (Unsupported) CreatePending(string, bool, func(io.Writer) error) error { return ErrUnsupported }

// Pending implements Storage. It returns false.
func (Unsupported) Pending(string) bool { return false }

// Keep implements Storage.
func (Unsupported) Keep(context.Context, string, []byte) error { return ErrUnsupported }

// KeepAll implements Storage. There are no pending files.
func (Unsupported) KeepAll(context.Context) []Unkept { return nil }

// UnsupportedObject does for Object what Unsupported does for Storage.
type UnsupportedObject struct{}

// Fd implements Object.
func (UnsupportedObject) Fd() (uintptr, error) { return 0, ErrUnsupported }

// Writers implements Object.
func (UnsupportedObject) Writers() (WriterState, error) { return WritersUnknown, ErrUnsupported }

// ListStat calls the method ListStat of files, or does the same with List and Stat if that is unsupported.
func ListStat(files Storage, dir string, want func(Item) bool) ([]StatItem, error) {
	items, err := files.ListStat(dir, want)
	if !errors.Is(err, ErrUnsupported) {
		return items, err
	}
	found, err := files.List(dir)
	if err != nil {
		return nil, err
	}
	for _, item := range found {
		if !want(item) {
			continue
		}
		switch st, err := files.Stat(path.Join(dir, item.Name)); {
		case err == nil:
			items = append(items, StatItem{item.Name, st})
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return items, nil
}

// StatNames calls the method StatNames of files, or does the same with Stat if that is unsupported.
func StatNames(files Storage, dir string, names []string, f func(i int, st Stat)) error {
	if err := files.StatNames(dir, names, f); !errors.Is(err, ErrUnsupported) {
		return err
	}
	for i, name := range names {
		st, err := files.Stat(path.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		f(i, st)
	}
	return nil
}
