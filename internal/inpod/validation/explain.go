package validation

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

var (
	// prefix precedes a message: a timestamp in newer versions, the program's name in older ones.
	prefix = regexp.MustCompile(`^(\[[^\]]*\] |slurmctld: )`)
	// complaint is an error message, with the C function that it comes from.
	complaint = regexp.MustCompile(`^(error|fatal): (?:[a-z0-9]*_[a-z0-9_]*: )?(.+)$`)
	// parseError is the position of a line that Slurm cannot parse, if it gives one.
	parseError  = regexp.MustCompile(`in file (\S+) line (\d+)`)
	wordPattern = regexp.MustCompile(`[A-Za-z0-9_/.\[\]-]+`)
	plainWord   = regexp.MustCompile(`^([A-Za-z]+|[0-9]+)$`)
)

// noise marks complaints that every validation run has, and those that add nothing to the previous one.
var noise = []string{
	"Configured MailProg is invalid",
	"state file", // a new slurmctld has no state
	"Trying backup state save file",
	"High latency for",
	"(fd:", "Unable to set keep", // about a connection: our own queries, if slurmctld exits before it has answered
	"Unable to process configuration file",
}

// waiting marks slurmctld's message that it retries to open a file. All files of a candidate exist from the start.
const waiting = ", retrying in 1sec up to 60sec"

func waitsForFile(log string) bool { return strings.Contains(log, waiting) }

// isEnvironmentFailure reports whether slurmctld has exited because of the validation run's environment and not because
// of the candidate.
func isEnvironmentFailure(log string) bool {
	return slices.ContainsFunc([]string{
		"Unable to listen to file descriptors",
		"No space left on device",
		"Read-only file system",
	}, func(reason string) bool { return strings.Contains(log, reason) })
}

// explain returns why slurmctld does not run: its complaints from a log, and the line of the candidate's files, which
// are in etc, that they refer to.
func explain(log, etc string, files map[string]string) string {
	found := complaints(strings.ReplaceAll(log, etc+"/", ""))
	if len(found) == 0 {
		return "slurmctld gave no reason"
	}
	detail := strings.Join(found, "\n")
	if line := locate(found, files); line != "" {
		// The line to change comes first, so that it is never truncated.
		detail = line + "\n" + detail
	}
	return cut(detail, maxDetail)
}

// complaints returns slurmctld's errors without duplicates, then its fatal errors.
func complaints(log string) []string {
	const maxErrors = 8 // a partition with a thousand unknown nodes has a thousand errors
	var errors, fatal []string
	for line := range strings.Lines(log) {
		match := complaint.FindStringSubmatch(prefix.ReplaceAllString(strings.TrimSpace(line), ""))
		if match == nil ||
			slices.ContainsFunc(noise, func(part string) bool { return strings.Contains(match[2], part) }) {
			continue
		}
		text := strings.TrimSuffix(match[2], waiting)
		switch {
		case match[1] == "fatal":
			fatal = append(fatal, text)
		case len(errors) < maxErrors && !slices.Contains(errors, text):
			errors = append(errors, text)
		}
	}
	return append(errors, fatal...)
}

// locate finds the line that complaints refer to: the one that Slurm names, otherwise the one that matches a complaint
// best.
func locate(complaints []string, files map[string]string) string {
	for _, text := range complaints {
		if match := parseError.FindStringSubmatch(text); match != nil {
			number, _ := strconv.Atoi(match[2]) // digits
			if lines := strings.Split(files[match[1]], "\n"); number <= len(lines) {
				return position(match[1], number, lines[number-1])
			}
		}
	}
	for _, text := range complaints {
		words := wordsOf(text)
		for _, file := range searchOrder(complaints, files) {
			best, bestScore, number := "", 1, 0
			for line := range strings.Lines(files[file]) {
				number++
				// Of equally good matches the last one is correct, as with duplicates.
				if score := score(line, words); score >= bestScore {
					best, bestScore = position(file, number, line), score
				}
			}
			if best != "" {
				return best
			}
		}
	}
	return ""
}

// searchOrder returns the files that complaints name first, then slurm.conf, then the rest.
func searchOrder(complaints []string, files map[string]string) []string {
	all := strings.Join(complaints, "\n")
	rank := func(file string) int {
		switch {
		case file == "slurm.conf":
			return 1
		case strings.Contains(all, file):
			return 0
		default:
			return 2
		}
	}
	order := slices.DeleteFunc(slices.Collect(maps.Keys(files)),
		func(file string) bool { return !strings.HasSuffix(file, ".conf") })
	slices.SortFunc(order, func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
	return order
}

// A word is part of a complaint; it may be a key or a value.
type word struct {
	text     string
	previous string // the preceding word
	marked   bool   // in quotes or parentheses, or not a plain English word
}

func wordsOf(complaint string) []word {
	var words []word
	previous := ""
	for _, at := range wordPattern.FindAllStringIndex(complaint, -1) {
		text := complaint[at[0]:at[1]]
		words = append(words, word{
			text:     text,
			previous: previous,
			marked: at[0] > 0 && strings.ContainsRune("\"'`(", rune(complaint[at[0]-1])) ||
				!plainWord.MatchString(text),
		})
		previous = text
	}
	return words
}

// score returns how well a line matches the words of a complaint.
func score(line string, words []word) int {
	total := 0
	for key, value := range pairs(line) {
		for _, word := range words {
			switch {
			case strings.EqualFold(key, word.text):
				// Slurm writes keys in mixed case, which distinguishes them from ordinary words, but quotes unknown
				// ones.
				if word.previous == "key" || mixedCase(word.text) {
					total++
				}
			case value != word.text:
			case strings.EqualFold(key, word.previous+"Name"): // "partition blue"
				total += 2
			case word.marked:
				total++
			}
		}
	}
	return total
}

func mixedCase(text string) bool {
	return strings.ContainsFunc(text, unicode.IsUpper) && strings.ContainsFunc(text, unicode.IsLower)
}

func position(file string, number int, line string) string {
	const maxLine = 200
	return fmt.Sprintf("%s line %d: %s", file, number, cut(strings.TrimSpace(line), maxLine))
}
