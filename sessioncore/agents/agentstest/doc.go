// Package agentstest tests converters of other agents' sessions: each state of a file that grows, and what was made of it.
package agentstest
