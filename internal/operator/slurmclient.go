package operator

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
)

// SlurmClient holds the settings of requests to slurmrestd.
type SlurmClient struct {
	// Timeout is the deadline of each request, including its response.
	Timeout time.Duration
	// Backoff is how long to wait between attempts after failures.
	Backoff slurm.Backoff
}

// AddFlags adds a flag for each setting.
func (s *SlurmClient) AddFlags(flags *pflag.FlagSet) {
	defaults := slurm.DefaultBackoff
	flags.DurationVar(&s.Timeout, "slurm-request-timeout", rest.DefaultTimeout,
		"how long a request to slurmrestd may take")
	flags.DurationVar(&s.Backoff.First, "slurm-backoff-initial", defaults.First,
		"how long to wait after the first failed request; the wait doubles with each further failure")
	flags.DurationVar(&s.Backoff.MaxOutage, "slurm-backoff-max", defaults.MaxOutage,
		"the maximum backoff while slurmrestd or slurmctld does not answer")
	flags.DurationVar(&s.Backoff.MaxRefusal, "slurm-backoff-max-refused", defaults.MaxRefusal,
		"the maximum backoff while slurmrestd refuses the token or its version is not supported")
}
