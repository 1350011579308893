// Package mcp is the door of agents: it serves tools over a stream by the Model Context Protocol, with
// the official SDK.
//
// A [Tool] has a table of parameters and a function that writes a text, as a command does. The package
// does the rest. It checks arguments against the table, so that a function gets texts and whole numbers
// within their bounds and nothing else. It gives each answer the notice that found text is data. It cuts
// a text into answers of at most [MaxAnswer] bytes, with a cursor for the next one. It runs a
// few calls at once, ends a call that the client cancels, and ends when the client hangs up.
//
// It knows nothing of sessions. cmd/sessionfs has the tools.
package mcp
