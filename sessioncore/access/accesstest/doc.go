// Package accesstest makes tests act as other users, which takes root.
package accesstest
