// Package slurmuser finds the user of Slurm's daemons in an image.
//
// slurm.conf names that user, each daemon looks up its ID in its own image, and daemons trust only messages from their
// own ID. So all images of a cluster must agree on it.
package slurmuser

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Passwd is the file with an image's users.
const Passwd = "/etc/passwd"

// name is the user's name in slurm.conf.
const name = "slurm"

// A User is a user's and its group's ID.
type User struct {
	UID int64 `json:"uid"`
	GID int64 `json:"gid"`
}

// Find returns the user in a file such as /etc/passwd.
func Find(passwd string) (User, error) {
	content, err := os.ReadFile(passwd)
	if err != nil {
		return User{}, fmt.Errorf("looking for the user %s of the image: %w", name, err)
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.Split(line, ":")
		if len(fields) < 4 || fields[0] != name {
			continue
		}
		uid, err := strconv.ParseInt(fields[2], 10, 64)
		if err != nil {
			return User{}, fmt.Errorf("the image's user %s has the ID %q", name, fields[2])
		}
		gid, err := strconv.ParseInt(fields[3], 10, 64)
		if err != nil {
			return User{}, fmt.Errorf("the image's user %s has the group %q", name, fields[3])
		}
		if uid == 0 {
			return User{}, fmt.Errorf("the image's user %s is root; give it another ID", name)
		}
		return User{uid, gid}, nil
	}
	return User{}, fmt.Errorf("the image has no user %s, which Slurm's daemons need; add it to %s in the image", name, passwd)
}

// Check checks that the user in a file such as /etc/passwd has an ID.
func Check(passwd string, uid int64) error {
	found, err := Find(passwd)
	if err != nil || found.UID == uid {
		return err
	}
	return fmt.Errorf("the image's user %s has the ID %d, and the cluster's slurmctld runs as %d, so they would not trust "+
		"each other; use images of the same origin for all daemons of a cluster", name, found.UID, uid)
}
