//go:build !amd64

package rawjson

func (s *Scanner) skipBlocks(b []byte, i int) (int, Status) { return s.skipBlocksInWords(b, i) }
