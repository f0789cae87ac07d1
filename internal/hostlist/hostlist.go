// Package hostlist parses and compresses Slurm's hostlist expressions, such as "gpu-[0-3,8],login".
//
// Slurm uses such expressions for the nodes of a job, a partition or a reservation, and accepts them wherever it
// accepts a node name. So a drain of thousands of nodes is one small request. Both directions take time and memory
// linear in the number of names: an expression is expanded one name at a time, up to a limit that the caller sets;
// names are compressed by sorting them by the text before and after their last number.
package hostlist

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// maxDigits is the maximum number of digits: as many as always fit into 64 bits.
const maxDigits = 18

// Expand returns the names of an expression, in its order. It fails if there are more than limit.
func Expand(expression string, limit int) ([]string, error) {
	var names []string
	for name, err := range Names(expression) {
		if err != nil {
			return nil, err
		}
		if len(names) == limit {
			return nil, fmt.Errorf("hostlist stands for more than %d names", limit)
		}
		names = append(names, name)
	}
	return names, nil
}

// Names yields the names of an expression, one at a time. An error ends the sequence.
func Names(expression string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for rest := expression; rest != ""; {
			var element string
			var err error
			if element, rest, err = cutElement(rest); err != nil {
				yield("", err)
				return
			}
			parts, err := parseElement(element)
			if err != nil {
				yield("", err)
				return
			}
			if !product("", parts, func(name string) bool { return yield(name, nil) }) {
				return
			}
		}
	}
}

// cutElement cuts off the first element of a comma-separated list; commas in brackets do not separate.
func cutElement(list string) (element, rest string, err error) {
	inside := false
	for i := range len(list) {
		switch list[i] {
		case '[':
			if inside {
				return "", "", fmt.Errorf("hostlist %q: bracket within brackets", shorten(list))
			}
			inside = true
		case ']':
			if !inside {
				return "", "", fmt.Errorf("hostlist %q: closing bracket without an opening one", shorten(list))
			}
			inside = false
		case ',':
			if inside {
				continue
			}
			if i == 0 || i == len(list)-1 {
				return "", "", fmt.Errorf("hostlist %q: empty name", shorten(list))
			}
			return list[:i], list[i+1:], nil
		}
	}
	if inside {
		return "", "", fmt.Errorf("hostlist %q: bracket is not closed", shorten(list))
	}
	return list, "", nil
}

// A part is a piece of text followed by one of several numbers. The last part of a name has no numbers.
type part struct {
	text   string
	ranges []numbers
}

// numbers is a range of numbers, padded to width digits.
type numbers struct {
	first, last uint64
	width       int
}

// parseElement parses one element of a list.
func parseElement(element string) ([]part, error) {
	var parts []part
	for {
		text, rest, found := strings.Cut(element, "[")
		if strings.ContainsAny(text, " \t\r\n") {
			return nil, fmt.Errorf("hostlist %q: space in a name", shorten(element))
		}
		if !found {
			return append(parts, part{text: text}), nil
		}
		inside, rest, _ := strings.Cut(rest, "]") // cutElement has paired the brackets
		next := part{text: text}
		for item := range strings.SplitSeq(inside, ",") {
			parsed, err := parseNumbers(item)
			if err != nil {
				return nil, err
			}
			next.ranges = append(next.ranges, parsed)
		}
		parts = append(parts, next)
		element = rest
	}
}

func parseNumbers(item string) (numbers, error) {
	low, high, isRange := strings.Cut(item, "-")
	if !isRange {
		high = low
	}
	first, err := parseNumber(low)
	if err != nil {
		return numbers{}, err
	}
	last, err := parseNumber(high)
	if err != nil {
		return numbers{}, err
	}
	if last < first {
		return numbers{}, fmt.Errorf("hostlist range %q runs backwards", shorten(item))
	}
	return numbers{first, last, len(low)}, nil
}

func parseNumber(digits string) (uint64, error) {
	if digits == "" || len(digits) > maxDigits || strings.Trim(digits, "0123456789") != "" {
		return 0, fmt.Errorf("hostlist number %q is not one of 1 to %d digits", shorten(digits), maxDigits)
	}
	return strconv.ParseUint(digits, 10, 64)
}

