// Command shapes counts places where code puts several steps into one, and fails above a bound. Readers
// read such places twice. Tests, testdata, scripts and packages made for tests are left out.
//
//	go run ./scripts/shapes          the sums and their bounds
//	go run ./scripts/shapes SHAPE    the places of a shape
//
// A change that removes places lowers the bound.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	maxLines      = 60 // of a function
	maxParameters = 5
	minKeyed      = 4 // number of fields from which on a literal has keys
)

// shape is a kind of place.
type shape struct {
	name, meaning string
	bound         int
}

var shapes = []shape{
	{name: "effect", meaning: "an assignment to an outer variable, other than err, inside an if", bound: 0},
	{name: "pair", meaning: "two assignments in one", bound: 0},
	{name: "triple", meaning: "three assignments or more in one", bound: 0},
	{name: "switch", meaning: "an assignment before a switch without a value", bound: 0},
	{name: "unkeyed", meaning: "a struct literal of four or more fields without keys", bound: 4},
	{name: "loop", meaning: "a loop of two variables, or with a beginning and no condition", bound: 0},
	{name: "or", meaning: "cmp.Or: all its arguments run, whichever counts", bound: 7},
	{name: "long", meaning: "a function of more than 60 lines", bound: 0},
	{name: "parameters", meaning: "a function of more than five parameters", bound: 3},
	{name: "hidden", meaning: "a type assertion to an interface without a name", bound: 0},
}

func main() {
	log.SetFlags(0)
	found := map[string][]token.Position{}
	err := filepath.WalkDir(".", func(path string, item fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case item.IsDir() && isLeftOut(path, item.Name()):
			return filepath.SkipDir
		case item.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		return count(path, found)
	})
	if err != nil {
		log.Fatal(err)
	}
	if len(os.Args) > 1 {
		for _, at := range found[os.Args[1]] {
			fmt.Println(at)
		}
		return
	}
	isOver := false
	for _, s := range shapes {
		mark := ""
		if len(found[s.name]) > s.bound {
			mark = "  OVER"
			isOver = true
		}
		fmt.Printf("%-12s %-68s %5d  of at most %d%s\n", s.name, s.meaning, len(found[s.name]), s.bound, mark)
	}
	if isOver {
		log.Fatal("Write one step a line; 'go run ./scripts/shapes SHAPE' prints the places.")
	}
}

// isLeftOut reports whether a directory has no code of the product.
func isLeftOut(path, name string) bool {
	if path == "." {
		return false
	}
	return name[0] == '.' || strings.HasSuffix(name, "test") || name == "testdata" || name == "scripts"
}

// count adds the places of a file to found, by the names of their shapes.
func count(path string, found map[string][]token.Position) error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, 0)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		for _, name := range shapesOf(n, files) {
			found[name] = append(found[name], files.Position(n.Pos()))
		}
		return true
	})
	return nil
}

// shapesOf returns the shapes that begin at a node.
func shapesOf(n ast.Node, files *token.FileSet) (names []string) {
	add := func(name string, is bool) {
		if is {
			names = append(names, name)
		}
	}
	switch x := n.(type) {
	case *ast.FuncDecl:
		begin := files.Position(x.Pos()).Line
		end := files.Position(x.End()).Line
		add("long", end-begin >= maxLines)
		add("parameters", x.Type.Params.NumFields() > maxParameters)
	case *ast.IfStmt:
		add("effect", hasEffect(x.Init))
	case *ast.AssignStmt:
		isParallel := len(x.Lhs) == len(x.Rhs)
		add("pair", isParallel && len(x.Lhs) == 2)
		add("triple", isParallel && len(x.Lhs) > 2)
	case *ast.SwitchStmt:
		add("switch", x.Tag == nil && x.Init != nil)
	case *ast.CompositeLit:
		add("unkeyed", isStruct(x.Type) && len(x.Elts) >= minKeyed && !isKeyed(x.Elts[0]))
	case *ast.CallExpr:
		add("or", isCmpOr(x.Fun))
	case *ast.ForStmt:
		hasNoEnd := x.Init != nil && x.Cond == nil
		add("loop", hasSeveral(x.Init) || hasSeveral(x.Post) || hasNoEnd)
	case *ast.TypeAssertExpr:
		_, isInterface := x.Type.(*ast.InterfaceType)
		add("hidden", isInterface)
	}
	return names
}

// hasEffect reports whether the beginning of an if changes a variable from outside that is no error.
func hasEffect(init ast.Stmt) bool {
	assign, isAssign := init.(*ast.AssignStmt)
	if !isAssign {
		return init != nil
	}
	isOther := func(e ast.Expr) bool {
		id, isName := e.(*ast.Ident)
		return !isName || id.Name != "err" && id.Name != "_"
	}
	return assign.Tok != token.DEFINE && slices.ContainsFunc(assign.Lhs, isOther)
}

// hasSeveral reports whether a statement assigns to several variables.
func hasSeveral(s ast.Stmt) bool {
	assign, isAssign := s.(*ast.AssignStmt)
	return isAssign && len(assign.Lhs) > 1
}

// isStruct reports whether the type of a literal may be a struct.
func isStruct(t ast.Expr) bool {
	switch t.(type) {
	case nil, *ast.ArrayType, *ast.MapType:
		return false
	}
	return true
}

// isCmpOr reports whether a function is cmp.Or.
func isCmpOr(function ast.Expr) bool {
	selector, isSelector := function.(*ast.SelectorExpr)
	if !isSelector || selector.Sel.Name != "Or" {
		return false
	}
	pkg, isName := selector.X.(*ast.Ident)
	return isName && pkg.Name == "cmp"
}

// isKeyed reports whether an element of a literal has a key.
func isKeyed(e ast.Expr) bool {
	_, hasKey := e.(*ast.KeyValueExpr)
	return hasKey
}
