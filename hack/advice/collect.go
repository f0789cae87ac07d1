package advice

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// collect returns the lines with commands of all files that users read: the strings of the product, the golden files
// with what it prints, documents, and the alerts and notes of the charts.
func collect(files fs.FS) ([]Line, error) {
	var lines []Line
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if base := path.Base(name); base == "node_modules" || name == "bin" || name == "docs/adr" ||
				strings.HasPrefix(base, ".") && name != "." {
				return fs.SkipDir
			}
			return nil
		}
		read := readerOf(name)
		if read == nil {
			return nil
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		found, err := read(name, string(content))
		lines = append(lines, found...)
		return err
	})
	return lines, err
}

// readerOf returns how a file is read; nil if it gives no advice.
func readerOf(name string) func(name, content string) ([]Line, error) {
	within := func(directories ...string) bool {
		for _, directory := range directories {
			if strings.HasPrefix(name, directory+"/") {
				return true
			}
		}
		return false
	}
	switch path.Ext(name) {
	case ".go":
		if within("api", "cmd", "internal", "hack/monitoring") && !strings.HasSuffix(name, "_test.go") {
			return readGo
		}
	case ".md", ".gotmpl":
		if within("docs", "charts") || !strings.Contains(name, "/") {
			return readMarkdown
		}
	case ".txt":
		if within("charts") || within("internal/plugin", "internal/webhook", "internal/controller") &&
			strings.Contains(name, "/testdata/") {
			return readText
		}
	case ".yaml":
		if within("charts/slurm-operator/files/monitoring") {
			return readText
		}
	}
	return nil
}

// readText returns the lines of a text that is no code.
func readText(name, content string) ([]Line, error) {
	var lines []Line
	number := 0
	for line := range strings.Lines(content) {
		number++
		lines = append(lines, Line{place(name, number), strings.TrimSpace(line), false, false})
	}
	return lines, nil
}

func place(name string, line int) string { return name + ":" + strconv.Itoa(line) }

var (
	codeSpan = regexp.MustCompile("``?([^`\n]+(?:\n[^`\n]+)?)``?")
	// prompt is before a command in a transcript.
	prompt = regexp.MustCompile(`^\s*\$ `)
)

// readMarkdown returns the code of a document: its blocks, and its spans if they are commands.
func readMarkdown(name, content string) ([]Line, error) {
	var lines []Line
	var block, prose strings.Builder
	blockAt, proseAt, language := 0, 1, ""
	endBlock := func() {
		if blockAt > 0 && language != "mermaid" {
			isShell := slices.Contains([]string{"", "sh", "bash", "console"}, language)
			lines = append(lines, Line{place(name, blockAt), block.String(), isShell, isShell})
		}
		blockAt = 0
		block.Reset()
	}
	endProse := func() {
		text := prose.String()
		for _, span := range codeSpan.FindAllStringSubmatchIndex(text, -1) {
			at := proseAt + strings.Count(text[:span[2]], "\n")
			lines = append(lines, Line{place(name, at), strings.ReplaceAll(text[span[2]:span[3]], "\n", " "), true, false})
		}
		prose.Reset()
	}
	number, fence, blankBefore := 0, "", true
	for line := range strings.Lines(content) {
		number++
		trimmed := strings.TrimSpace(line)
		mark := fenceOf(trimmed)
		switch {
		case fence != "" && mark == fence && trimmed == mark:
			endBlock()
			fence, language = "", ""
		case fence == "" && mark != "":
			endBlock()
			endProse()
			fence, proseAt = mark, number+1
			language = cmp.Or(strings.TrimPrefix(trimmed, mark), "text")
		case fence != "", strings.HasPrefix(line, "    ") && (blankBefore || blockAt > 0):
			endProse()
			if blockAt == 0 {
				blockAt = number
			}
			block.WriteString(prompt.ReplaceAllString(strings.TrimSuffix(line, "\n"), "") + "\n")
			proseAt = number + 1
		default:
			endBlock()
			if prose.Len() == 0 {
				proseAt = number
			}
			prose.WriteString(line)
			if trimmed == "" {
				endProse()
			}
		}
		blankBefore = trimmed == ""
	}
	endBlock()
	endProse()
	return lines, nil
}

// fenceOf returns the marks of a line that begins or ends a block of code; empty if it does neither.
func fenceOf(line string) string {
	for _, mark := range []string{"```", "~~~"} {
		if strings.HasPrefix(line, mark) {
			return mark
		}
	}
	return ""
}

// readGo returns the strings of a program, and the commands that its helper kubectl makes.
func readGo(name, content string) ([]Line, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, content, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	var lines []Line
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.CallExpr:
			if function, is := node.Fun.(*ast.Ident); is && function.Name == "kubectl" && len(node.Args) > 1 {
				words := []string{"kubectl"}
				for _, argument := range node.Args[1:] { // the first one is the namespace
					words = append(words, textOf(argument))
				}
				lines = append(lines, Line{place(name, set.Position(node.Pos()).Line), strings.Join(words, " "), true, true})
			}
		case *ast.BinaryExpr, *ast.BasicLit:
			expression, _ := node.(ast.Expr)
			lines = append(lines, linesOf(name, set.Position(node.Pos()).Line, textOf(expression))...)
			return !isText(expression)
		}
		return true
	})
	return lines, nil
}

// linesOf returns the lines of a string. An indented one is an example of a command.
func linesOf(name string, number int, text string) []Line {
	var lines []Line
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		exact := strings.HasPrefix(line, "  ") || strings.HasPrefix(trimmed, "kubectl --namespace")
		lines = append(lines, Line{place(name, number), trimmed, exact, exact})
		number++
	}
	return lines
}

// isText reports whether an expression is a string, or strings that are joined.
func isText(expression ast.Expr) bool {
	switch expression := expression.(type) {
	case *ast.BasicLit:
		return expression.Kind == token.STRING
	case *ast.BinaryExpr:
		return expression.Op == token.ADD && (isText(expression.X) || isText(expression.Y))
	default:
		return false
	}
}

// textOf returns the value of an expression, with placeholders for what is not known before it runs.
func textOf(expression ast.Expr) string {
	switch expression := expression.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(expression.Value); err == nil && expression.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		if isText(expression) {
			return textOf(expression.X) + textOf(expression.Y)
		}
		return ""
	case *ast.ParenExpr:
		return textOf(expression.X)
	case *ast.CallExpr:
		if len(expression.Args) > 0 && isText(expression.Args[0]) { // fmt.Sprintf
			return textOf(expression.Args[0])
		}
	}
	return placeholder
}