// product yields all names that start with prefix and continue with the parts. It returns false if yield did.
func product(prefix string, parts []part, yield func(string) bool) bool {
	prefix += parts[0].text
	if len(parts[0].ranges) == 0 {
		return yield(prefix)
	}
	for _, span := range parts[0].ranges {
		for number := span.first; number <= span.last; number++ {
			if !product(prefix+pad(number, span.width), parts[1:], yield) {
				return false
			}
		}
	}
	return true
}

func pad(number uint64, width int) string {
	digits := strconv.FormatUint(number, 10)
	if missing := width - len(digits); missing > 0 {
		return strings.Repeat("0", missing) + digits
	}
	return digits
}

// shorten keeps errors readable.
func shorten(text string) string {
	const maxShown = 64
	if len(text) > maxShown {
		return text[:maxShown] + "…"
	}
	return text
}

// Compress returns a short expression for the names, each once. Only the last number of a name is compressed, which
// suffices for names with an ordinal. Names with characters that are special in an expression are rejected.
func Compress(names []string) (string, error) {
	split := make([]splitName, 0, len(names))
	for _, name := range names {
		if name == "" || strings.ContainsAny(name, "[], \t\r\n") {
			return "", fmt.Errorf("%q is not a name that fits into a hostlist", shorten(name))
		}
		split = append(split, splitLastNumber(name))
	}
	slices.SortFunc(split, splitName.compare)
	split = slices.Compact(split)
	var expression strings.Builder
	for len(split) > 0 {
		count := 1
		for count < len(split) && split[count].fits(split[0]) {
			count++
		}
		if expression.Len() > 0 {
			expression.WriteByte(',')
		}
		writeGroup(&expression, split[:count])
		split = split[count:]
	}
	return expression.String(), nil
}

// Text returns names for a message: as a short expression, or separated by commas if one does not fit into it.
func Text(names []string) string {
	if expression, err := Compress(names); err == nil {
		return expression
	}
	return strings.Join(names, ",")
}

// splitName is a name, split at its last number.
type splitName struct {
	before, after string
	number        uint64
	width         int // digits of the number, 0 if the name has none
}

func splitLastNumber(name string) splitName {
	end := len(name)
	for end > 0 && !isDigit(name[end-1]) {
		end--
	}
	begin := end
	for begin > 0 && isDigit(name[begin-1]) && end-begin < maxDigits {
		begin--
	}
	if begin == end {
		return splitName{before: name}
	}
	number, err := strconv.ParseUint(name[begin:end], 10, 64)
	if err != nil {
		return splitName{before: name} // never: it has digits only, and not too many
	}
	return splitName{before: name[:begin], after: name[end:], number: number, width: end - begin}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func (n splitName) compare(other splitName) int {
	return cmp.Or(
		cmp.Compare(n.before, other.before),
		cmp.Compare(n.after, other.after),
		cmp.Compare(n.width, other.width),
		cmp.Compare(n.number, other.number),
	)
}

// fits reports whether two names can share a pair of brackets. Names of different width cannot: "[08-10]" and "[8-10]"
// are different names.
func (n splitName) fits(first splitName) bool {
	return n.width > 0 && n.width == first.width && n.before == first.before && n.after == first.after
}

func writeGroup(expression *strings.Builder, group []splitName) {
	first := group[0]
	expression.WriteString(first.before)
	if first.width > 0 {
		if len(group) == 1 {
			expression.WriteString(pad(first.number, first.width))
		} else {
			expression.WriteByte('[')
			writeRanges(expression, group)
			expression.WriteByte(']')
		}
	}
	expression.WriteString(first.after)
}

func writeRanges(expression *strings.Builder, group []splitName) {
	for begin := 0; begin < len(group); {
		end := begin
		for end+1 < len(group) && group[end+1].number == group[end].number+1 {
			end++
		}
		if begin > 0 {
			expression.WriteByte(',')
		}
		expression.WriteString(pad(group[begin].number, group[begin].width))
		if end > begin {
			expression.WriteByte('-')
			expression.WriteString(pad(group[end].number, group[end].width))
		}
		begin = end + 1
	}
}
