package naming

// Images are the default images of the containers.
type Images struct {
	// Repository and Tag form the image names of Slurm's daemons: <repository>/<daemon>:<tag>.
	Repository, Tag string
	// Operator is the operator's own image, for its helpers in pods.
	Operator string
}

// For returns the image of a daemon.
func (i Images) For(daemon Daemon) string {
	return i.Repository + "/" + string(daemon) + ":" + i.Tag
}
