// Package all registers all agents. It alone, besides their own packages, names them.
package all
