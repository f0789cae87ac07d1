package slurm

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A Version is a Slurm release, such as 26.05.5. Versions are compared with Compare.
type Version struct {
	Major, Minor, Micro int
}

// ParseVersion parses a release as Slurm prints it. Anything after the third number, such as -rc1, is ignored.
func ParseVersion(release string) (Version, error) {
	var numbers [3]int
	fields := strings.SplitN(release, ".", 3)
	if len(fields) < 2 {
		return Version{}, fmt.Errorf("%q is not a Slurm release", release)
	}
	for i, field := range fields {
		digits := field[:len(field)-len(strings.TrimLeft(field, "0123456789"))]
		number, err := strconv.Atoi(digits)
		if err != nil || (i < 2 && digits != field) {
			return Version{}, fmt.Errorf("%q is not a Slurm release", release)
		}
		numbers[i] = number
	}
	return Version{numbers[0], numbers[1], numbers[2]}, nil
}

// String returns the release as Slurm prints it.
func (v Version) String() string { return fmt.Sprintf("%d.%02d.%d", v.Major, v.Minor, v.Micro) }

// Compare orders versions, older ones first.
func (v Version) Compare(other Version) int {
	return cmp.Or(cmp.Compare(v.Major, other.Major), cmp.Compare(v.Minor, other.Minor),
		cmp.Compare(v.Micro, other.Micro))
}

// Slurm has two series of releases a year, such as 25.11 and 26.05. A daemon understands the saved state, the database
// and the messages of its own series and of so many before it, and none of a later one.
const understood = 3

// Series returns the series of a release, such as 26.05 of 26.05.5.
func (v Version) Series() string { return fmt.Sprintf("%d.%02d", v.Major, v.Minor) }

// IsLater reports whether a release is of a later series than another.
func (v Version) IsLater(other Version) bool { return v.number() > other.number() }

// Understands reports whether a daemon understands the saved state, the database and the messages of another release.
func (v Version) Understands(other Version) bool {
	return !other.IsLater(v) && v.number() <= other.number()+understood
}

// LastToUnderstand returns the last series that understands a release.
func (v Version) LastToUnderstand() string {
	last := v.number() + understood
	return fmt.Sprintf("%d.%02d", last/2, []int{5, 11}[last%2])
}

// number numbers the series since the year 2000. The first one of a year was not always in May.
func (v Version) number() int {
	if v.Minor < 8 {
		return 2 * v.Major
	}
	return 2*v.Major + 1
}

// Latest returns the latest of those releases that are known.
func Latest(releases []string) (latest Version, known bool) {
	for _, release := range releases {
		if version, err := ParseVersion(release); err == nil && (!known || version.Compare(latest) > 0) {
			latest, known = version, true
		}
	}
	return latest, known
}

// releaseTag matches the tag of an image that begins with a release of Slurm, such as 25.11-ubuntu24.04.
var releaseTag = regexp.MustCompile(`:(\d\d\.(?:02|05|08|11)(?:\.\d+)?)(?:-[^:/@]*)?(?:@|$)`)

// ReleaseOfImage returns the release in the tag of an image; empty if the tag does not show one.
func ReleaseOfImage(image string) string {
	if tag := releaseTag.FindStringSubmatch(image); tag != nil {
		return tag[1]
	}
	return ""
}
