package contract

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/slurm-operator/slurm-operator/internal/slurm/slurmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// standIn is the in-memory fake.
type standIn struct {
	*slurmtest.Server
	release string
}

func (s standIn) url() string                  { return s.URL }
func (s standIn) old() bool                    { return s.release == slurmtest.Release2411 }
func (s standIn) token(user string) string     { return s.Token(user) }
func (s standIn) briefToken(*testing.T) string { return s.TokenFor("root", time.Second) }

func (s standIn) suspend(_ *testing.T, id int64) { s.SuspendJob(id) }
func (s standIn) resume(_ *testing.T, id int64)  { s.ResumeJob(id) }

func (s standIn) stopController(*testing.T)  { s.StopController() }
func (s standIn) startController(*testing.T) { s.StartController() }

func TestFakeSlurm(t *testing.T) {
	for _, release := range slurmtest.Releases {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			server := slurmtest.New(t, release)
			server.Register(map[string]string{"node-0": instance, "node-1": instance})
			run(t, standIn{server, release})
		})
	}
}
