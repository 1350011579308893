// Package spill keeps long texts: in memory while a budget has room, else in nameless temporary
// files, which only this process can open and which vanish with it.
package spill
