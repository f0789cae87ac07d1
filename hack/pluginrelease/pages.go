package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// completions returns the completions of shells for the program itself. That of kubectl slurm is kubectl's own, by
// completer.
func completions(root *cobra.Command) ([]file, error) {
	var files []file
	for _, each := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{name + ".bash", func(out io.Writer) error { return root.GenBashCompletionV2(out, true) }},
		{"_" + name, root.GenZshCompletion},
		{name + ".fish", func(out io.Writer) error { return root.GenFishCompletion(out, true) }},
		{name + ".ps1", root.GenPowerShellCompletionWithDesc},
	} {
		var content bytes.Buffer
		if err := each.write(&content); err != nil {
			return nil, err
		}
		files = append(files, file{"completions/" + each.name, content.Bytes(), false})
	}
	return files, nil
}

// manPages returns a page of the manual for each command.
func manPages(root *cobra.Command, version string) []file {
	if !isDocumented(root) {
		return nil
	}
	page := pageName(root)
	files := []file{{"man/man1/" + page + ".1", []byte(manPage(root, version)), false}}
	for _, child := range root.Commands() {
		files = append(files, manPages(child, version)...)
	}
	return files
}

func isDocumented(command *cobra.Command) bool {
	return command.Name() != "help" && command.Name() != "completion" && !command.Hidden
}

// pageName returns the name of a command's page, such as kubectl-slurm-status.
func pageName(command *cobra.Command) string {
	return strings.ReplaceAll(command.CommandPath(), " ", "-")
}

// manPage returns a page in roff.
func manPage(command *cobra.Command, version string) string {
	var page strings.Builder
	title := strings.ToUpper(roff(pageName(command)))
	fmt.Fprintf(&page, ".TH %s 1 \"\" \"%s %s\" \"kubectl slurm\"\n", title, name, version)
	fmt.Fprintf(&page, ".SH NAME\n%s \\- %s\n", roff(pageName(command)), roff(command.Short))
	if command.Runnable() {
		fmt.Fprintf(&page, ".SH SYNOPSIS\n%s\n", roff(command.UseLine()))
	}
	if command.Long != "" {
		page.WriteString(".SH DESCRIPTION\n")
		for i, paragraph := range strings.Split(command.Long, "\n\n") {
			if i > 0 {
				page.WriteString(".PP\n")
			}
			page.WriteString(roff(paragraph) + "\n")
		}
	}
	writeOptions(&page, "OPTIONS", command.LocalNonPersistentFlags())
	if !command.HasParent() {
		writeOptions(&page, "OPTIONS OF ALL COMMANDS", command.PersistentFlags())
	}
	if command.Example != "" {
		fmt.Fprintf(&page, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(command.Example))
	}
	writeRelated(&page, command)
	return page.String()
}

// writeOptions writes a section about flags, if there are any.
func writeOptions(page *strings.Builder, title string, flags *pflag.FlagSet) {
	section := ".SH " + title + "\n"
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden || flag.Name == "help" {
			return
		}
		page.WriteString(section)
		section = ""
		option := `\fB` + roff("--"+flag.Name) + `\fR`
		if flag.Shorthand != "" {
			option = `\fB` + roff("-"+flag.Shorthand) + `\fR, ` + option
		}
		value, usage := pflag.UnquoteUsage(flag)
		if value != "" {
			option += `=\fI` + roff(value) + `\fR`
		}
		fmt.Fprintf(page, ".TP\n%s\n%s\n", option, roff(usage))
	})
}

// writeRelated names the pages of the command above and of those below.
func writeRelated(page *strings.Builder, command *cobra.Command) {
	var related []string
	add := func(other *cobra.Command) { related = append(related, `\fB`+roff(pageName(other))+`\fR(1)`) }
	if command.HasParent() {
		add(command.Root())
		if command.Parent().HasParent() {
			add(command.Parent())
		}
	}
	for _, child := range command.Commands() {
		if isDocumented(child) {
			add(child)
		}
	}
	if len(related) > 0 {
		fmt.Fprintf(page, ".SH SEE ALSO\n%s\n", strings.Join(related, ", "))
	}
}

// roff escapes a text: backslashes, hyphens, which would become typographic, and lines that look like requests.
func roff(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
